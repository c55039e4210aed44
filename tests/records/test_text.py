"""triage.records.text"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hypothesis import given, strategies as st

from triage.records import text as module
from triage.records.text import LONGEST, Line, split_line

from .factories import text_of

TOKENS = st.sampled_from(
    [
        b"\n",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"[rank1]: ",
        b"[rank2]: ",
        b"ab",
        b" 50%|#",
        b"x" * 15,
        b"\0",
        b"\xff",
        b"\xc3\xa9",
    ]
)
TEXTS = st.lists(TOKENS, max_size=60).map(b"".join)


@contextmanager
def small_pages(page: int) -> Iterator[None]:
    """Make pages so small that lines cross them, and cache few of them."""
    with mock.patch.multiple(module, PAGE=page, _PAGES=2, LONGEST=4096):
        yield


def places(lines: list[Line]) -> list[tuple[int, bytes]]:
    """Return the offset and bytes of each line."""
    return [(line.offset, line.data) for line in lines]


def split_all(data: bytes) -> list[tuple[int, bytes]]:
    """Return all lines without using pages."""
    lines, at = [], 0
    for part in data.removesuffix(b"\n").split(b"\n") if data else []:
        lines += places(split_line(part, at, 2026))
        at += len(part) + 1
    return lines


@given(TEXTS, st.integers(1, 40))
def test_pages_give_every_line_once_and_in_order(data: bytes, page: int) -> None:
    """Lines that cross pages are whole, forwards from any line and backwards."""
    expected = split_all(data)
    with small_pages(page):
        text = text_of(data)
        assert places(list(text.lines_from(0, len(data)))) == expected
        assert places(list(text.lines_before(len(data) + 1, len(data) + 1))) == expected[::-1]
        starts = [at + 1 for at in range(len(data)) if data[at] == 10][:10]
        for start in starts:
            assert places(list(text.lines_from(start, len(data)))) == [line for line in expected if line[0] >= start]
            assert (
                places(list(text.lines_before(start, len(data))))
                == [line for line in expected if line[0] < start][::-1]
            )


@given(TEXTS, st.integers(0, 100), st.integers(1, 100))
def test_lines_are_within_reach(data: bytes, offset: int, reach: int) -> None:
    """No line starts outside the requested range."""
    with small_pages(16):
        assert all(offset <= line.offset < offset + reach for line in text_of(data).lines_from(offset, reach))
        assert all(offset - reach <= line.offset < offset for line in text_of(data).lines_before(offset, reach))


@given(TEXTS.map(lambda data: data.replace(b"\n", b"")))
def test_the_parts_of_a_line_cover_it(data: bytes) -> None:
    """Every part is at its offset, and only carriage returns are between parts."""
    at = 0
    for line in split_line(data, 0, 2026):
        assert data[line.offset : line.end] == line.data
        assert not data[at : line.offset].strip(b"\r")
        assert b"\r" not in line.data
        at = line.end
    assert not data[at:].strip(b"\r")


def test_a_prefix_behind_a_progress_bar_begins_a_line() -> None:
    """A prefix directly behind other text begins a new part; behind a prefix or a blank it does not."""
    assert [line.raw for line in split_line(b" 50%|##|1/2[rank3]: boom", 0, 2026)] == [" 50%|##|1/2", "[rank3]: boom"]
    assert [line.raw for line in split_line(b"[default2]:[rank3]: boom", 0, 2026)] == ["[default2]:[rank3]: boom"]
    assert [line.raw for line in split_line(b"see [rank3]: boom", 0, 2026)] == ["see [rank3]: boom"]


def test_carriage_returns_split_a_progress_bar() -> None:
    """Each redraw is a line with its own offset."""
    assert places(split_line(b"\r 10%|#\r 20%|##\r\r[rank1]: boom\r", 100, 2026)) == [
        (101, b" 10%|#"),
        (108, b" 20%|##"),
        (117, b"[rank1]: boom"),
    ]


def test_lines_are_decoded_for_reading() -> None:
    """Invalid UTF-8 becomes U+FFFD, NUL and colours are removed, and offsets count the original bytes."""
    line = split_line(b"\x1b[31m\0\0[rank3]:\x1b[0m b\xffd\xc3\xa9", 7, 2026)[0]
    assert line.raw == "[rank3]: b\ufffdd\u00e9"
    assert line.parsed.origin.rank == 3
    assert (line.offset, line.end) == (7, 32)


def test_the_middle_of_a_very_long_line_is_left_out() -> None:
    """The matched text is limited; both ends are in it."""
    line = Line(0, b"start " + b"x" * 100_000 + b" end", 2026)
    assert len(line.raw) < LONGEST + 10
    assert line.raw.startswith("start ")
    assert line.raw.endswith(" end")
    assert line.end == 100_010
