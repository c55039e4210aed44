"""Tables: columns for a person, CSV that no spreadsheet takes for formulas, bars of characters."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC

from triage.render.phrases import to_datetime
from triage.render.sanitize import sanitize_line
from triage.render.terminal import Paint, columns

Cell = str | int | float | None
BLOCKS = " ▏▎▍▌▋▊▉█"
# What a spreadsheet takes for the beginning of a formula; a tab and a carriage return come before one in some of them.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_csv(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return RFC 4180 with a header; a text that a spreadsheet would run as a formula gets an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(head)
    writer.writerows([[escape_formula(cell) for cell in row] for row in rows])
    return out.getvalue()


def escape_formula(cell: Cell) -> Cell:
    """Return the cell for CSV: a text on one line that is no formula."""
    if not isinstance(cell, str):
        return cell
    text = sanitize_line(cell) if cell else cell
    return "'" + text if text.startswith(_FORMULA) or cell.lstrip(" ").startswith(_FORMULA) else text


def as_text(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, paint: Paint, *, right: Sequence[int] = ()
) -> list[str]:
    """Return lines of columns; the last column takes the rest and is cut; `right` are right-aligned columns."""
    cells = [[sanitize_line(cell) for cell in row] for row in rows]
    widths = [max(columns(line[number]) for line in [list(head), *cells]) for number in range(len(head) - 1)]
    room = max(width - sum(widths) - 2 * len(widths), 12)
    lines = []
    for number, row in enumerate([list(head), *cells]):
        columns_of_row = enumerate(zip(row, widths, strict=False))
        parts = [_padded(cell, size, place in right) for place, (cell, size) in columns_of_row]
        line = "  ".join([*parts, cut(row[-1], room)]).rstrip()
        lines.append(paint(line, "bold") if number == 0 else line)
    return lines


def cut(text: str, room: int) -> str:
    """Return at most `room` columns of the text."""
    if columns(text) <= room:
        return text
    while text and columns(text) > room - 1:
        text = text[: -max(1, (columns(text) - room) // 2)]
    return text + "…"


def bar(value: float, most: float, cells: int = 20) -> str:
    """Return a bar of block characters."""
    eighths = round(value / most * cells * 8) if most > 0 else 0
    eighths = max(eighths, 1) if value > 0 else 0
    return BLOCKS[8] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")


def day(seconds: float | None) -> str:
    """Return `2025-11-21 03:17`, in UTC."""
    when = to_datetime(seconds)
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if when is not None else "-"


def iso(seconds: float | None) -> str | None:
    """Return `2025-11-21T03:17:26Z`."""
    when = to_datetime(seconds)
    return when.replace(tzinfo=None, microsecond=0).isoformat() + "Z" if when is not None else None


def _padded(text: str, size: int, right: bool) -> str:
    space = " " * (size - columns(text))
    return space + text if right else text + space
