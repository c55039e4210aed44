"""triage.scan.interface: the limits at their real values, on both sides of each."""

from __future__ import annotations

import pytest

from triage.base.content_digest import digest_bytes, digest_list
from triage.scan.interface import CELL, LOOK_AHEAD, LOOK_BACK, Hit

from .factories import scan_bytes, scan_one, small_limits, stream_container


@pytest.mark.parametrize(
    ("line", "most"),
    [(b"boom\n", 16), (b"[r1] Zug\n", 2), (b"[r1] boom\n", 16), (b"Zug\n", 16)],
    ids=["no writer", "specific", "generic", "specific without writer"],
)
def test_how_many_lines_of_one_kind_are_returned(line: bytes, most: int) -> None:
    """Eight of either end; one, if the writer is known and a literal is specific. One line more is counted."""
    exact = scan_bytes(line * most, generic=frozenset({0}))
    assert [hit.omitted for hit in exact.hits] == [0] * most
    more = scan_bytes(line * (most + 1), generic=frozenset({0}))
    assert [hit.omitted for hit in more.hits] == [0] * (most // 2 - 1) + [1] + [0] * (most // 2)
    assert (exact.matched, more.matched) == (most, most + 1)


@pytest.mark.parametrize(("lines", "sampled"), [(1025, 0), (1026, 5), (1027, 10)])
def test_after_how_many_equal_hit_lines_a_span_is_sampled(lines: int, sampled: int) -> None:
    """1024 repeated lines of a span are examined; of the rest one line for each literal of a slice counts."""
    scanned = scan_bytes(b"boom\n" * lines)
    assert (scanned.sampled, scanned.matched) == (sampled, min(lines, 1026))


@pytest.mark.parametrize(("writers", "sampled"), [(32_768, 0), (32_769, 14)])
def test_after_how_many_writers_a_span_is_sampled(writers: int, sampled: int) -> None:
    """The first lines of 32,768 writers are examined, so that none of them seems to be silent."""
    scanned = scan_bytes(b"".join(b"[w%05d] boom\n" % number for number in range(writers)))
    assert (scanned.sampled, len(scanned.hits)) == (sampled, writers)


def test_a_slice_of_the_sampled_rest() -> None:
    """After the limit a literal counts once in each 65,536 bytes of the file."""
    storm = b"boom\n" * 1025
    rest = b"boom\n".rjust(64, b".") * 3000
    slices = {(len(storm) + 64 * number) >> 16 for number in range(3000)}
    assert scan_bytes(storm + rest).matched == 1025 + len(slices) == 1029


@pytest.mark.parametrize(("length", "pieces"), [(65_536, 1), (65_537, 2), (131_072, 2), (131_073, 3)])
def test_from_which_length_a_line_is_searched_in_pieces(length: int, pieces: int) -> None:
    """A line of 65,536 bytes is one hit. Pieces of longer ones begin 256 bytes earlier."""
    line = (b"boom." * (length // 5 + 1))[:length]
    starts = [0, *(65_536 * number - 256 for number in range(1, pieces))]
    hits = scan_bytes(b"start\n" + line + b"\nend").hits
    assert [hit.start - 6 for hit in hits if hit.literals] == starts[: len(hits)]
    assert len(hits) == pieces
    assert hits[-1].end == 6 + length


@pytest.mark.parametrize("before", [1, 255])
def test_the_longest_literal_is_found_across_pieces(before: int) -> None:
    """A literal of 256 bytes that the border of two pieces cuts anywhere is in the later piece."""
    literal = "x" * 255 + "y"
    line = b"." * (65_536 - before) + literal.encode() + b"." * 1000
    assert [hit.start for hit in scan_bytes(line, literals=(literal,)).hits] == [65_536 - 256]


@pytest.mark.parametrize("size", [1 << 23, (1 << 23) + 1])
def test_each_span_of_a_file_has_a_digest(size: int) -> None:
    """A span has 8 MiB: ids of jobs depend on it. A stream has the digest of the file."""
    data = (b"step 1\n" * (size // 7 + 1))[:size]
    digest = digest_list([digest_bytes(part) for part in (data[: 1 << 23], data[1 << 23 :]) if part])
    assert scan_bytes(data).digest == scan_one(stream_container(data)).digest == digest


@pytest.mark.parametrize("size", [512, 513, 768, 769])
def test_every_span_of_a_stream_has_a_digest(size: int) -> None:
    """The digest of a stream of several spans is that of the file, also where the last span is full or has one byte."""
    data = (b"step 1\n" * 200)[:size]
    with small_limits(SPAN=256):
        assert scan_one(stream_container(data)).digest == scan_bytes(data).digest


def test_the_ends_of_a_text() -> None:
    """The first 8 KiB and the last 32 KiB are returned."""
    data = bytes(97 + number % 26 for number in range(100_000))
    for scanned in (scan_bytes(data), scan_one(stream_container(data))):
        assert (scanned.head, scanned.tail) == (data[: 1 << 13], data[-(1 << 15) :])


def test_the_writer_is_read_from_the_start_of_a_line() -> None:
    """The function that names the writer gets 256 bytes of a line, and no byte of the next one."""
    lines: list[bytes] = []
    scan_bytes(b"boom " + b"z" * 300 + b"\nboom\n", key=lambda line: lines.append(line) or b"")
    assert lines == [b"boom " + b"z" * 251, b"boom"]


def test_which_cells_of_a_stream_are_saved() -> None:
    """Of a hit its cell, the one before and the two after it."""
    data = bytearray(b"step 1\n" * (10 * CELL // 7 + 1))[: 10 * CELL]
    data[4 * CELL + 100 : 4 * CELL + 106] = b"\nboom\n"
    scanned = scan_one(stream_container(bytes(data)))
    assert scanned.hits == (Hit(4 * CELL + 101, 4 * CELL + 105, (0,)),)
    assert [cell.offset // CELL for cell in scanned.saved_cells] == [3, 4, 5, 6]


def test_how_far_from_a_hit_a_stream_is_saved() -> None:
    """LOOK_BACK bytes before a line at the start of its cell, and LOOK_AHEAD after one at its end; no more."""
    data = bytearray(b"." * (8 * CELL))
    data[2 * CELL - 1 : 2 * CELL + 5] = data[3 * CELL - 6 : 3 * CELL] = b"\nboom\n"
    scanned = scan_one(stream_container(bytes(data)))
    assert [hit.start for hit in scanned.hits] == [2 * CELL, 3 * CELL - 5]
    saved = sorted(cell.offset for cell in scanned.saved_cells)
    assert 2 * CELL - saved[0] == LOOK_BACK
    assert saved[-1] + CELL - 3 * CELL == LOOK_AHEAD
