"""From scanned sources to the facts of a job: blocks around every hit, the map of ranks, the last words of each source."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from triage import evidence
from triage.base.forks import each
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Evidence, Origin, Source, Warning
from triage.ranks import cuts, headless, maps, shuffled, wrapped
from triage.ranks.blocks import build
from triage.ranks.files import is_taken, origin_of
from triage.ranks.identity import JobMap, short
from triage.ranks.last import Word, back, words
from triage.ranks.layouts import PLAIN, Layout, layout_of
from triage.ranks.text import Line, Text
from triage.ranks.tracebacks import HEADER
from triage.scan.interface import Hit, Scanned

Read = Callable[[int, int], bytes]
Named = tuple[int, int, tuple[str, ...], int]
"""Start and end of a hit line, the literals in it, and how many lines of its kind were not kept."""

_YEAR = lazy_re(rb"\b(20\d\d)-\d\d-\d\d")
# NCCL says at the start which address its host has, HCCL which host and device a rank has.
_ADDRESS = lazy_re(
    r"([\w.-]+):\d+:\d+ \[\d+\] NCCL INFO (?:Bootstrap|NET/\w+) ?: Using [^\n<]*?(\d{1,3}(?:\.\d{1,3}){3})<"
)
_DEVICE = lazy_re(r"userRank\[(\d+)\][^\n]{0,80}?hostIp\[([\d.:a-f]+)\][^\n]{0,120}?devicePhyId\[(\d+)\]")
_COLLECTIVE = lazy_re(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+).*?ran for (\d+) milliseconds", re.S)
# Name, what a text must hold in lower case, and where the version stands.
_VERSIONS = (
    ("nccl", ("nccl version",), lazy_re(r"NCCL version (\d+(?:\.\d+)+)")),
    ("torch", ("torch",), lazy_re(r"(?i)\b(?:py)?torch(?: version)?[ =:]+v?(\d+\.\d+\.\d+[\w.+]*)")),
    ("cuda", ("cuda",), lazy_re(r"\+cuda(\d+\.\d+)|(?i:cuda version[ =:]+)(\d+\.\d+)")),
    (
        "driver",
        ("driver version", "kernel module"),
        lazy_re(
            r"Driver Version: (\d{3}\.\d+(?:\.\d+)?)|NVIDIA UNIX \S+ (?:Open )?Kernel Module[^\n]{0,20}?  (\d{3}\.\d+(?:\.\d+)?)"
        ),
    ),
    ("cann", ("cann",), lazy_re(r"(?i)\bcann(?:[-_ ]toolkit)?(?:[-_ ]version)?[ =:_]+v?(\d+\.\d+(?:\.\w+)?)")),
    ("slurm", ("slurm",), lazy_re(r"\b(?:slurm(?:-wlm|d|stepd)?|SLURM)(?: version)?[ =:]+v?(2\d\.\d\d\.\d+)")),
)
_REPEATED = lazy_re(rb"\[repeated (\d{1,7})x across cluster\]")
_READ_HEAD_LINES = 60
# From so many hits on, of which a file costs some, several processes are faster than one.
_WORTH_FORKING = 400
_FILE = 5
_ORIGIN = 3  # its place among the fields of Evidence


@dataclass(frozen=True, slots=True)
class Opening:
    """What stays of a source while it grows: how its lines are dressed, and the words of its first lines. `year` is for
    stamps that carry none.
    """

    layout: Layout
    year: int
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What one source says by itself: its first and last words, those `earlier` of writers that its end does not show,
    and the facts.

    `lost` counts lines that Ray left out; `dressed`: there is more around its lines than in other files.
    """

    head: tuple[Word, ...]
    tail: tuple[Word, ...]
    earlier: tuple[Word, ...]
    facts: tuple[Evidence, ...]
    lost: int
    dressed: bool


@dataclass
class Harvest:
    """Everything read from the texts of a job, before any reasoning."""

    facts: list[Evidence] = field(default_factory=list)
    job: JobMap = field(default_factory=JobMap)
    words: list[tuple[str, Word]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)  # the first that any text states
    stated: dict[str, set[str]] = field(default_factory=dict)  # all of them
    heads: list[tuple[str, Word]] = field(default_factory=list)
    moments: list[tuple[str, str, Origin]] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    year: int = 1970  # for stamps without one
    dressed: set[str] = field(default_factory=set)  # sources with more around their lines than others have


def harvest(
    scanned: Sequence[tuple[Source, Scanned]],
    literals: Sequence[str],
    read_of: Callable[[Source, Scanned], Read],
    openings: Mapping[str, Opening] = MappingProxyType({}),
    processes: int = 1,
    advance: Callable[[int], None] = lambda size: None,
) -> Harvest:
    """Read the blocks of every source, in the order given (sorted by name). `openings` are those that are known
    already.

    `advance` is told the size of each source that is done.
    """
    year = year_of(scanned)
    result = Harvest(year=year)
    small = sum(scan.size for _, scan in scanned) <= headless.SMALL
    given = [
        None if (opening := openings.get(source.name)) is None or opening.year != year else opening
        for source, _ in scanned
    ]

    def read(number: int) -> Told:
        source, scan = scanned[number]
        return told(source, scan, literals, read_of(source, scan), year, given[number], small=small)

    costs = sum(_FILE + len(scan.hits) for _, scan in scanned)
    for (source, scan), found in zip(
        scanned, each(read, len(scanned), processes if costs > _WORTH_FORKING else 1, pack, unpack), strict=True
    ):
        _join(result, source, scan, found)
        advance(scan.size)
    _compare_clocks(result)
    result.job.settle()
    return result


def told(
    source: Source,
    scan: Scanned,
    literals: Sequence[str],
    read: Read,
    year: int,
    opening: Opening | None = None,
    *,
    small: bool,
) -> Told:
    """Everything that can be read in one source without the others. `small`: all are, so that it may be read whole."""
    opening = opening or opening_of(source.name, scan, year)
    layout = opening.layout
    head, tail, earlier = _edges(source, scan, read, year, opening)
    text = Text(source.name, read, scan.size, year, layout)
    hits, lost = _repeats(_named(scan.hits, literals), read)
    if layout.width or len(scan.tail) == scan.size:  # it is small: the tail is all of it
        hits = sorted([*hits, *_broken(scan.tail, layout, literals)])
    loose = _headless(source, scan, read, year, layout) if small else ()
    facts: list[Evidence] = []
    for block, more in build(text, hits, loose):
        found = evidence.read(block)
        if found and more:
            found[-1:] = [evidence.seen_again(found[-1], more)]
        facts += found
    return Told(tuple(head), tuple(tail), tuple(earlier), tuple(facts), lost, layout.dressed)


def pack(found: Told) -> list[Any]:
    """What one process tells another, as JSON can carry it."""
    return [
        *([_row(item) for item in part] for part in (found.head, found.tail, found.earlier, found.facts)),
        found.lost,
        found.dressed,
    ]


def unpack(packed: list[Any]) -> Told:
    """What was packed."""
    head, tail, earlier = (tuple(Word(Origin(*row[0]), *row[1:]) for row in part) for part in packed[:3])
    facts = (Evidence(*[*row[:_ORIGIN], Origin(*row[_ORIGIN]), *row[_ORIGIN + 1 :]]) for row in packed[3])
    return Told(head, tail, earlier, tuple(facts), *packed[4:])


def _row(item: Word | Evidence | Origin) -> list[Any]:
    values = (getattr(item, part.name) for part in fields(item))
    return [_row(value) if isinstance(value, Origin) else value for value in values]


def _join(result: Harvest, source: Source, scan: Scanned, found: Told) -> None:
    """What one source says, beside the others: its first and last lines place its ranks, and the last say how far each
    came.
    """
    result.job.learn(source.name, Origin())
    for word in (*found.head, *found.tail):
        result.job.learn(source.name, word.origin)
    if not is_taken(source.name, scan.head or scan.tail):
        result.words.extend((source.name, word) for word in (*found.earlier, *found.tail))
        result.heads.extend((source.name, word) for word in found.head)
    head_text = scan.head.decode("utf-8", "replace")
    _learn_text(result, source.name, head_text)
    _learn_addresses(result.job, head_text)
    for fact in found.facts:
        _learn(result, fact)
    result.facts.extend(fact for fact in found.facts if not _is_map(fact))
    result.dressed |= {source.name} if found.dressed else set()
    result.warnings.extend((*_limits(source, scan), *_left_out(source, found.lost)))


def _headless(source: Source, scan: Scanned, read: Read, year: int, layout: Layout) -> list[list[Line]]:
    """The tracebacks without their header line in a source that has no such line, where it can be read whole."""
    data = scan.tail if len(scan.tail) >= scan.size else read(0, scan.size) if source.path is not None else b""
    if headless.QUICK not in data or HEADER.encode() in data:
        return []
    return list(
        headless.runs(Text(source.name, lambda offset, length: data[offset : offset + length], len(data), year, layout))
    )


def _broken(data: bytes, layout: Layout, literals: Sequence[str]) -> list[Named]:
    """Hits that the scan could not see, because a terminal, a collector or another writer broke the line within what is
    sought.
    """
    if layout.width:
        lines = wrapped.lines_of(layout.width, data)
    else:
        lines = itertools.chain(cuts.lines_of(data, layout.table) if layout.cut else (), shuffled.lines_of(data))
    found = []
    for begin, end, text, shown in lines:
        named = tuple(
            literal for literal in literals if literal in text and not any(literal in piece for piece in shown)
        )
        if named:
            found.append((begin, end, named, 0))
    return found


def _named(hits: Sequence[Hit], literals: Sequence[str]) -> list[Named]:
    return [(hit.start, hit.end, tuple(literals[index] for index in hit.literals), hit.more) for hit in hits]


def _repeats(hits: Sequence[Named], read: Read) -> tuple[list[Named], int]:
    """Hits whose line stands for several count as often; lines that are hit for that alone are counted and let go."""
    kept: list[Named] = []
    lost = 0
    for start, end, named, more in hits:
        if evidence.REPEATED in named:
            times = _REPEATED.search(read(start, end - start))
            others = int(times[1]) - 1 if times else 0
            lost += others
            more += others
            if len(named) == 1:
                continue
        kept.append((start, end, named, more))
    return kept, lost


def _left_out(source: Source, lost: int) -> list[Warning]:
    if not lost:
        return []
    message = (
        f"Ray left out {lost} or more lines of other workers that were like one it printed; RAY_DEDUP_LOGS=0 keeps them"
    )
    return [Warning("repeated-lines", source.name, message)]


def opening_of(name: str, scan: Scanned, year: int) -> Opening:
    """How the lines of a source are dressed, told from the first and the last, and what the first say."""
    head = scan.head[: max(0, scan.size - len(scan.tail))]  # of a small source the tail is the whole
    layout = layout_of(head, scan.tail) if head else layout_of(scan.tail)
    said = words(scan.head, 0, year, layout, one=origin_of(name).rank is not None)[:_READ_HEAD_LINES]
    return Opening(layout, year, tuple(said))


def text_of(source: Source, scan: Scanned, read: Read, gathered: Harvest) -> Text:
    """A source as lines, dressed as they were when its facts were read."""
    layout = opening_of(source.name, scan, gathered.year).layout if source.name in gathered.dressed else PLAIN
    return Text(source.name, read, scan.size, gathered.year, layout)


def _edges(
    source: Source, scan: Scanned, read: Read, year: int, opening: Opening
) -> tuple[Sequence[Word], Sequence[Word], Sequence[Word]]:
    """The first words of a source, the last, and further back the last of writers whom its end does not show."""
    layout = opening.layout
    one = origin_of(source.name).rank is not None
    head = opening.words if len(scan.tail) < scan.size else ()
    tail = words(scan.tail, scan.size - len(scan.tail), year, layout, one=one)
    absent = set() if one else {word.writer for word in head} - {word.writer for word in tail}
    return head, tail, back(read, scan.size - len(scan.tail), sorted(absent), year, layout) if absent else ()


def _learn_addresses(job: JobMap, text: str) -> None:
    using = "\n".join(
        line for line in text.split("\n") if ": Using " in line
    )  # the pattern is slow on lines that say nothing of it
    for match in _ADDRESS.finditer(using):
        job.addresses[match[2]].add(short(match[1]))
    for match in _DEVICE.finditer(text) if "userRank[" in text else ():
        job.by_device[(match[2], int(match[3]))].add(int(match[1]))


def _learn(result: Harvest, fact: Evidence) -> None:
    result.job.learn(fact.source, fact.origin)
    if any(trigger in fact.text for trigger in maps.TRIGGERS):
        event = maps.take(result.job, fact.source, fact.origin, fact.text)
        result.moments += [(event, fact.source, fact.origin)] if event else []
    elif "version" in fact.text or "clients joined" in fact.text or "orld" in fact.text:
        _learn_text(result, fact.source, fact.text)
    work = _COLLECTIVE.search(fact.text)
    if work is not None and fact.origin.time is not None:
        entered = fact.origin.time - int(work[3]) / 1000
        result.moments.append((f"collective {work[1]} {work[2]}", fact.source, replace(fact.origin, time=entered)))


def _learn_text(result: Harvest, source: str, text: str) -> None:
    maps.take_text(result.job, source, text)
    lower = text.lower()
    for name, needed, pattern in _VERSIONS:
        if not any(word in lower for word in needed):
            continue
        lines = (
            line for line in text.split("\n") if any(word in line.lower() for word in needed)
        )  # the patterns are slow on all others
        found = next(filter(None, map(pattern.search, lines)), None)
        if found is not None:
            version = next(group for group in found.groups() if group)
            result.versions.setdefault(name, version)
            result.stated.setdefault(name, set()).add(version)


def _compare_clocks(result: Harvest) -> None:
    """Steps of a synchronous training, communicators that are ready and collectives that ranks wait in are the same
    moment on every host.
    """
    steps = [
        (f"step {word.step}", source, word.origin)
        for source, word in (*result.heads, *result.words)
        if word.step is not None
    ]
    for event, source, origin in (*steps, *result.moments):
        host = result.job.complete(source, origin).host
        result.job.clocks.see(event, short(host) if host else None, origin.time)


def _is_map(fact: Evidence) -> bool:
    triggers = (trigger for trigger in evidence.MAP_TRIGGERS if trigger != evidence.REPEATED)
    # When each rank asked for a group of HCCL is a fact of its own.
    return (
        fact.kind == "message" and "Entry-Hccl" not in fact.text and any(trigger in fact.text for trigger in triggers)
    )


def _limits(source: Source, scan: Scanned) -> list[Warning]:
    warnings = []
    if scan.sampled:
        warnings.append(
            Warning(
                "storm",
                source.name,
                f"{scan.sampled / 1e6:.0f} MB are so full of failure lines that they were sampled: counts are at least, not exactly, what is said",
            )
        )
    if scan.dropped_windows:
        warnings.append(
            Warning(
                "context-limit",
                source.name,
                f"{scan.dropped_windows} regions around failures were not kept; unpack the file and ingest it again to see them",
            )
        )
    return warnings


def year_of(scanned: Sequence[tuple[Source, Scanned]]) -> int:
    """For stamps without a year: the first year that any source states, else that of the newest file."""
    for _, scan in scanned:
        found = _YEAR.search(scan.head) or _YEAR.search(scan.tail)
        if found is not None:
            return int(found[1])
    newest = max((source.mtime for source, _ in scanned if source.mtime), default=0.0)
    return time.gmtime(newest).tm_year
