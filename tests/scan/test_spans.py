"""triage.scan.spans"""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import closing
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from triage.records.saved_cells import SavedCells
from triage.scan.interface import CELL
from triage.scan.spans import _first_line, _line_end, _StreamScan
from triage.sources.opened_file import open_file

from .factories import SMALL, TEXTS, scan_bytes, scan_one, small_limits, stream_container, temporary_file


@given(st.lists(TEXTS, min_size=1, max_size=3).map(b"".join), st.integers(1, 100))
def test_a_stream_equals_a_plain_file(data: bytes, max_bytes: int) -> None:
    """A stream and a file give the same hits, counts, ends and digest, however few bytes the stream gives at a time."""
    with small_limits():
        a, b = scan_bytes(data), scan_one(stream_container(data, max_bytes))
    assert (a.hits, a.matched, a.sampled, a.size, a.head, a.tail, a.digest) == (
        b.hits,
        b.matched,
        b.sampled,
        b.size,
        b.head,
        b.tail,
        b.digest,
    )
    assert (b.size, b.head, b.tail) == (len(data), data[: SMALL["HEAD"]], data[-SMALL["TAIL"] :])


@given(st.lists(TEXTS, min_size=1, max_size=3).map(b"".join), st.integers(1, 100))
def test_the_saved_cells_of_a_stream_surround_each_hit(data: bytes, max_bytes: int) -> None:
    """A cell before each hit and two cells after it can be read again, and its line number is right."""
    with small_limits():
        scanned = scan_one(stream_container(data, max_bytes))
        cells = SavedCells(scanned)
        for hit in scanned.hits:
            start, stop = max(0, hit.start - SMALL["LOOK_BACK"]), hit.end + SMALL["LOOK_AHEAD"]
            assert cells.read(start, stop - start) == data[start:stop]
            assert cells.line_number(hit.start) == data.count(b"\n", 0, hit.start) + 1
    assert scanned.dropped_cells == 0


@given(st.lists(TEXTS, min_size=1, max_size=3).map(b"".join))
def test_cells_over_the_memory_limit_are_counted(data: bytes) -> None:
    """Cells that do not fit are counted, saved ones are right, and the hits are the same."""
    with small_limits():
        whole = scan_one(stream_container(data))
        with mock.patch.object(_StreamScan, "MAX_PACKED", 120):
            scanned = scan_one(stream_container(data))
    assert scanned.hits == whole.hits
    assert sum(len(cell.packed) for cell in scanned.saved_cells) <= 120
    assert set(scanned.saved_cells) <= set(whole.saved_cells)
    if not scanned.dropped_cells:
        for hit in scanned.hits:
            start, stop = max(0, hit.start - SMALL["LOOK_BACK"]), hit.end + SMALL["LOOK_AHEAD"]
            with small_limits():
                assert SavedCells(scanned).read(start, stop - start) == data[start:stop]


def make_cells(lines: dict[int, bytes], count: int) -> bytes:
    """Return cells of bytes that zlib cannot make smaller; each that `lines` numbers has this line in it."""
    random_ = random.Random(5)
    cells = [bytes(random_.choices(range(128, 256), k=SMALL["CELL"])) for _ in range(count)]
    for number, line in lines.items():
        cells[number] = (cells[number][:20] + b"\n" + line + b"\n" + cells[number])[: SMALL["CELL"]]
    return b"".join(cells)


@pytest.mark.parametrize("missing", [0, 1])
def test_cells_are_saved_up_to_the_memory_limit(missing: int) -> None:
    """Cells that just fit are all saved. If a byte is missing, the last one is left out and counted."""
    data = make_cells({2: b"[r1] Zug", 10: b"[r2] Zug"}, 16)
    with small_limits():
        whole = scan_one(stream_container(data))
        limit = sum(len(cell.packed) for cell in whole.saved_cells) - missing
        with mock.patch.object(_StreamScan, "MAX_PACKED", limit):
            scanned = scan_one(stream_container(data))
    assert [cell.offset // SMALL["CELL"] for cell in whole.saved_cells] == [1, 2, 3, 4, 9, 10, 11, 12]
    assert scanned.saved_cells == whole.saved_cells[: 8 - missing]
    assert scanned.dropped_cells == missing


def test_cells_around_omitted_hits_are_dropped_when_memory_ends() -> None:
    """Of three equal lines the middle one is only counted: its cells are dropped for those of the last."""
    data = make_cells({2: b"[r1] Zug", 6: b"[r1] Zug", 10: b"[r1] Zug"}, 16)
    with small_limits():
        whole = scan_one(stream_container(data))
        limit = sum(len(cell.packed) for cell in whole.saved_cells[:9])
        with mock.patch.object(_StreamScan, "MAX_PACKED", limit):
            scanned = scan_one(stream_container(data))
    assert [hit.omitted for hit in whole.hits] == [1, 0]
    assert [cell.offset // SMALL["CELL"] for cell in whole.saved_cells] == list(range(1, 13))
    assert [cell.offset // SMALL["CELL"] for cell in scanned.saved_cells] == [1, 2, 3, 4, 9, 10, 11, 12]
    assert (whole.dropped_cells, scanned.dropped_cells) == (0, 0)


def test_an_empty_line_does_not_move_the_pieces_of_the_next_one() -> None:
    """Pieces are counted from the start of their line, also if only an empty line precedes it in the buffer."""
    data = b"\n" + b"boom." * 200
    with small_limits(SPAN_LINES=1000, KEEP_PER_END=1000):
        expected = scan_bytes(data).hits
        assert scan_bytes(data, chunk_bytes=1).hits == expected
    assert [hit.end for hit in expected[:3]] == [1 + SMALL["MAX_LINE"] * number for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("start", "stop", "first", "skipped"),
    [
        (0, 9, 0, b""),
        (2, 9, 3, b"\n"),
        (3, 9, 3, b""),
        (4, 9, 6, b"d\n"),
        (4, 7, 6, b"d\n"),
        (4, 6, None, b"d\n"),
        (7, 9, None, b"fg"),
        (7, 99, 11, b"fgh\n"),
        (13, 99, None, b""),
    ],
)
def test_the_first_line_that_starts_in_a_span(start: int, stop: int, first: int | None, skipped: bytes) -> None:
    """It starts at `start` or later and before `stop`; the bytes of the span before it are given, each once."""
    parts: list[bytes] = []
    with temporary_file(b"ab\ncd\nefgh\nij") as path, closing(open_file(path)) as file:
        assert _first_line(file, start, stop, parts.append) == first
    assert b"".join(parts) == skipped


@pytest.mark.parametrize(
    ("position", "stop", "size", "end"), [(3, 3, 12, 3), (4, 4, 12, 6), (5, 5, 12, 6), (4, 5, 12, 4), (7, 7, 12, 10)]
)
def test_the_end_of_the_line_that_is_open_at_the_end_of_a_span(position: int, stop: int, size: int, end: int) -> None:
    """Behind its newline; where the line before it ends there, or the file is shorter than it was, that place."""
    with temporary_file(b"ab\ncd\nefgh") as path, closing(open_file(path)) as file:
        assert _line_end(file, position, stop, size) == end


@given(st.integers(0, 5), st.integers(1, 6), st.booleans())
@settings(deadline=None)
def test_a_literal_is_found_across_the_borders_of_spans_and_chunks(before: int, spans: int, newline: bool) -> None:
    """A line that begins before the end of a span is read to its end, and the next span begins after it."""
    with small_limits():
        span = SMALL["SPAN"]
        line = b"z" * (span * spans - before - 1) + b"\n"
        data = line + b"boom err: 7" + (b"\noomph" if newline else b"")
        places = [(hit.start, hit.end) for hit in scan_bytes(data).hits]
    assert places == [(len(line), len(line) + 11), *([(len(data) - 5, len(data))] if newline else [])]


def test_newlines_are_counted_by_cell() -> None:
    """Each entry is the start of a cell and the number of newlines before it."""
    data = b"a line of text\n" * 60_000
    scanned = scan_one(stream_container(data))
    assert scanned.newlines == tuple((at, data.count(b"\n", 0, at)) for at in range(0, len(data), CELL))


PROBE = """
import io, sys
from tests.scan.factories import plain_container, scan_one, stream_container
size = 64 << 20
def peak():  # of this process alone; ru_maxrss would begin with what the parent had
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
if sys.argv[1] == "plain":
    container = plain_container(sys.argv[2])
else:
    class Endless(io.RawIOBase):
        left = size
        def read(self, count=-1):
            count = min(count, self.left)
            self.left -= count
            return (b"z" * 4091 + b"boom!")[:count] * (count // 4096) if count >= 4096 else b"z" * count
    container = stream_container(b"").__class__("log", size, None, {"log": Endless})
scan_one(stream_container(b"boom"))
before = peak()
scanned = scan_one(container)
assert scanned.matched and scanned.size == size, scanned.matched
print((peak() - before) // 1024)
"""


@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_one_endless_line_does_not_fill_the_memory(kind: str, tmp_path: object) -> None:
    """A line of 64 MiB is scanned within a few MiB, as a file and as a stream."""
    path = f"{tmp_path}/line"
    if kind == "plain":
        with open(path, "wb") as out:
            for _ in range(64):
                out.write((b"z" * 4091 + b"boom!") * 256)
    result = subprocess.run(
        [sys.executable, "-c", PROBE, kind, path], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 24
