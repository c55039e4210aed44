"""triage.ranks.text"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from triage.ranks import text as module
from triage.ranks.text import LONGEST, Line, split_line

from .reading import text_of

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
def small(page: int) -> Iterator[None]:
    """Pages so small that lines cross them, and few of them remembered."""
    with mock.patch.multiple(module, PAGE=page, _PAGES=2, LONGEST=4096):
        yield


def told(lines: list[Line]) -> list[tuple[int, bytes]]:
    """Where lines start and what they hold."""
    return [(line.offset, line.data) for line in lines]


def slowly(data: bytes) -> list[tuple[int, bytes]]:
    """All lines, without pages."""
    lines, at = [], 0
    for part in data.removesuffix(b"\n").split(b"\n") if data else []:
        lines += told(split_line(part, at, 2026))
        at += len(part) + 1
    return lines


@given(TEXTS, st.integers(1, 40))
def test_pages_give_every_line_once_and_in_order(data: bytes, page: int) -> None:
    """Lines that cross pages are whole and none is lost or given twice, from any line on and backwards too."""
    expected = slowly(data)
    with small(page):
        text = text_of(data)
        assert told(list(text.lines_from(0, len(data)))) == expected
        assert told(list(text.lines_before(len(data) + 1, len(data) + 1))) == expected[::-1]
        starts = [at + 1 for at in range(len(data)) if data[at] == 10][:10]
        for start in starts:
            assert told(list(text.lines_from(start, len(data)))) == [line for line in expected if line[0] >= start]
            assert (
                told(list(text.lines_before(start, len(data)))) == [line for line in expected if line[0] < start][::-1]
            )


@given(TEXTS, st.integers(0, 100), st.integers(1, 100))
def test_reach_is_kept(data: bytes, offset: int, reach: int) -> None:
    """No line starts outside of what was asked for."""
    with small(16):
        assert all(offset <= line.offset < offset + reach for line in text_of(data).lines_from(offset, reach))
        assert all(offset - reach <= line.offset < offset for line in text_of(data).lines_before(offset, reach))


@given(TEXTS.map(lambda data: data.replace(b"\n", b"")))
def test_the_parts_of_a_line_are_what_stands_there(data: bytes) -> None:
    """Every part lies at its offset, and only carriage returns lie between parts."""
    at = 0
    for line in split_line(data, 0, 2026):
        assert data[line.offset : line.end] == line.data
        assert not data[at : line.offset].strip(b"\r")
        assert b"\r" not in line.data
        at = line.end
    assert not data[at:].strip(b"\r")


def test_a_writer_glued_to_a_progress_bar_is_told_apart() -> None:
    """A prefix right behind other text begins a new part; behind a prefix or a blank it does not."""
    assert [line.raw for line in split_line(b" 50%|##|1/2[rank3]: boom", 0, 2026)] == [" 50%|##|1/2", "[rank3]: boom"]
    assert [line.raw for line in split_line(b"[default2]:[rank3]: boom", 0, 2026)] == ["[default2]:[rank3]: boom"]
    assert [line.raw for line in split_line(b"see [rank3]: boom", 0, 2026)] == ["see [rank3]: boom"]


def test_carriage_returns_part_a_progress_bar() -> None:
    """Each redraw is a line of its own, with its own offset."""
    assert told(split_line(b"\r 10%|#\r 20%|##\r\r[rank1]: boom\r", 100, 2026)) == [
        (101, b" 10%|#"),
        (108, b" 20%|##"),
        (117, b"[rank1]: boom"),
    ]


def test_lines_are_decoded_for_reading() -> None:
    """Invalid UTF-8 becomes U+FFFD, NUL and colours go, offsets stay those of the bytes."""
    line = split_line(b"\x1b[31m\0\0[rank3]:\x1b[0m b\xffd\xc3\xa9", 7, 2026)[0]
    assert line.raw == "[rank3]: b\ufffdd\u00e9"
    assert line.parsed.origin.rank == 3
    assert (line.offset, line.end) == (7, 32)


def test_the_middle_of_a_very_long_line_is_left_out() -> None:
    """What is matched of one line is bounded, its ends are kept."""
    line = Line(0, b"start " + b"x" * 100_000 + b" end", 2026)
    assert len(line.raw) < LONGEST + 10
    assert line.raw.startswith("start ")
    assert line.raw.endswith(" end")
    assert line.end == 100_010
