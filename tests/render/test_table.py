"""Tables for people and for spreadsheets, of any text."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings, strategies as st

from triage.render import table
from triage.render.terminal import Paint, columns

from .factories import texts


@settings(deadline=None)
@given(st.lists(st.tuples(texts, st.none() | st.integers(), texts), max_size=5))
def test_csv_reads_back_and_holds_no_formula(rows: list[tuple[str, int | None, str]]) -> None:
    """As many rows and cells as were written, and no text in it that a spreadsheet runs."""
    read = list(csv.reader(io.StringIO(table.as_csv(("a", "b", "c"), rows), newline="")))
    assert [len(row) for row in read] == [3] * (len(rows) + 1)
    for row in read[1:]:
        assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))
        assert not row[2].startswith(("=", "+", "-", "@", "\t", "\r"))


@settings(deadline=None)
@given(st.lists(st.tuples(texts, texts), max_size=5), st.integers(40, 120))
def test_lines_fit_and_steer_nothing(rows: list[tuple[str, str]], width: int) -> None:
    """The last column gives way; nothing in it is obeyed by a terminal."""
    narrow = [(table.cut(first, 10), second) for first, second in rows]
    lines = table.as_text(("one", "two"), narrow, width, Paint(False))
    assert len(lines) == len(rows) + 1
    assert [line for line in lines if columns(line) > width and "…" not in line] == []
    assert all(sign.isprintable() or sign == " " for line in lines for sign in line if sign < "\x80")


@pytest.mark.parametrize(("value", "shown"), [(0, ""), (8, "████"), (4, "██"), (1, "▌"), (0.001, "▏")])
def test_bars(value: float, shown: str) -> None:
    """In eighths of a character; a positive value has at least one."""
    assert table.bar(value, 8, 4) == shown
