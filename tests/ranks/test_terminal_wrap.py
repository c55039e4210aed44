"""triage.ranks.terminal_wrap"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import triage
from triage.ranks.layouts import detect_layout
from triage.ranks.terminal_wrap import detect_width, find_joined_lines, join_pieces
from triage.records.text import Text

LOG = [
    "[rank2]: Traceback (most recent call last):",
    '[rank2]:   File "/workspace/examples/pretrain/train_with_a_long_name.py", line 1088, '
    "in train_one_epoch_of_the_model",
    "[rank2]:     output = self.model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, "
    "position_ids=batch.positions)",
    '[rank2]:   File "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1751, '
    "in _wrapped_call_impl",
    "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of "
    "79.10 GiB of which 1.0 GiB is free",
    "[rank0]:[E1121 02:38:00.123456789 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=9, Op=X)",
    "done",
]


def break_lines(lines: list[str], width: int) -> bytes:
    """Return the lines as a terminal of this width shows them."""
    return "".join(f"{line[at : at + width]}\n" for line in lines for at in range(0, max(1, len(line)), width)).encode()


def read_lines(data: bytes) -> list[str]:
    text = Text(
        "paste.txt", lambda offset, length: data[offset : offset + length], len(data), 2026, detect_layout(b"", data)
    )
    return [line.raw for line in text.lines_from(0, len(data))]


@pytest.mark.parametrize("width", [72, 79, 80, 100])
def test_a_broken_paste_is_joined(width: int, tmp_path: Path) -> None:
    """Its lines are whole again, and so is the diagnosis, even if a break is inside a literal."""
    data = break_lines(LOG, width)
    assert detect_width(data) == width
    assert read_lines(data) == LOG
    (tmp_path / "paste.txt").write_bytes(data)
    root = triage.ingest([str(tmp_path)]).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("cuda.out-of-memory", (2,))


def test_a_broken_literal_is_matched(tmp_path: Path) -> None:
    """A single line whose every literal is broken is found."""
    lines = [f"{'word' * 15} step {number} and so on, in many more words than a line has" for number in range(9)]
    lines[4] = "x" * 65 + " torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    (tmp_path / "paste.txt").write_bytes(break_lines(lines, 75))
    assert "torch.OutO\n" not in break_lines(lines, 75).decode()
    assert triage.ingest([str(tmp_path)]).verdict == "known"


def test_a_line_of_another_writer_continues_nothing() -> None:
    """Three long lines that end in a pid have the same length, and another container's line follows each."""
    full = [
        f"trainer-{name}-x7 | rank {rank} of 8 is ready on node{rank}, and its pid is 3047{rank}33"
        for name, rank in (("ab", 1), ("cd", 2), ("ab", 3))
    ]
    other = ["trainer-cd-x7 | step 1", "trainer-ab-x7 | step 1"]
    lines = [*other, full[0], other[0], full[1], other[1], full[2], other[0], "done"]
    assert detect_width("\n".join(lines).encode()) == 0
    broken = [line if line in full else line.partition("| ")[2] + str(index) for index, line in enumerate(lines)]
    assert detect_width("\n".join(["start", *broken[2:]]).encode()) == len(full[0])


def test_lines_of_equal_length_are_not_broken() -> None:
    """Columns of progress, rulers, and logs with longer lines are not broken lines."""
    assert (
        detect_width(
            b"".join(
                b"iteration %6d/  500000 | lm loss: 2.238375E+00 | grad norm: 0.495 | lr: 1.0E-4\n" % n
                for n in range(50)
            )
        )
        == 0
    )
    assert detect_width((b"=" * 60 + b"\ntrain.py FAILED\n") * 4) == 0
    assert detect_width(b"\n".join(line.encode() for line in LOG)) == 0
    assert detect_width(b"") == 0
    ruled = [*LOG, "-" * 160, "a", "-" * 160, "b", "-" * 160, "c"]
    assert detect_width("\n".join(ruled).encode()) == 0


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=300), max_size=20),
    st.integers(60, 90),
)
def test_every_broken_line_is_yielded(lines: list[str], width: int) -> None:
    """Wherever a paste is broken, the joined pieces are the lines."""
    lines = [line for line in lines if len(line) % width or not line]
    data = break_lines(lines, width)
    joined = [text for _, _, text, _ in find_joined_lines(width, data)]
    assert joined == [line for line in lines if len(line) > width]


def paste(width: int, full: int, whole: int, *, after: str = "tail of it") -> bytes:
    """Return a paste with so many broken lines and so many whole ones."""
    broken = [
        f"{chr(97 + number)}word".ljust(width, "x") + "\n" + after.replace("tail", "xtail") for number in range(full)
    ]
    return "\n".join([*broken, *(f"{chr(65 + number)}ine" for number in range(whole)), ""]).encode()


@pytest.mark.parametrize(("width", "is_broken"), [(59, False), (60, True), (400, True), (401, False)])
def test_terminals_have_60_to_400_columns(width: int, is_broken: bool) -> None:
    """Others are no terminals."""
    assert detect_width(paste(width, 4, 4)) == (width if is_broken else 0)


@pytest.mark.parametrize(("full", "is_broken"), [(2, False), (3, True)])
def test_three_lines_must_be_broken(full: int, is_broken: bool) -> None:
    """Fewer may have this length by chance."""
    assert detect_width(paste(80, full, 6)) == (80 if is_broken else 0)


def test_only_small_sources_are_checked() -> None:
    """Up to 256 KiB."""
    data = paste(80, 4, 4)
    assert detect_width(data + b"\n" * ((1 << 18) - len(data))) == 80
    assert detect_width(data + b"\n" * ((1 << 18) - len(data) + 1)) == 0


@pytest.mark.parametrize(("after", "is_broken"), [("tail", True), ("Traceback (most", False), ("[rank0]: x", False)])
def test_what_looks_like_a_line_continues_nothing(after: str, is_broken: bool) -> None:
    """A record, a prefix, a traceback."""
    lines = [f"{chr(97 + number)}word".ljust(80, "x") + f"\n{after}{number}" for number in range(4)]
    assert bool(detect_width("\n".join([*lines, "A", "B"]).encode())) is is_broken


@pytest.mark.parametrize(("count", "is_whole"), [(200, True), (202, False)])
def test_long_lines_are_joined_up_to_200_pieces(count: int, is_whole: bool) -> None:
    """A line of more pieces stays in parts."""
    data = b"x" * 80 + (b"\n" + b"x" * 80) * (count - 2) + b"\nend\n"
    whole = join_pieces(80, data[:80], 0, len(data), lambda at, size: data[at : at + size])
    assert whole is not None
    assert whole[0].endswith(b"end") is is_whole


def full_lines(count: int) -> list[str]:
    """Return lines of 80 characters that begin differently."""
    return [f"{chr(97 + number)}word".ljust(80, "x") for number in range(count)]


@pytest.mark.parametrize(("count", "is_broken"), [(10, True), (9, False)])
def test_one_of_ten_may_be_followed_by_a_line(count: int, is_broken: bool) -> None:
    """By chance a break may stand before a bracket."""
    pieces = [line for full in full_lines(count - 1) for line in (full, "xtail of it")]
    data = "\n".join([*pieces, full_lines(count)[-1], "[rank0]: x", *"ABCDEFGHIJ", ""]).encode()
    assert bool(detect_width(data)) is is_broken


@pytest.mark.parametrize(
    ("first", "last", "is_broken"), [("A", "B", True), ("xtail 0", "B", False), ("A", "xtail 0", False)]
)
def test_what_begins_as_whole_lines_do_continues_nothing(first: str, last: str, is_broken: bool) -> None:
    """As the first line, or as a line behind a short one."""
    pieces = [line for full in full_lines(4) for line in (full, "xtail of it")]
    assert bool(detect_width("\n".join([first, *pieces, "C", last, "D", ""]).encode())) is is_broken


def test_broken_lines_have_their_places() -> None:
    """Start, end, whole text, and pieces; whole lines are left out."""
    data = b"a\n" + b"b" * 80 + b"\n" + b"c" * 80 + b"\nd\ne\n" + b"f" * 80 + b"\ng"
    assert [
        (begin, end, text.strip("bcf"), len(pieces)) for begin, end, text, pieces in find_joined_lines(80, data)
    ] == [
        (2, 165, "d", 3),
        (168, 250, "g", 2),
    ]


@pytest.mark.parametrize(("within_word", "is_broken"), [(3, True), (2, False)])
def test_half_of_the_lines_break_off_within_a_word(within_word: int, is_broken: bool) -> None:
    """The others break at a blank by chance."""
    ends = ["x"] * within_word + [" "] * (6 - within_word)
    pieces = [line for full, end in zip(full_lines(6), ends, strict=True) for line in (full[:-1] + end, "xtail of it")]
    assert bool(detect_width("\n".join(["A", *pieces, "B", "C", ""]).encode())) is is_broken


@pytest.mark.parametrize(
    ("pieces", "whole"), [((b"x" * 80,), None), ((b"x" * 80, b"y" * 80), (b"x" * 80 + b"y" * 80, 0, 161))]
)
def test_the_last_newline_is_no_part_of_a_joined_line(
    pieces: tuple[bytes, ...], whole: tuple[bytes, int, int] | None
) -> None:
    """Even if the last piece fills the width: nothing follows it."""
    data = b"\n".join(pieces) + b"\n"
    assert join_pieces(80, pieces[0], 0, len(data), lambda at, size: data[at : at + size]) == whole
