"""triage.records.text"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import given, strategies as st

from triage.ranks.grammars import BY_START
from triage.ranks.layouts import Layout
from triage.records import text as module
from triage.records.text import LONGEST, Line, Text, split_line

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


@given(
    st.lists(st.sampled_from([b"[r1] a", b"[r2] x", b"[r12] x", b"", b"x [r1] a"]), max_size=40),
    st.sampled_from([b"[r1]", b"[r12]", b"[r3]"]),
    st.integers(0, 200),
    st.integers(1, 300),
    st.integers(0, 5),
    st.integers(1, 60),
)
def test_lines_that_begin_with_a_start(
    rows: list[bytes], start: bytes, offset: int, reach: int, gap: int, page: int
) -> None:
    """They are those among all lines, until too many others stand between them, wherever pages begin."""
    data = b"".join(row + b"\n" for row in rows)
    expected, others = [], 0
    for at, row in split_all(data):
        if at < offset or at >= min(offset + reach, len(data)):
            continue
        others = 0 if row.startswith(start) else others + 1
        if others > gap:
            break
        if row.startswith(start):
            expected.append((at, row))
    with small_pages(page):
        assert places(list(text_of(data).lines_from(offset, reach, start, gap))) == expected


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


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[31mRuntimeError: HIP error: invalid device function[0m", "RuntimeError: HIP error: invalid device function"),
        ("[1;31mEI0005: inconsistent[39m", "EI0005: inconsistent"),
        ("elapsed [31m 7s], left [5m 2s]", "elapsed [31m 7s], left [5m 2s]"),
        ("x[31m] was never reset", "x[31m] was never reset"),
    ],
)
def test_colours_without_their_escape_character_are_removed(line: str, text: str) -> None:
    """A paste that lost the escape characters reads like the program's text; minutes in brackets stay."""
    assert split_line(line.encode(), 0, 2026)[0].raw == text


def test_the_middle_of_a_very_long_line_is_left_out() -> None:
    """The matched text is limited; both ends are in it."""
    line = Line(0, b"start " + b"x" * 100_000 + b" end", 2026)
    assert len(line.raw) < LONGEST + 10
    assert line.raw.startswith("start ")
    assert line.raw.endswith(" end")
    assert line.end == 100_010


@pytest.mark.parametrize(("gap", "count"), [(2, 1), (3, 2)])
def test_lines_of_a_writer_are_near(gap: int, count: int) -> None:
    """Three lines of others in a row end them where two are allowed."""
    text = text_of("[rank1]: a\n" + "[rank2]: x\n" * 3 + "[rank1]: b\n" + "[rank2]: x\n" * 9)
    assert len(list(text.lines_from(0, 1 << 10, b"[rank1]:", gap))) == count
    behind = text_of("[rank2]: x\n" * 3 + "[rank1]: b\n")
    assert len(list(behind.lines_from(0, 1 << 10, b"[rank1]:", gap))) == count - 1
    assert len(list(text.lines_from(0, 1 << 10, b"[rank1]:"))) == 2


@pytest.mark.parametrize(
    ("data", "writer", "start"),
    [
        (b"[rank1]: a", "[rank1]:", b"[rank1]:"),
        (b"\x1b[31m[rank1]: a", "[rank1]:", b"\x1b[31m[rank1]:"),
        (b"a", "[rank1]:", b""),
        (b"[rank1]: a", "", b""),
    ],
)
def test_the_bytes_that_the_lines_of_a_writer_begin_with(data: bytes, writer: str, start: bytes) -> None:
    """With their colours; nothing where a line begins otherwise."""
    assert Line(0, data, 2026).start_of(writer) == start


@pytest.mark.parametrize(("length", "is_whole"), [(1 << 14, True), ((1 << 14) + 1, False)])
def test_a_long_line_is_shown_around_its_literals(length: int, is_whole: bool) -> None:
    """Its start, and 2 KiB before and behind each of three of them."""
    line = Line(0, (b"x" * 8000 + b"boom").ljust(length, b"y"), 2026)
    shown = line.showing(["boom"])
    assert shown is not None
    assert (shown is line) or not is_whole
    assert line.showing(["lost"]) is None
    far = Line(0, b"a" * 300 + b"b" * 20_000 + b"one" + b"c" * 9000 + b"two" + b"d" * 20_000, 2026)
    around = far.showing(["one", "two"])
    assert around is not None
    assert around.raw == f"{'a' * 256} … {'b' * 2048}one{'c' * 2045} … {'c' * 2048}two{'d' * 2045}"


@pytest.mark.parametrize(("length", "is_cut"), [(1 << 14, False), ((1 << 14) + 1, True)])
def test_the_longest_line_is_read_whole(length: int, is_cut: bool) -> None:
    """16 KiB."""
    assert ("…" in Line(0, b"x" * length, 2026).raw) is is_cut


def test_a_line_at_its_place_is_read() -> None:
    """As the physical line there; with both writers of it."""
    data = b"step 1\n 50%|##|1/2[rank3]: boom\n"
    text = text_of(data)
    assert [line.raw for line in text.lines_at(7, len(data) - 1)] == [" 50%|##|1/2", "[rank3]: boom"]


def read_texts(data: bytes, layout: Layout) -> list[str]:
    """Return the lines of a source with this layout."""
    text = Text("job.log", lambda offset, length: data[offset : offset + length], len(data), 2026, layout)
    return [line.parsed.text for line in text.lines_from(0, len(data))]


def test_pieces_of_a_line_are_one_line() -> None:
    """Those of a terminal, and those of a container runtime in CRI and in JSON."""
    terminal = b"a" * 80 + b"\nb\nc\n"
    assert read_texts(terminal, Layout(BY_START, width=80)) == ["a" * 80 + "b", "c"]
    stamp = b"2026-11-21T03:07:45.372001123Z stderr "
    assert read_texts(stamp + b"P a\n" + stamp + b"F b\n" + stamp + b"F c\n", Layout(BY_START, "cri")) == ["ab", "c"]
    docker = b'{"log":"%s","stream":"stderr","time":"2026-11-21T03:07:45Z"}\n'
    pieces = b"".join(docker % text for text in (b"a", b"b\\n", b"c\\n"))
    assert read_texts(pieces, Layout(BY_START, "json")) == ["ab", "c"]
    assert read_texts(b"a\nb\n", Layout(BY_START, "stamp-behind")) == ["a", "b"]


def test_a_piece_is_read_whole_where_it_is_hit() -> None:
    """A literal in the second piece shows the line, which the first piece gives where lines are read in order."""
    data = b"a" * 80 + b"\nboom\n"
    text = Text(
        "job.log", lambda offset, length: data[offset : offset + length], len(data), 2026, Layout(BY_START, width=80)
    )
    [line] = text.lines_at(81, 85)
    assert (line.raw, line.offset, line.end) == ("a" * 80 + "boom", 0, 85)
    assert [one.offset for one in text.lines_from(0, 100)] == [0]


def test_the_lines_of_a_message_share_its_bytes() -> None:
    """Each has a byte of the physical line as its place, the last one the rest."""
    data = b"Nov 21 03:07:45 node1 train[400]: a#012b#012c\n"
    layout = Layout(BY_START, escapes_newlines=True)
    text = Text("job.log", lambda offset, length: data[offset : offset + length], len(data), 2026, layout)
    lines = list(text.lines_from(0, len(data)))
    assert [(line.parsed.text, line.offset, line.end) for line in lines] == [("a", 0, 1), ("b", 1, 2), ("c", 2, 45)]


def test_a_long_line_is_shown_around_three_literals() -> None:
    """Text around a fourth one is left out."""
    literals = ["first", "second", "third", "fourth"]
    line = Line(0, b"".join(b"x" * 20_000 + literal.encode() for literal in literals) + b"y" * 20_000, 2026)
    shown = line.showing(literals)
    assert shown is not None
    assert [literal in shown.raw for literal in literals] == [True, True, True, False]


@pytest.mark.parametrize(
    ("pasted", "read"),
    [("File “/w/a.py”, line 3, in f", 'File "/w/a.py", line 3, in f'), ("the file “a.py”", "the file “a.py”")],
)
def test_a_frame_with_the_quotes_of_a_word_processor(pasted: str, read: str) -> None:
    """A pasted frame of a traceback is one; other texts keep their quotes."""
    assert Line(0, pasted.encode(), 2026).raw == read
