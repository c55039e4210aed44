from __future__ import annotations

from hypothesis import given, strategies as st

from triage.render.sanitize import sanitize_line
from triage.render.terminal import Paint, columns, ends, fold, labelled, wrap

from .factories import texts

lines = texts.map(sanitize_line)
widths = st.integers(8, 60)


@given(lines, widths)
def test_wrapped_lines_fit_and_lose_no_word(text: str, width: int) -> None:
    """Every line is at most the width, and without spaces the text is the same."""
    wrapped = wrap(text, width)
    assert all(columns(line) <= width for line in wrapped)
    assert "".join(wrapped).replace(" ", "") == "".join(text.split())


@given(lines, widths)
def test_folded_rows_fit_and_join_to_the_line(text: str, width: int) -> None:
    """A folded log line can be put together again."""
    rows = fold(text, width)
    assert all(columns(row) <= width for row in rows)
    assert "".join(rows) == text


def test_wide_characters_take_two_columns() -> None:
    """A CJK word of five characters does not fit in nine columns."""
    assert columns("训练失败了") == 10
    assert wrap("训练失败了", 9) == ["训练失败", "了"]


def test_numbered_steps_are_indented_below_their_text() -> None:
    """The second line of a step starts where its words start."""
    assert labelled("Do", ["1. one two three"], 26, Paint(False)) == [
        "Do           1. one two",
        "                three",
    ]


def test_a_long_label_stands_above() -> None:
    """A label without room beside it gets its own line."""
    assert labelled("a-label-that-is-too-long", ["text"], 60, Paint(False)) == [
        "a-label-that-is-too-long",
        " " * 13 + "text",
    ]


def test_both_ends_share_a_line_if_they_fit() -> None:
    """Two columns apart at least."""
    assert ends("a", "b", 4) == ["a  b"]
    assert ends("a", "b", 3) == ["a", "b"]


def test_paint_is_off_by_default() -> None:
    """Without colour no code is written."""
    assert Paint(False)("x", "red") == "x"
    assert Paint(True)("x", "bold", "red") == "\x1b[1;31mx\x1b[0m"
