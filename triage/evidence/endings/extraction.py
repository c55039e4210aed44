"""From the end of a source to facts of kind `ending`: at most one for each writer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from triage.base.lazy_dataclass import replace
from triage.base.lazy_re import lazy_re
from triage.evidence.endings import last_lines
from triage.evidence.endings.choice import choose_line, text_of
from triage.evidence.endings.interface import STATEMENT, STATUS
from triage.evidence.endings.last_lines import LastLines, PhysicalLine
from triage.evidence.endings.launcher_tables import without_tables
from triage.evidence.endings.logger_levels import read_level
from triage.evidence.extractor import make_evidence
from triage.evidence.stated_signals import read_stated_signal
from triage.model import Block, EndingDetail, Evidence, Origin
from triage.records.text import Line, Text
from triage.scan.interface import ScanResult

Read = Callable[[int, int], bytes]
_MOST_WRITERS = 4096
# A kernel goes on when a job ends: its last lines are no ends of the job. Seconds in brackets may be a program's, too.
_KERNEL_LAYERS = frozenset(("dmesg -T", "kernel in syslog", "kernel in a journal with ISO stamps"))
_KERNEL_FILE = lazy_re(r"(?:^|/)(?:(?:dmesg|kern(?:el)?)(?:[-_.][^/]*)?|(?:kernel|dmesg)/[^/]*)$")
_LONGEST_RECORD = 4000
_STATUSES = range(STATUS, STATEMENT)
_EXIT_HINTS = (b"exiting with ", b'"fatal"', b"=fatal")
_EXIT = lazy_re(
    rb"\bexiting with (?:exit )?(?:code|status) [1-9]\d{0,9}\W{0,3}$|\"(?:level|lvl|severity)\" ?: ?\"fatal\""
    rb"|(?:^|[ \t\"])(?:level|lvl|severity|sev)=fatal[ \t]"
)
_LONGEST_EXIT = 2000
_MOST_EXITS = 64
_REPORTED_EXIT = "failed (exitcode: "
_MOST_REPORTS = 16


def find_endings(
    text: Text, scan: ScanResult, read: Read, earlier: Sequence[int] = (), reports: Sequence[int] = ()
) -> tuple[list[Evidence], list[PhysicalLine]]:
    """Return the endings of the writers of a source, and their lines in which a record quotes an exception.

    `earlier` has the offsets of the last lines of writers that the end of the source does not show, and `reports` those
    of lines by which a launcher reports how a process ended: the output of another launcher may follow.
    """
    tail_offset = scan.size - len(scan.tail)
    head = scan.head[: max(0, tail_offset)]
    groups = last_lines.find_last_lines(head, scan.tail, tail_offset)[:_MOST_WRITERS]
    shown = {line.offset for group in groups for line in group.lines}
    groups += last_lines.find_earlier_last_lines(head, read, [offset for offset in earlier if offset not in shown])
    middle = last_lines.sample_shapes(read, scan.size) if groups and tail_offset > 0 else None
    if middle:
        groups = [replace(group, lines=last_lines.without_usual(group.lines, middle)) for group in groups]
    for offset in reports:
        shown.update(line.offset for group in groups for line in group.lines)
        before = last_lines.find_last_lines_before(head, read, offset)
        groups += [group for group in before if group.lines[-1].offset not in shown]
    facts, quoting = [], []
    for group in groups:
        fact = _make_ending(text, group) if group.lines else None
        facts += [fact] if fact else []
        quoting += [line for line in group.lines if b'"exc_type"' in line.data]
    return facts, quoting


def _make_ending(text: Text, group: LastLines) -> Evidence | None:
    lines, levels = list[Line](), list[str]()
    for physical in group.lines:
        parsed = text.parse_line(physical.data, physical.offset)
        lines += parsed
        level = read_level(physical.data[:_LONGEST_RECORD].decode("utf-8", "replace"))
        levels += [level or read_level(line.parsed.text) for line in parsed]
    lines, levels = without_tables(lines, levels)
    if not lines:
        return None
    is_of_kernel = _KERNEL_FILE.search(text.name) is not None or all(
        not _KERNEL_LAYERS.isdisjoint(line.parsed.layers) for line in lines
    )
    chosen = choose_line(lines, levels, strong_only=is_of_kernel or group.usual_behind > 0)
    if chosen is None:
        return None
    form = chosen.form
    if form.strength == "unlike" and group.usual is None:
        return None  # nothing is known of the usual output of this writer
    origin, has_own_time = _origin(text, lines, chosen.index, group.usual)
    block = Block(
        source=text.name,
        offset=lines[0].offset,
        end=lines[-1].end,
        headline=lines[chosen.index].offset,
        form="ending",
        lines=tuple(line.parsed.text for line in lines),
        origin=origin,
        has_own_time=has_own_time,
    )
    detail = EndingDetail(form.name, form.runtime, form.strength, lines[0].offset)
    signal = read_stated_signal(lines[chosen.index].parsed.text) if form.weight in _STATUSES else ""
    return make_evidence(block, "ending", form.runtime, text_of(lines, chosen), detail, signal=signal)


def _origin(text: Text, lines: Sequence[Line], index: int, usual: PhysicalLine | None) -> tuple[Origin, bool]:
    """Return who wrote the line, and whether the time is its own. Its record, or the last usual line, may say when."""
    origin = lines[index].parsed.origin
    if origin.time is not None:
        return origin, True
    before = [line.parsed.origin for line in lines[:index]]
    before[:0] = [line.parsed.origin for line in text.parse_line(usual.data, usual.offset)] if usual else []
    times = [other.time for other in before if other.time is not None]
    return replace(origin, time=times[-1] if times else None), False


def find_reported_exits(scan: ScanResult, literals: Sequence[str]) -> list[int]:
    """Return the offsets of the first lines by which torchelastic reports with which code a process ended."""
    hits = (hit.start for hit in scan.hits if any(literals[index] == _REPORTED_EXIT for index in hit.literals))
    return list(itertools.islice(hits, _MOST_REPORTS))


def find_stated_exits(scan: ScanResult) -> list[int]:
    """Return the offsets of the first lines in the end of a source by which a program ends: it says with which code, or
    a logger whose fatal level ends the process wrote them. They are the last lines of their writer, wherever others
    went on to write.
    """
    if not any(hint in scan.tail for hint in _EXIT_HINTS):
        return []
    offsets, start = list[int](), scan.size - len(scan.tail)
    for line in scan.tail.split(b"\n"):
        if any(hint in line for hint in _EXIT_HINTS) and len(line) <= _LONGEST_EXIT and _EXIT.search(line) is not None:
            offsets.append(start)
            if len(offsets) == _MOST_EXITS:
                break
        start += len(line) + 1
    return offsets
