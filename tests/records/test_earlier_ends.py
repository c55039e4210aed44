"""triage.records.earlier_ends"""

from __future__ import annotations

import pytest

from triage.ranks.layouts import PLAIN
from triage.records.activity import SEARCHED_BYTES, read_activity
from triage.records.earlier_ends import BYTES_PER_WRITER, find_earlier_ends, find_last_end


def find_ranks(data: bytes, last: bytes) -> list[int | None]:
    """Return the ranks of the earlier ends of a file, whose last lines are given."""
    known = read_activity(last, len(data) - len(last), 2026, whole=True)
    ends = find_earlier_ends(lambda start, length: data[start : start + length], len(data), known, 2026, PLAIN)
    assert all(data[each.offset :].startswith(b"[rank%d]" % (each.origin.rank or 0)) for each in ends)
    return [each.origin.rank for each in ends]


def find_last_ranks(data: bytes) -> list[int | None]:
    """Return the ranks of the last end before the end of `data`."""
    ends = find_last_end(lambda start, length: data[start : start + length], len(data), 64, 2026, PLAIN)
    return [each.origin.rank for each in ends]


def make_end(rank: int, text: str = "training finished after 9 steps") -> bytes:
    return f"[rank{rank}]: {text}, took {rank + 10} s\n".encode()


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("training finished after 8 steps", True),
        ("Training finished after 9 steps", False),
        ("training finished", False),
        ("training not finished after 9 steps", False),
    ],
)
def test_the_same_end_is_found_whatever_its_numbers(text: str, is_found: bool) -> None:
    """Another rank's line counts if it is the same text but for the numbers; the last lines are not given again."""
    last = make_end(3)
    data = make_end(1, text) + b"[rank2]: step 8\n" * 9 + last
    assert find_ranks(data, last) == ([1] if is_found else [])


@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 7, 3 << 20])
def test_lines_are_found_where_chunks_meet(size: int) -> None:
    """All lines come once, in file order, wherever the chunks begin."""
    last = make_end(9)
    data = b"".join(make_end(rank) + b"x" * (size // 4) + b"\n" for rank in range(8)) + last
    assert find_ranks(data, last) == list(range(8))


@pytest.mark.parametrize(("before", "is_found"), [(0, True), (200, False)])
def test_so_many_bytes_are_searched(before: int, is_found: bool) -> None:
    """What stands further back than SEARCHED_BYTES is not read."""
    last = make_end(9)
    first = make_end(1)
    filling = SEARCHED_BYTES - len(first) - len(last) + before
    data = first + b"x\n" * (filling // 2) + last
    assert find_ranks(data, last) == ([1] if is_found else [])


def test_nothing_is_read_without_an_end() -> None:
    """Where the last lines say no end, the file is not read."""

    def read(start: int, length: int) -> bytes:
        raise AssertionError((start, length))

    assert find_earlier_ends(read, 1 << 20, read_activity(b"[rank1]: step 4\n", 99, 2026), 2026, PLAIN) == []


@pytest.mark.parametrize(("filling", "is_found"), [(2 * BYTES_PER_WRITER - 200, True), (2 * BYTES_PER_WRITER, False)])
def test_the_last_end_may_stand_before_the_last_lines(filling: int, is_found: bool) -> None:
    """The last end stands behind others and behind what only sounds like one, so many bytes back for each writer."""
    data = make_end(1) + make_end(2) + b"[rank1]: shard done\n" + b"[rank1]: w\n" * (filling // 11)
    ends = find_last_end(lambda start, length: data[start : start + length], len(data), 2, 2026, PLAIN)
    assert [each.origin.rank for each in ends] == ([2] if is_found else [])


def test_a_line_that_is_cut_is_no_end() -> None:
    """Where the search begins within a line, its rest is not read as a line without a rank."""
    filling = b"[rank1]: w\n" * ((2 * BYTES_PER_WRITER - 40) // 11)
    data = b"x" * 99 + b" " + make_end(2) + filling
    start = len(data) - 2 * BYTES_PER_WRITER
    assert 100 < start < data.find(b"training")
    assert find_last_end(lambda begin, length: data[begin : begin + length], len(data), 2, 2026, PLAIN) == []


@pytest.mark.parametrize("filling", [(1 << 20) - 1, 1 << 20, 3 << 20])
def test_a_line_longer_than_a_chunk_is_passed_over(filling: int) -> None:
    """The search ends, and ends before a line of any length are still read."""
    last = make_end(2)
    data = make_end(1) + b"x" * filling + b"\n" + last
    assert find_ranks(data, last) == [1]


@pytest.mark.parametrize(("hints", "ranks"), [(1999, [2]), (2000, [])])
def test_2000_lines_are_read_for_the_last_end(hints: int, ranks: list[int]) -> None:
    """Above so many lines with a word like `done`, an end is not looked for any more."""
    assert find_last_ranks(make_end(2) + b"[rank1]: shard done\n" * hints) == ranks


def test_an_end_that_a_progress_bar_overwrote_is_none() -> None:
    """The screen showed the step behind it: the end before counts."""
    overwritten = b"[rank1]: training finished\r[rank1]: step 3\n"
    assert find_last_ranks(make_end(2) + overwritten) == [2]
    assert find_last_ranks(overwritten) == []


@pytest.mark.parametrize(("length", "is_found"), [(4096, True), (4097, False)])
def test_lines_of_at_most_4096_bytes_are_read(length: int, is_found: bool) -> None:
    """A longer line is no end, neither the last one nor one like it."""
    end, last = (make_end(rank).rstrip() + b"x" * 500 for rank in (1, 2))
    long = end + b"x" * (length - len(end)) + b"\n"
    assert find_last_ranks(long) == ([1] if is_found else [])
    assert find_ranks(long + last, last) == ([1] if is_found else [])


@pytest.mark.parametrize("end", [b"training done.\n", b"run is complete\n"])
def test_a_line_that_is_cut_where_the_search_ends_is_not_read(end: bytes) -> None:
    """Its rest would be an end without a rank: `[rank1]: ` stands further back than SEARCHED_BYTES."""
    last = b"[rank9]: " + end
    # Each of 16 chunks leaves a byte to the next one, so that the last one holds the end, and an empty line or none.
    empty_lines = b"\n" * (SEARCHED_BYTES - len(end) - len(last))
    assert find_ranks(b"[rank1]: " + end + empty_lines + last, last) == []
    assert find_ranks(b"[rank1]: " + end + empty_lines[9:] + last, last) == [1]


def test_more_than_8192_other_ends_are_returned() -> None:
    """A job of so many ranks may say its end in one file."""
    last = make_end(9)
    data = b"".join(make_end(rank) for rank in range(8200)) + last
    assert len(find_ranks(data, last)) == 8200
