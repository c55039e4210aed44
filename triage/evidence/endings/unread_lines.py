"""Lines of endings that the scan left out, because too many lines of the source report failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triage.model import Evidence
from triage.records.blocks import Named
from triage.scan.interface import ScanResult

_DIGITS = str.maketrans("123456789", "0" * 9)


def find_unread_endings(
    scan: ScanResult, endings: Sequence[Evidence], hits: Sequence[Named], literals: Sequence[str]
) -> list[Named]:
    """Return hits for lines of endings that are not among `hits`, so that signatures match them like those of other
    writers.
    """
    starts = {hit[0] for hit in hits}
    # The endings of thousands of ranks differ in their numbers only.
    shapes = {fact.text.translate(_DIGITS) for fact in endings}
    likely = [literal for literal in literals if any(literal.translate(_DIGITS) in shape for shape in shapes)]
    tail, unread = scan.tail, []
    for fact in endings:
        for start, line in _list_lines(tail, scan.size - len(tail), fact):
            text = line.decode("utf-8", "replace")
            named = tuple(literal for literal in likely if literal in text)
            if named and start not in starts:
                unread.append((start, start + len(line), named, 0))
    return unread


def _list_lines(tail: bytes, tail_offset: int, ending: Evidence) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of an ending, where the end of the source shows it."""
    start = ending.offset
    if start < tail_offset:
        return
    for line in tail[start - tail_offset : ending.end - tail_offset].split(b"\n"):
        yield start, line
        start += len(line) + 1
