"""triage.scan.spans"""

from __future__ import annotations

import subprocess
import sys
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from triage.records.saved_cells import SavedCells
from triage.scan.interface import CELL
from triage.scan.spans import _StreamScan

from .factories import SMALL, TEXTS, scan_bytes, scan_one, small_limits, stream_container


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
