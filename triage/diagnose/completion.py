"""Is it proved that the job ended well? A launcher or a scheduler says so, or all ranks that left a trace do.

A line that says that something ended counts only if nothing trains after it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import NamedTuple

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.ranks.identity import JobMap, short_host
from triage.records.activity import Activity

Trace = tuple[str, int | None]
"""Source and rank of lines; without a rank, all lines of a source that name none."""

_STREAM = lazy_re(r"<std(?:out|err)>")
_FEWEST_RANKS = 2
_MOST_LATER_STEPS = 1  # a single line with a smaller step after the end is a summary


class Writer(NamedTuple):
    """Who wrote lines that name no rank: their source and the label in front of them, which may be empty."""

    source: str
    label: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What says that the job ended well.

    `lines` are the (source, activity) that count. `is_proved`: they cover every trace; `open_ranks` and `open_writers`
    are those that they do not cover. `has_traces`: some rank or some training step is seen at all. `has_end_of_each`:
    as many lines as there are ranks say the same end.
    """

    lines: tuple[tuple[str, Activity], ...] = ()
    is_proved: bool = False
    open_ranks: tuple[int, ...] = ()
    open_writers: tuple[Writer, ...] = ()
    has_traces: bool = False
    finished: Mapping[int, float | None] = field(default_factory=dict)
    has_end_of_each: bool = False


class _Places(NamedTuple):
    """The ranks and hosts that the last lines of a source name."""

    ranks: Set[int]
    hosts: Set[str]


def find_completion(activities: Sequence[tuple[str, Activity]], job: JobMap) -> Completion:
    """Return what the last lines of all sources, in file order, prove about the end of the job."""
    lines = tuple(_valid_completions(activities))
    finished: dict[int, float | None] = {}
    for _, activity in lines:
        rank = activity.origin.rank
        if rank is not None:
            finished[rank] = max(finished.get(rank) or 0.0, activity.origin.time or 0.0) or None
    hosts, covers_all = _proved_hosts(lines, job)
    has_end_of_each = _has_end_of_each(lines, activities, job)
    covers_all = covers_all or has_end_of_each
    traced = {each.origin.rank for _, each in activities if each.origin.rank is not None}
    # Ranks that left dumps but no line are covered by the log of the whole job.
    if not any(each.completion == "program" and each.origin.rank is None for _, each in lines):
        traced |= {name.rank for name in job.sources.values() if name.rank is not None and name.rank in job.ranks}
    ended = finished.keys() | _ranks_of_ended_files(lines, activities, job.world_size() or 0)
    open_ranks = {rank for rank in traced - ended if not (covers_all or _is_on(rank, hosts, job))}
    unranked = {
        _name_writer(*entry) for entry in activities if entry[1].origin.rank is None and entry[1].step is not None
    }
    open_writers = {
        writer for writer in unranked if not (covers_all or _host_of(writer.source, job) in hosts)
    } - _finished_writers(lines, activities)
    return Completion(
        lines,
        bool(lines) and not open_ranks and not open_writers,
        tuple(sorted(open_ranks)),
        tuple(sorted(open_writers)),
        bool(traced or unranked),
        finished,
        has_end_of_each,
    )


def _valid_completions(activities: Iterable[tuple[str, Activity]]) -> Iterator[tuple[str, Activity]]:
    """Yield the lines that say that something ended and after which it does not train."""
    by_source: dict[str, list[Activity]] = defaultdict(list)
    for source, activity in activities:
        by_source[source].append(activity)
    for source, entries in by_source.items():
        ordered = sorted(entries, key=lambda entry: entry.offset)
        for number, entry in enumerate(ordered):
            if entry.completion and not _trains_after(ordered, number):
                yield source, entry


def _trains_after(entries: Sequence[Activity], number: int) -> bool:
    """Whether the writer of an entry, or for a launcher any writer, goes on to train after it.

    Where logs stand one after another in a file, lines further down may be older than the end of a program. A launcher
    may be in another time zone, so only the order in the file counts for what it reports.
    """
    end = entries[number]
    steps = [
        (place > number and not _is_older(entry, end), entry.step)
        for place, entry in enumerate(entries)
        if entry.step is not None and not entry.action and (end.completion == "job" or _may_be_of(end, entry))
    ]
    latest = max((step for is_later, step in steps if not is_later), default=-1)
    later = {step for is_later, step in steps if is_later and step != latest}
    return len(later) > _MOST_LATER_STEPS or any(step > latest for step in later)


def _is_older(entry: Activity, end: Activity) -> bool:
    time, ended = entry.origin.time, end.origin.time
    return end.completion != "job" and time is not None and ended is not None and time < ended


def _may_be_of(end: Activity, entry: Activity) -> bool:
    """Whether a line may be of the writer of another: its rank, else its label, decides where both have one."""
    if end.origin.rank is not None:
        return entry.origin.rank in (end.origin.rank, None)
    return entry.origin.rank is not None or not (end.writer and entry.writer) or end.writer == entry.writer


def _proved_hosts(lines: Iterable[tuple[str, Activity]], job: JobMap) -> tuple[set[str], bool]:
    """Return the hosts of launchers that report success, and whether one of them speaks for all hosts."""
    hosts: set[str] = set()
    for source, activity in lines:
        if activity.completion == "job" or (activity.completion == "process" and activity.origin.rank is None):
            host = activity.origin.host or _host_of(source, job)
            if not host:
                return hosts, True
            hosts.add(short_host(host))
    return hosts, False


def _ranks_of_ended_files(
    lines: Iterable[tuple[str, Activity]], activities: Iterable[tuple[str, Activity]], size: int
) -> set[int]:
    """Return the ranks of files in which as many lines say the same end as the files have ranks.

    Ranks of the world that no file names may be in any of them.
    """
    ranks: dict[str, set[int]] = defaultdict(set)
    for source, activity in activities:
        if activity.origin.rank is not None:
            ranks[source].add(activity.origin.rank)
    nameless = max(0, size - len(set().union(*ranks.values())))
    counts = [entry for by_source in _count_ends(lines).values() for entry in by_source.items()]
    enough = {source for source, count in counts if count >= max(len(ranks[source]) + nameless, _FEWEST_RANKS)}
    return {rank for source in enough for rank in ranks[source]}


def _has_end_of_each(
    lines: Iterable[tuple[str, Activity]], activities: Iterable[tuple[str, Activity]], job: JobMap
) -> bool:
    """Whether as many lines as there are ranks say the same end, one of each rank that they name; copies of a file do
    not count.

    Where logs stand one after another, training follows all ends but those of the last log. If all ranks had ended
    before that training, it would be another run.
    """
    size = job.world_size()
    counts, earlier = _count_ends(lines), _count_ends(activities)
    for text, by_source in counts.items():
        for source, count in by_source.items():
            if size is not None and earlier[text][source] - count < size:
                by_source[source] = earlier[text][source]
    ranks: dict[str, set[int]] = defaultdict(set)
    hosts: dict[str, set[str]] = defaultdict(set)
    for source, activity in activities:
        if activity.origin.rank is not None:
            ranks[source].add(activity.origin.rank)
        if host := activity.origin.host or _host_of(source, job):
            hosts[source].add(short_host(host))
    places = {source: _Places(ranks[source], hosts[source]) for by_source in counts.values() for source in by_source}
    most = max((_count_without_copies(by_source, places) for by_source in counts.values()), default=0)
    return size is not None and most >= max(size, _FEWEST_RANKS)


def _count_ends(lines: Iterable[tuple[str, Activity]]) -> dict[str, Counter[str]]:
    """Return how many ranks say an end in each source, by the text of the end.

    Each line without a rank is one, and each that stands for equal lines of other ranks as many as these.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    named: set[tuple[str, str, int]] = set()
    for source, activity in lines:
        rank, text = activity.origin.rank, activity.end_text
        if activity.completion == "program":
            is_counted = rank is not None and (text, source, rank) in named
            counts[text][source] += activity.lines - is_counted
            named |= {(text, source, rank)} if rank is not None else set()
    return counts


def _count_without_copies(by_source: Counter[str], places: Mapping[str, _Places]) -> int:
    """Sum the counts of sources of different ranks, or else of different hosts; of the others the largest counts."""
    counted: list[str] = []
    for source, _ in sorted(by_source.items(), key=lambda entry: (-entry[1], entry[0])):
        if all(_are_apart(places[source], places[other]) for other in counted):
            counted.append(source)
    return sum(by_source[source] for source in counted)


def _are_apart(one: _Places, other: _Places) -> bool:
    if one.ranks and other.ranks:
        return one.ranks.isdisjoint(other.ranks)
    return bool(one.hosts and other.hosts) and one.hosts.isdisjoint(other.hosts)


def _is_on(rank: int, hosts: set[str], job: JobMap) -> bool:
    """Whether a launcher on the rank's host reports success; a rank without a host is of the only launcher."""
    known = job.hosts.get(rank, set())
    return bool(hosts) and known <= hosts


def _host_of(source: str, job: JobMap) -> str:
    host = job.sources[source].host if source in job.sources else None
    return short_host(host) if host else ""


def _name_writer(source: str, activity: Activity) -> Writer:
    return Writer(source, _STREAM.sub("", activity.writer))


def _finished_writers(lines: Iterable[tuple[str, Activity]], activities: Sequence[tuple[str, Activity]]) -> set[Writer]:
    """Return the writers that say that they finished, or whose last step is that of one which does.

    A line without a label speaks for its source. Where only a few of the labelled writers of a source say it, it is
    nothing that each of them says.
    """
    steps: dict[Writer, int] = {}
    for source, activity in activities:
        writer = _name_writer(source, activity)
        if activity.step is not None:
            steps[writer] = max(steps.get(writer, 0), activity.step)
    done = {_name_writer(*line) for line in lines}
    reached = {steps[writer] for writer in done if writer in steps}
    finished = done | {writer for writer, step in steps.items() if step in reached}
    for source in {writer.source for writer in done}:
        labelled = {writer for writer in steps if writer.source == source and writer.label}
        finished.add(Writer(source, ""))
        if Writer(source, "") in done or len(labelled & finished) * 2 <= len(labelled):
            finished |= labelled
    return finished
