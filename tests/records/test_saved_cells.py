"""triage.records.saved_cells"""

from __future__ import annotations

import random
import zlib

from hypothesis import given, strategies as st

from triage.records.saved_cells import SavedCells
from triage.scan.edges import HeldEdges
from triage.scan.interface import CELL, SavedCell, ScanResult

DATA = b"".join(b"%d a line\n" % number for number in range(150_000))
COUNT = -(-len(DATA) // CELL)
STARTS = tuple((cell * CELL, DATA.count(b"\n", 0, cell * CELL)) for cell in range(COUNT))


def cells_of(saved: set[int]) -> SavedCells:
    """Return DATA as a stream with these cells saved."""
    packed = tuple(
        SavedCell(cell * CELL, zlib.compress(DATA[cell * CELL : (cell + 1) * CELL], 1)) for cell in sorted(saved)
    )
    return SavedCells(ScanResult((), len(DATA), HeldEdges(), saved_cells=packed, newlines=STARTS))


@given(st.sets(st.integers(0, COUNT - 1)), st.integers(0, len(DATA) + 10), st.integers(0, 3 * CELL))
def test_reading_stops_at_the_first_gap(saved: set[int], offset: int, length: int) -> None:
    """Saved cells read unchanged, others as nothing, and nothing is joined across a gap."""
    cell = offset // CELL
    while cell in saved:
        cell += 1
    assert cells_of(saved).read(offset, length) == DATA[offset : max(offset, min(offset + length, cell * CELL))]


@given(st.integers(0, len(DATA) - 1))
def test_line_numbers_are_those_of_the_whole_stream(offset: int) -> None:
    """They are 1-based, and need only the cell of the offset."""
    assert cells_of({offset // CELL}).line_number(offset) == DATA.count(b"\n", 0, offset) + 1


def test_cells_are_unpacked_again() -> None:
    """Cells that left the cache can be read again."""
    text = cells_of(set(range(COUNT)))
    random_ = random.Random(1)
    for _ in range(60):
        offset = random_.randrange(len(DATA))
        assert text.read(offset, 50) == DATA[offset : offset + 50]


def test_a_stream_without_cells_is_empty() -> None:
    """Nothing can be read, and the first line is line 1."""
    empty = SavedCells(ScanResult((), 0, HeldEdges()))
    assert empty.read(0, 10) == b""
    assert empty.line_number(0) == 1
