"""triage.scan.spans"""

from __future__ import annotations

import subprocess
import sys
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.ranks.windows import Windows
from triage.scan.interface import CELL
from triage.scan.spans import _StreamScan

from .scanning import SMALL, TEXTS, of_plain, one, small, streamed


@given(st.lists(TEXTS, min_size=1, max_size=3).map(b"".join), st.integers(1, 100))
def test_a_stream_gives_what_a_plain_file_gives(data: bytes, most: int) -> None:
    """Hits, counts, size, head and tail are the same, however few bytes the stream gives at a time."""
    with small():
        a, b = of_plain(data), one(streamed(data, most))
    assert (a.hits, a.matched, a.sampled, a.size, a.head, a.tail) == (
        b.hits,
        b.matched,
        b.sampled,
        b.size,
        b.head,
        b.tail,
    )
    assert (b.size, b.head, b.tail) == (len(data), data[: SMALL["HEAD"]], data[-SMALL["TAIL"] :])


@given(st.lists(TEXTS, min_size=1, max_size=3).map(b"".join), st.integers(1, 100))
def test_the_windows_of_a_stream_hold_what_lies_around_each_hit(data: bytes, most: int) -> None:
    """A cell before the start of a kept hit and two cells after its end can be read again, and its line number is
    right.
    """
    with small():
        scanned = one(streamed(data, most))
        windows = Windows(scanned)
        for hit in scanned.hits:
            start, stop = max(0, hit.start - SMALL["LOOK_BACK"]), hit.end + SMALL["LOOK_AHEAD"]
            assert windows.read(start, stop - start) == data[start:stop]
            assert windows.line_number(hit.start) == data.count(b"\n", 0, hit.start) + 1
    assert scanned.dropped_windows == 0


@given(st.lists(TEXTS, min_size=1, max_size=3).map(b"".join))
def test_windows_that_find_no_room_are_counted(data: bytes) -> None:
    """With room for little, what does not fit is counted as dropped, what is kept says the truth, and the hits are the
    same.
    """
    with small():
        whole = one(streamed(data))
        with mock.patch.object(_StreamScan, "MAX_PACKED", 120):
            scanned = one(streamed(data))
    assert scanned.hits == whole.hits
    assert sum(len(window.packed) for window in scanned.windows) <= 120
    assert set(scanned.windows) <= set(whole.windows)
    if not scanned.dropped_windows:
        for hit in scanned.hits:
            start, stop = max(0, hit.start - SMALL["LOOK_BACK"]), hit.end + SMALL["LOOK_AHEAD"]
            with small():
                assert Windows(scanned).read(start, stop - start) == data[start:stop]


@given(st.integers(0, 5), st.integers(1, 6), st.booleans())
@settings(deadline=None)
def test_a_literal_is_found_across_the_borders_of_spans_and_chunks(before: int, spans: int, newline: bool) -> None:
    """A line that begins just before the end of a span is finished beyond, and the next span begins after it."""
    with small():
        span = SMALL["SPAN"]
        line = b"z" * (span * spans - before - 1) + b"\n"
        data = line + b"boom err: 7" + (b"\noomph" if newline else b"")
        places = [(hit.start, hit.end) for hit in of_plain(data).hits]
    assert places == [(len(line), len(line) + 11), *([(len(data) - 5, len(data))] if newline else [])]


def test_newlines_are_counted_cell_by_cell() -> None:
    """Each entry is where a cell starts and how many newlines stand before it."""
    data = b"a line of text\n" * 60_000
    scanned = one(streamed(data))
    assert scanned.newlines == tuple((at, data.count(b"\n", 0, at)) for at in range(0, len(data), CELL))


PROBE = """
import io, sys
from tests.scan.scanning import one, plain, streamed
size = 64 << 20
def peak():  # of this process alone; ru_maxrss would begin with what the parent had
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
if sys.argv[1] == "plain":
    container = plain(sys.argv[2])
else:
    class Endless(io.RawIOBase):
        left = size
        def read(self, count=-1):
            count = min(count, self.left)
            self.left -= count
            return (b"z" * 4091 + b"boom!")[:count] * (count // 4096) if count >= 4096 else b"z" * count
    container = streamed(b"").__class__("log", size, None, {"log": Endless})
one(streamed(b"boom"))
before = peak()
scanned = one(container)
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
    grown = subprocess.run(
        [sys.executable, "-c", PROBE, kind, path], capture_output=True, text=True, check=False, timeout=60
    )
    assert grown.returncode == 0, grown.stderr
    assert int(grown.stdout) < 24
