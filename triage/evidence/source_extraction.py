"""From one scanned source to its facts: blocks around every hit, last lines, and the activity of its writers."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence

from triage import evidence
from triage.base.lazy_dataclass import dataclass, replace
from triage.base.lazy_re import lazy_re
from triage.evidence import described_pods, harmless_signs, headings, learn_job, provoked, ras
from triage.evidence.endings.extraction import find_endings, find_reported_exits, find_stated_exits
from triage.evidence.endings.unread_lines import find_unread_endings
from triage.evidence.extracted import ExtractedSource, Read, SourceContext
from triage.evidence.settings import may_state_settings
from triage.model import EndingDetail, Evidence, Source
from triage.ranks import terminal_wrap, word_wrap
from triage.ranks.file_names import is_process_snapshot, parse_file_name
from triage.ranks.layouts import Layout, detect_layout
from triage.ranks.separate_groups import Membership
from triage.records import deinterleave, headerless, host_pairs, line_cuts, memberships, pairing_lines
from triage.records.activity import Activity, find_earlier_activity, read_activity
from triage.records.blocks import Named, build_blocks
from triage.records.earlier_ends import find_earlier_ends, find_last_end
from triage.records.host_order_lines import find_host_orders
from triage.records.sections import read_section_ends
from triage.records.text import Line, Text
from triage.records.tracebacks import HEADER
from triage.scan.interface import Hit, ScanResult

_LOGGED_CALL = b": opCount "  # NCCL's lines with NCCL_DEBUG_SUBSYS=COLL
_REPEATED = lazy_re(rb"\[repeated (\d{1,7})x across cluster\]")
_READ_HEAD_LINES = 60
_SHARED_START = 1 << 16
_REPORTS_OF_WAITING = frozenset(("Watchdog caught collective operation timeout", "Timed out waiting"))


def extract_source(
    source: Source,
    scan: ScanResult,
    literals: Sequence[str],
    read: Read,
    context: SourceContext,
    *,
    small: bool,
    searched: int,
) -> ExtractedSource:
    """Extract everything that one source gives without the others.

    `small`: all are, so that it may be read whole. `searched` bytes of its start may state settings.
    """
    layout = context.layout
    read = read_from_tail(read, scan) if source.path is not None else read
    head, tail, earlier = _read_activity(source, scan, literals, read, context)
    text = Text(source.name, read, scan.size, context.year, layout)
    hits, lost = _count_repeats(_with_literals(scan.hits, literals), read)
    if layout.is_joined or len(scan.tail) == scan.size:  # it is small: the tail is all of it
        hits = sorted([*hits, *_find_broken_hits(scan.tail, layout, literals)])
    tracebacks = _find_headerless(source, scan, read, context) if small else ()
    endings = _find_endings(text, source, scan, literals, read, earlier)
    hits = sorted([*hits, *endings.hits]) if endings.hits else hits
    hits = sorted([*hits, *find_unread_endings(scan, endings.facts, hits, literals)]) if scan.sampled else hits
    facts: list[Evidence] = []
    for block, more in build_blocks(text, hits, tracebacks):
        extracted = headings.extract_below_heading(block, text, read)
        if extracted and more:
            extracted[-1:] = [evidence.add_count(extracted[-1], more)]
        facts += extracted
    facts += _mark_alone(ras.without_report_lines(endings.facts, facts), facts)
    facts = described_pods.place_pods(facts, text, read, scan.size)
    facts = harmless_signs.mark_harmless(provoked.mark_provoked(facts, text, scan.tail), text)
    silent, unread = _find_unread_ranks(scan, read, context, facts, (*head, *tail, *earlier))
    earlier = sorted([*earlier, *unread], key=lambda activity: activity.offset)
    ends = text, _read_start(source, scan, read, context), scan.tail, scan.size - len(scan.tail)
    return ExtractedSource(
        tuple(head), tuple(tail), tuple(earlier), tuple(facts), lost, layout.is_wrapped,
        pairing_lines.find_pairings(*ends), host_pairs.find_host_pairs(*ends),
        find_host_orders(*ends), _find_memberships(source, scan, read, text), learn_job.find_stating_lines(scan.head),
        is_process_snapshot(source.name, scan.head or scan.tail),
        may_state_settings(_read_searched(source, scan, read, searched)),
        _LOGGED_CALL in scan.tail or _LOGGED_CALL in scan.head,
        silent,
    )  # fmt: skip


def _find_unread_ranks(
    scan: ScanResult, read: Read, context: SourceContext, facts: Sequence[Evidence], activity: Sequence[Activity]
) -> tuple[tuple[int, ...], list[Activity]]:
    """Return the ranks between others that wrote nothing, and the last activity of those that did."""
    if context.has_one_writer:
        return (), []
    origins = itertools.chain((fact.origin for fact in facts), (each.origin for each in activity))
    ranks = {origin.rank for origin in origins if origin.rank is not None}
    if not ranks or len(ranks) == max(ranks) - min(ranks) + 1:
        return (), []
    from triage.records import unread_ranks  # few jobs lack a rank

    unread = unread_ranks.list_unread_ranks(ranks)
    if not unread:
        return (), []
    last = unread_ranks.find_last_activity(read, scan.size, unread, activity, context.year, context.layout)
    if last is None:
        return (), []
    return tuple(sorted(set(unread) - {each.origin.rank for each in last})), last


def read_from_tail(read: Read, scan: ScanResult) -> Read:
    """Return a function that reads what `read` does, and takes from memory what the end of the source holds.

    What may have grown behind it is read.
    """
    tail, size = scan.tail, scan.size
    start = size - len(tail)

    def read_at(offset: int, length: int) -> bytes:
        is_held = start <= offset and offset + length <= size
        return tail[offset - start : offset - start + length] if is_held else read(offset, length)

    return read_at


def make_context(name: str, scan: ScanResult, year: int, root: str = "") -> SourceContext:
    """Return the layout of a source, from its first and last lines, and the activity in the first.

    `root` is the start of the name that all sources share.
    """
    head = scan.head[: max(0, scan.size - len(scan.tail))]  # of a small source the tail is the whole
    layout = detect_layout(head, scan.tail) if head else detect_layout(scan.tail)
    has_one_writer = parse_file_name(name, root).rank is not None
    activity = read_activity(scan.head, 0, year, layout, one=has_one_writer)[:_READ_HEAD_LINES]
    return SourceContext(layout, year, tuple(activity), has_one_writer)


@dataclass(frozen=True, slots=True)
class _Endings:
    """The endings in a source, and hits for the exceptions that its last records hold as objects."""

    facts: tuple[Evidence, ...] = ()
    hits: tuple[Named, ...] = ()


def _find_endings(
    text: Text, source: Source, scan: ScanResult, literals: Sequence[str], read: Read, earlier: Sequence[Activity]
) -> _Endings:
    """Look for endings at the end of a source that processes wrote."""
    if is_process_snapshot(source.name, scan.head or scan.tail):
        return _Endings()
    offsets = [activity.offset for activity in earlier] + find_stated_exits(scan)
    facts, quoting = find_endings(text, scan, read, offsets, find_reported_exits(scan, literals))
    return _Endings(tuple(facts), tuple((line.offset, line.end, (HEADER,), 0) for line in quoting))


def _mark_alone(endings: Iterable[Evidence], facts: Sequence[Evidence]) -> Iterator[Evidence]:
    """Yield the endings, marked where none of the facts stands among their lines."""
    offsets = sorted(fact.offset for fact in facts)
    for ending in endings:
        detail = ending.detail
        if isinstance(detail, EndingDetail):
            next_fact = bisect.bisect_left(offsets, detail.first)
            is_alone = next_fact == len(offsets) or offsets[next_fact] > ending.end
            yield replace(ending, detail=replace(detail, alone=is_alone))
        else:
            yield ending


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


def _read_searched(source: Source, scan: ScanResult, read: Read, searched: int) -> bytes:
    """Return the start of a source that is searched for settings."""
    is_more = source.path is not None and len(scan.head) < min(searched, scan.size)
    return read(0, searched) if is_more else scan.head


def _start_of_reports(scan: ScanResult, literals: Sequence[str]) -> int:
    """Return the offset of the first report of a rank that gave up waiting, which may fill the end of a source."""
    hits = (hit for hit in scan.hits if any(literals[index].strip() in _REPORTS_OF_WAITING for index in hit.literals))
    return min((hit.start for hit in hits), default=0)
