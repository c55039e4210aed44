"""From scanned sources to the facts of a job: what each source gives, the map of ranks, the activity of each rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from triage.base.forks import LocalProcesses, RemoteUnits, SharedWork, WorkSharer
from triage.evidence import learn_job
from triage.evidence.earlier_extractions import EarlierExtractions, with_earlier
from triage.evidence.extracted import ExtractedJob, ExtractedSource, Read, SourceContext, pack, unpack
from triage.evidence.settings import round_start_bytes
from triage.evidence.source_extraction import extract_source, make_context
from triage.evidence.year import guess_year
from triage.model import Evidence, Origin, Source, Warning
from triage.ranks.file_names import find_root
from triage.ranks.identity import JobMap, short_host
from triage.ranks.layouts import PLAIN
from triage.ranks.places import place_each
from triage.records import headerless, host_pairs, pairing_lines
from triage.records.text import Text
from triage.scan.interface import ScanResult

# From so many hits on, of which a file costs some, several processes are faster than one.
_WORTH_FORKING = 400
_FILE = 5


def extract_job(
    scanned: Sequence[tuple[Source, ScanResult]],
    literals: Sequence[str],
    read_of: Callable[[Source, ScanResult], Read],
    artifacts: Sequence[Evidence] = (),
    contexts: Mapping[str, SourceContext] = MappingProxyType({}),
    sharer: WorkSharer = LocalProcesses(),
    advance: Callable[[int], None] = lambda size: None,
    paths: Sequence[str] = (),
    earlier: EarlierExtractions[ExtractedSource] | None = None,
) -> ExtractedJob:
    """Extract the facts of every source, in the order given (sorted by name).

    The evidence of `artifacts` helps to place ranks. `contexts` are those of sources that were read before. `advance`
    is called with the size of each source when it is done. `paths` are those that the user gave: names above them say
    nothing. `earlier` knows what sources gave in an earlier run.
    """
    year = guess_year(scanned)
    root = find_root(paths, {source.name for source, _ in scanned})
    result = ExtractedJob(year=year, job=JobMap(root=root))
    small = sum(scan.size for _, scan in scanned) <= headerless.SMALL
    searched = round_start_bytes(len(scanned))

    def read(number: int) -> ExtractedSource:
        source, scan = scanned[number]
        known = contexts.get(source.name)
        context = known if known is not None and known.year == year else make_context(source.name, scan, year, root)
        return extract_source(source, scan, literals, read_of(source, scan), context, small=small, searched=searched)

    def extract(numbers: Sequence[int]) -> Iterator[ExtractedSource]:
        is_much = sharer.is_remote or sum(_FILE + len(scanned[number][1].hits) for number in numbers) > _WORTH_FORKING

        def describe() -> RemoteUnits:
            from triage.evidence.remote_extraction import describe_extraction

            chosen = [scanned[number] for number in numbers]
            return describe_extraction(chosen, literals, year, root, small=small, searched=searched)

        unpack_next = partial(unpack, shared={})
        work = SharedWork(lambda index: read(numbers[index]), len(numbers), pack, unpack_next, describe)
        return (sharer if is_much else LocalProcesses()).map(work)

    sources = with_earlier(earlier, [source for source, _ in scanned], (year, root, small, searched), extract)
    for (source, scan), extracted in zip(scanned, sources, strict=True):
        _add_source(result, source, scan, extracted)
        advance(scan.size)
    result.job.unify_hosts()
    _compare_clocks(result)
    result.job.resolve()
    _learn_artifacts(result.job, artifacts)
    return result


def _learn_artifacts(job: JobMap, artifacts: Sequence[Evidence]) -> None:
    for fact in artifacts:
        job.learn(fact.source, fact.origin)
        size = fact.fields.get("WORLD_SIZE", "")
        if fact.kind == "environment" and "RANK" in fact.fields and size.isdecimal():
            job.sizes.add(int(size))


def _add_source(result: ExtractedJob, source: Source, scan: ScanResult, extracted: ExtractedSource) -> None:
    """Add one source to the job: its first and last lines map its ranks, and the last show how far each rank came."""
    result.job.learn(source.name, Origin())
    for activity in (*extracted.head, *extracted.earlier, *extracted.tail):
        result.job.learn(source.name, activity.origin)
    for pairing in extracted.pairings:
        pairing_lines.learn_pairing(result.job, source.name, pairing)
    for pair in extracted.host_pairs:
        host_pairs.learn_host_pair(result.job, source.name, pair)
    result.job.orders.update(extracted.host_orders)
    result.job.memberships.extend((source.name, one) for one in extracted.memberships)
    if not extracted.is_snapshot:
        result.activity.extend((source.name, activity) for activity in (*extracted.earlier, *extracted.tail))
        result.head_activity.extend((source.name, activity) for activity in extracted.head)
    learn_job.learn_from_text(result, source.name, extracted.stating_lines)
    learn_job.learn_addresses(result.job, extracted.stating_lines)
    for fact in extracted.facts:
        learn_job.learn_from_fact(result, fact)
    result.facts.extend(fact for fact in extracted.facts if not learn_job.is_identity_line(fact))
    result.job.has_gaps |= scan.sampled > 0
    result.job.silent_ranks.update(extracted.silent_ranks)
    for names, has in (
        (result.wrapped_sources, extracted.is_wrapped),
        (result.sources_with_settings, extracted.may_state_settings),
        (result.sources_with_calls, extracted.has_logged_calls),
    ):
        if has:
            names.add(source.name)
    result.warnings.extend(_warnings(source, scan, extracted.lost))


def source_text(source: Source, scan: ScanResult, read: Read, extracted: ExtractedJob) -> Text:
    """Return a source as lines, in the layout in which its facts were read."""
    is_wrapped = source.name in extracted.wrapped_sources
    layout = make_context(source.name, scan, extracted.year).layout if is_wrapped else PLAIN
    return Text(source.name, read, scan.size, extracted.year, layout)


def _compare_clocks(result: ExtractedJob) -> None:
    """Compare the clocks of hosts by events that all see at once: steps, ready communicators, collectives entered."""
    steps = [
        (f"step {activity.step}", source, activity.origin)
        for source, activity in (*result.head_activity, *result.activity)
        if activity.step is not None
    ]
    events = [event for event in (*steps, *result.shared_events) if event[2].time is not None]
    placed = place_each(result.job.place, ((source, origin) for _, source, origin in events))
    for (event, _, origin), (place, _) in zip(events, placed, strict=True):
        result.job.clocks.add_event(event, short_host(place.host) if place.host else None, origin.time)


def _warnings(source: Source, scan: ScanResult, lost: int) -> Iterator[Warning]:
    if scan.sampled:
        text = f"{scan.sampled / 1e6:.0f} MB were full of failure lines and were sampled: counts are lower bounds"
        yield Warning("storm", source.name, text)
    if scan.dropped_cells:
        regions = f"{scan.dropped_cells} region{'s' if scan.dropped_cells != 1 else ''}"
        text = f"{regions} around failures could not be read back; unpack the file and ingest it again to include them"
        yield Warning("context-limit", source.name, text)
    if lost:
        lines = f"{lost} or more repeated lines"
        text = f"Ray left out {lines} of other workers; set RAY_DEDUP_LOGS=0 to keep them"
        yield Warning("repeated-lines", source.name, text)
