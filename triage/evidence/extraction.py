"""From scanned sources to the facts of a job: blocks around every hit, the map of ranks, the activity of each rank."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

import msgspec

from triage import evidence
from triage.base.forks import LocalProcesses, RemoteUnits, SharedWork, WorkSharer
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.evidence import described_pods, harmless_signs, headings, learn_job, provoked, ras
from triage.evidence.earlier_extractions import EarlierExtractions, with_earlier
from triage.evidence.endings.extraction import find_endings
from triage.evidence.endings.unread_lines import find_unread_endings
from triage.evidence.year import guess_year
from triage.model import DETAILS, Evidence, Origin, Source, Warning
from triage.ranks import terminal_wrap, word_wrap
from triage.ranks.file_names import find_root, is_process_snapshot, parse_file_name
from triage.ranks.host_orders import HostOrder
from triage.ranks.identity import JobMap, short_host
from triage.ranks.layouts import PLAIN, Layout, detect_layout
from triage.ranks.separate_groups import Membership
from triage.records import (
    deinterleave,
    headerless,
    host_pairs,
    line_cuts,
    memberships,
    pairing_lines,
)
from triage.records.activity import Activity, find_earlier_activity, read_activity
from triage.records.blocks import Named, build_blocks
from triage.records.earlier_ends import find_earlier_ends, find_last_end
from triage.records.host_order_lines import find_host_orders
from triage.records.sections import read_section_ends
from triage.records.text import Line, Text
from triage.records.tracebacks import HEADER
from triage.scan.interface import Hit, ScanResult

Read = Callable[[int, int], bytes]

_REPEATED = lazy_re(rb"\[repeated (\d{1,7})x across cluster\]")
_READ_HEAD_LINES = 60
_SHARED_START = 1 << 16
_REPORTS_OF_WAITING = frozenset(("Watchdog caught collective operation timeout", "Timed out waiting"))
# From so many hits on, of which a file costs some, several processes are faster than one.
_WORTH_FORKING = 400
_FILE = 5


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What is known of a source from its first lines: its layout, and the activity of its first writers.

    It stays valid while the source grows. `year` is for timestamps without one. `has_one_writer`: its name is that of
    a rank.
    """

    layout: Layout
    year: int
    head_activity: tuple[Activity, ...]
    has_one_writer: bool = False


@dataclass(frozen=True, slots=True)
class ExtractedSource:
    """What one source gives without the others: the activity at its start and end, and its facts.

    `earlier` is the activity, further back, of writers that its end does not show. `lost` counts lines that Ray left
    out. `is_wrapped`: its lines stand in log wrappers that other files have not. `pairings` are what its lines join,
    `host_pairs` the names of one host. `stating_lines` are the first lines that may state a version, an address or the
    size of the job. `is_snapshot`: it shows a process from outside, and no process wrote it.
    """

    head: tuple[Activity, ...]
    tail: tuple[Activity, ...]
    earlier: tuple[Activity, ...]
    facts: tuple[Evidence, ...]
    lost: int
    is_wrapped: bool
    pairings: tuple[pairing_lines.Pairing, ...] = ()
    host_pairs: tuple[host_pairs.HostPair, ...] = ()
    host_orders: tuple[HostOrder, ...] = ()
    memberships: tuple[Membership, ...] = ()
    stating_lines: str = ""
    is_snapshot: bool = False


@dataclass
class ExtractedJob:
    """Everything read from the texts of a job, before any reasoning.

    `versions` has the first version of each program that any text states, `stated_versions` all of them.
    `shared_events` are (event, source, origin) of events that all hosts see at the same moment. `year` is for
    timestamps without one. `wrapped_sources` are those whose lines stand in log wrappers.
    """

    facts: list[Evidence] = field(default_factory=list)
    job: JobMap = field(default_factory=JobMap)
    activity: list[tuple[str, Activity]] = field(default_factory=list)
    head_activity: list[tuple[str, Activity]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    stated_versions: dict[str, set[str]] = field(default_factory=dict)
    shared_events: list[tuple[str, str, Origin]] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    year: int = 1970
    wrapped_sources: set[str] = field(default_factory=set)


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

    def read(number: int) -> ExtractedSource:
        source, scan = scanned[number]
        known = contexts.get(source.name)
        context = known if known is not None and known.year == year else make_context(source.name, scan, year, root)
        return extract_source(source, scan, literals, read_of(source, scan), context, small=small)

    def extract(numbers: Sequence[int]) -> Iterator[ExtractedSource]:
        is_much = sharer.is_remote or sum(_FILE + len(scanned[number][1].hits) for number in numbers) > _WORTH_FORKING

        def describe() -> RemoteUnits:
            from triage.evidence.remote_extraction import describe_extraction

            return describe_extraction([scanned[number] for number in numbers], literals, year, root, small=small)

        work = SharedWork(lambda index: read(numbers[index]), len(numbers), pack, unpack, describe)
        return (sharer if is_much else LocalProcesses()).map(work)

    sources = with_earlier(earlier, [source for source, _ in scanned], (year, root, small), extract)
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


def extract_source(
    source: Source, scan: ScanResult, literals: Sequence[str], read: Read, context: SourceContext, *, small: bool
) -> ExtractedSource:
    """Extract everything that one source gives without the others. `small`: all are, so that it may be read whole."""
    layout = context.layout
    head, tail, earlier = _read_activity(source, scan, literals, read, context)
    text = Text(source.name, read, scan.size, context.year, layout)
    hits, lost = _count_repeats(_with_literals(scan.hits, literals), read)
    if layout.is_joined or len(scan.tail) == scan.size:  # it is small: the tail is all of it
        hits = sorted([*hits, *_find_broken_hits(scan.tail, layout, literals)])
    tracebacks = _find_headerless(source, scan, read, context) if small else ()
    endings = _find_endings(text, source, scan, read, earlier)
    hits = sorted([*hits, *endings.hits]) if endings.hits else hits
    hits = sorted([*hits, *find_unread_endings(scan, endings.facts, hits, literals)]) if scan.sampled else hits
    facts: list[Evidence] = []
    for block, more in build_blocks(text, hits, tracebacks):
        extracted = headings.extract_below_heading(block, text, read)
        if extracted and more:
            extracted[-1:] = [evidence.add_count(extracted[-1], more)]
        facts += extracted
    facts += ras.without_report_lines(endings.facts, facts)
    facts = described_pods.place_on_nodes(facts, text, read)
    facts = harmless_signs.mark_harmless(provoked.mark_provoked(facts, text, scan.tail), text)
    ends = text, _read_start(source, scan, read, context), scan.tail, scan.size - len(scan.tail)
    return ExtractedSource(
        tuple(head), tuple(tail), tuple(earlier), tuple(facts), lost, layout.is_wrapped,
        pairing_lines.find_pairings(*ends), host_pairs.find_host_pairs(*ends),
        find_host_orders(*ends), _find_memberships(source, scan, read, text), learn_job.find_stating_lines(scan.head),
        is_process_snapshot(source.name, scan.head or scan.tail),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Endings:
    """The endings in a source, and hits for the exceptions that its last records hold as objects."""

    facts: tuple[Evidence, ...] = ()
    hits: tuple[Named, ...] = ()


def _find_endings(text: Text, source: Source, scan: ScanResult, read: Read, earlier: Sequence[Activity]) -> _Endings:
    """Look for endings at the end of a source that processes wrote."""
    if is_process_snapshot(source.name, scan.head or scan.tail):
        return _Endings()
    facts, quoting = find_endings(text, scan, read, [activity.offset for activity in earlier])
    return _Endings(tuple(facts), tuple((line.offset, line.end, (HEADER,), 0) for line in quoting))


def pack(extracted: ExtractedSource) -> Any:
    """Return what one process sends to another, as JSON can carry it: a detail stands behind the name of its class."""
    packed = msgspec.to_builtins(extracted)
    for row, fact in zip(packed["facts"], extracted.facts, strict=True):
        if fact.detail is not None:
            row["detail"] = [type(fact.detail).__name__, row["detail"]]
    return packed


def unpack(packed: Any) -> ExtractedSource:
    """Return what was packed."""
    return msgspec.convert(packed, ExtractedSource, dec_hook=lambda kind, row: msgspec.convert(row[1], DETAILS[row[0]]))


def _add_source(result: ExtractedJob, source: Source, scan: ScanResult, extracted: ExtractedSource) -> None:
    """Add one source to the job: its first and last lines map its ranks, and the last show how far each rank came."""
    result.job.learn(source.name, Origin())
    for activity in (*extracted.head, *extracted.tail):
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
    result.wrapped_sources |= {source.name} if extracted.is_wrapped else set()
    result.warnings.extend(_warnings(source, scan, extracted.lost))


def _find_memberships(source: Source, scan: ScanResult, read: Read, text: Text) -> tuple[Membership, ...]:
    """Return which ranks of how many the processes of a source say that they are."""
    if is_process_snapshot(source.name, scan.head or scan.tail):
        return ()
    tail_offset = scan.size - len(scan.tail)
    start = read(0, min(tail_offset, memberships.START_BYTES)) if tail_offset and source.path else scan.head
    return memberships.find_memberships(text, start, scan.tail, tail_offset)


def _find_headerless(source: Source, scan: ScanResult, read: Read, context: SourceContext) -> list[list[Line]]:
    """Return the tracebacks of a source that has no header line of one, where it can be read whole."""
    data = scan.tail if len(scan.tail) >= scan.size else read(0, scan.size) if source.path is not None else b""
    if headerless.FRAME_HINT not in data or HEADER.encode() in data:
        return []

    def read_data(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    text = Text(source.name, read_data, len(data), context.year, context.layout)
    return list(headerless.find_headerless_tracebacks(text))


def _find_broken_hits(data: bytes, layout: Layout, literals: Sequence[str]) -> list[Named]:
    """Return hits that the scan missed, because a terminal, a collector or another writer broke the line inside the
    literal.
    """
    if layout.width:
        lines = terminal_wrap.find_joined_lines(layout.width, data)
    elif layout.word_width:
        lines = word_wrap.find_joined_lines(layout.word_width, data)
    else:
        lines = itertools.chain(
            line_cuts.find_joined_lines(data, layout.table) if layout.cuts_lines else (),
            deinterleave.find_interleaved_lines(data),
        )
    hits = []
    for begin, end, text, pieces in lines:
        named = tuple(
            literal for literal in literals if literal in text and not any(literal in piece for piece in pieces)
        )
        if named:
            hits.append((begin, end, named, 0))
    return hits


def _with_literals(hits: Sequence[Hit], literals: Sequence[str]) -> list[Named]:
    return [(hit.start, hit.end, tuple(literals[index] for index in hit.literals), hit.omitted) for hit in hits]


def _count_repeats(hits: Sequence[Named], read: Read) -> tuple[list[Named], int]:
    """Return the hits with the repeats that Ray counts in their lines, without lines that are hit for that alone; and
    the number of all repeats.
    """
    counted: list[Named] = []
    lost = 0
    for start, end, named, more in hits:
        others = 0
        if evidence.REPEATED in named:
            times = _REPEATED.search(read(start, end - start))
            others = int(times[1]) - 1 if times else 0
            lost += others
        if named != (evidence.REPEATED,):
            counted.append((start, end, named, more + others))
    return counted, lost


def make_context(name: str, scan: ScanResult, year: int, root: str = "") -> SourceContext:
    """Return the layout of a source, from its first and last lines, and the activity in the first.

    `root` is the start of the name that all sources share.
    """
    head = scan.head[: max(0, scan.size - len(scan.tail))]  # of a small source the tail is the whole
    layout = detect_layout(head, scan.tail) if head else detect_layout(scan.tail)
    has_one_writer = parse_file_name(name, root).rank is not None
    activity = read_activity(scan.head, 0, year, layout, one=has_one_writer)[:_READ_HEAD_LINES]
    return SourceContext(layout, year, tuple(activity), has_one_writer)


def source_text(source: Source, scan: ScanResult, read: Read, extracted: ExtractedJob) -> Text:
    """Return a source as lines, in the layout in which its facts were read."""
    is_wrapped = source.name in extracted.wrapped_sources
    layout = make_context(source.name, scan, extracted.year).layout if is_wrapped else PLAIN
    return Text(source.name, read, scan.size, extracted.year, layout)


def _read_activity(
    source: Source, scan: ScanResult, literals: Sequence[str], read: Read, context: SourceContext
) -> tuple[Sequence[Activity], Sequence[Activity], Sequence[Activity]]:
    """Return the activity at the start and the end of a source, and the earlier activity of writers whom its end does
    not show: those that wrote long ago, and those before the reports of ranks that gave up waiting.
    """
    layout, year, has_one_writer = context.layout, context.year, context.has_one_writer
    tail_start = scan.size - len(scan.tail)
    head = context.head_activity if tail_start > 0 else ()
    tail = read_activity(scan.tail, tail_start, year, layout, one=has_one_writer)
    writers = {each.writer for each in context.head_activity if each.writer}
    has_labels = not has_one_writer and len(writers | {each.writer for each in tail if each.writer}) > 1
    if has_labels:
        tail = read_activity(scan.tail, tail_start, year, layout, by_prefix=True)
    absent = set() if has_one_writer else {each.writer for each in head} - {each.writer for each in tail}
    earlier = find_earlier_activity(read, tail_start, sorted(absent), year, layout) if absent else []
    if has_labels:
        earlier = sorted([*earlier, *read_section_ends(read, tail_start, year, layout)], key=lambda each: each.offset)
    end = min(_start_of_reports(scan, literals), tail_start)
    if end > 0 and not has_one_writer:
        start = max(0, end - len(scan.tail))
        before = read_activity(read(start, end - start), start, year, layout)
        earlier = sorted([*before, *earlier], key=lambda activity: activity.offset)
    if tail_start > 0 and not has_one_writer:
        processes = {(each.origin.host, each.origin.rank, each.origin.pid) for each in (*context.head_activity, *tail)}
        several = max(len(writers), len(processes))
        if several > 1 and not any(each.end_text for each in (*earlier, *tail)):
            earlier = [*earlier, *find_last_end(read, tail_start, several, year, layout)]
        ends = find_earlier_ends(read, scan.size, [*earlier, *tail], year, layout)
        earlier = sorted([*ends, *earlier], key=lambda activity: activity.offset)
    return head, tail, earlier


def _read_start(source: Source, scan: ScanResult, read: Read, context: SourceContext) -> bytes:
    """Return the start of a source; where several ranks write, more of it, because each introduces itself."""
    is_of_worker = context.has_one_writer or parse_file_name(source.name, "").local_rank is not None
    return scan.head if is_of_worker or source.path is None else read(0, min(scan.size, _SHARED_START))


def _start_of_reports(scan: ScanResult, literals: Sequence[str]) -> int:
    """Return the offset of the first report of a rank that gave up waiting, which may fill the end of a source."""
    hits = (hit for hit in scan.hits if any(literals[index].strip() in _REPORTS_OF_WAITING for index in hit.literals))
    return min((hit.start for hit in hits), default=0)


def _compare_clocks(result: ExtractedJob) -> None:
    """Compare the clocks of hosts by events that all see at once: steps, ready communicators, collectives entered."""
    steps = [
        (f"step {activity.step}", source, activity.origin)
        for source, activity in (*result.head_activity, *result.activity)
        if activity.step is not None
    ]
    for event, source, origin in (*steps, *result.shared_events):
        host = result.job.complete(source, origin).host
        result.job.clocks.add_event(event, short_host(host) if host else None, origin.time)


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
