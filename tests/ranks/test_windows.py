"""triage.ranks.windows"""

from __future__ import annotations

import random
import zlib

from hypothesis import given
from hypothesis import strategies as st

from triage.ranks.windows import Windows
from triage.scan.interface import CELL, Scanned, Window

DATA = b"".join(b"%d a line\n" % number for number in range(150_000))
COUNT = -(-len(DATA) // CELL)
STARTS = tuple((cell * CELL, DATA.count(b"\n", 0, cell * CELL)) for cell in range(COUNT))


def windows(kept: set[int]) -> Windows:
    """DATA as a stream of which these cells were kept."""
    packed = tuple(
        Window(cell * CELL, zlib.compress(DATA[cell * CELL : (cell + 1) * CELL], 1)) for cell in sorted(kept)
    )
    return Windows(Scanned((), len(DATA), b"", b"", windows=packed, newlines=STARTS))


@given(st.sets(st.integers(0, COUNT - 1)), st.integers(0, len(DATA) + 10), st.integers(0, 3 * CELL))
def test_reading_stops_at_the_first_gap(kept: set[int], offset: int, length: int) -> None:
    """What was kept reads as it was, what was not as nothing, and nothing is joined across a gap."""
    cell = offset // CELL
    while cell in kept:
        cell += 1
    assert windows(kept).read(offset, length) == DATA[offset : max(offset, min(offset + length, cell * CELL))]


@given(st.integers(0, len(DATA) - 1))
def test_line_numbers_are_those_of_the_whole_stream(offset: int) -> None:
    """1-based, with only the cell of the offset at hand."""
    assert windows({offset // CELL}).line_number(offset) == DATA.count(b"\n", 0, offset) + 1


def test_reading_back_and_forth_is_right() -> None:
    """Cells that were let go are unpacked again."""
    text = windows(set(range(COUNT)))
    random_ = random.Random(1)
    for _ in range(60):
        offset = random_.randrange(len(DATA))
        assert text.read(offset, 50) == DATA[offset : offset + 50]


def test_a_stream_without_cells_reads_as_nothing() -> None:
    """Nothing kept, nothing read, and the first line is line 1."""
    empty = Windows(Scanned((), 0, b"", b""))
    assert empty.read(0, 10) == b""
    assert empty.line_number(0) == 1
