"""Text layout for terminals: width in columns, wrapping, labels in a left column, optional colours."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LABEL = 13
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Paint:
    """Wrap text in ANSI codes if `on`. Paint a line after its layout: codes have no width."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, text: str, *styles: str) -> str:
        if not self.on or not text or not styles:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def columns(text: str) -> int:
    """Return the columns of one line: wide characters take two, combining ones none (Unicode UAX #11)."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def wrap(text: str, width: int, longest: int = 0) -> list[str]:
    """Break a paragraph at spaces; only words wider than both `width` and `longest` are broken."""
    width = max(width, 8)
    lines: list[str] = []
    line = ""
    for part in text.split():
        candidate = f"{line} {part}" if line else part
        if columns(candidate) <= width:
            line = candidate
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(part, max(width, longest))
        lines += full
    return [*lines, line] if line else lines


def fold(text: str, width: int) -> list[str]:
    """Break a log line at `width` columns, after a space if one is near; joined, the rows are the line."""
    width = max(width, 8)
    rows: list[str] = []
    at = 0
    while True:
        # Measure a window only: measuring the whole rest for each row would take quadratic time.
        row = _pieces(text[at : at + 8 * width], width)[0]
        if at + len(row) >= len(text):
            return [*rows, row]
        space = row.rfind(" ") + 1
        rows.append(row[:space] if space > len(row) * 2 // 3 else row)
        at += len(rows[-1])


def _pieces(part: str, width: int) -> list[str]:
    if part.isascii():
        return [part[start : start + width] for start in range(0, len(part), width)] or [""]
    pieces, piece, used = [], "", 0
    for character in part:
        size = _columns_of(character)
        if used + size > width:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + character, used + size
    return [*pieces, piece]


def labelled(
    label: str, paragraphs: Iterable[str], width: int, paint: Paint, *styles: str, margin: int = LABEL, longest: int = 0
) -> list[str]:
    """Return paragraphs to the right of a label, `margin` columns in; a long label stands above them.

    A paragraph that starts with "1. " or "- ", after spaces, is indented below its own text.
    """
    above = len(label) >= margin or margin > width // 2
    margin = LABEL if above else margin
    out: list[str] = []
    for paragraph in paragraphs:
        mark, body = _mark(paragraph)
        lines = wrap(body, width - margin - len(mark), longest) or [""]
        out += [mark + lines[0], *(" " * len(mark) + line for line in lines[1:])]
    indented = [" " * margin + line for line in out]
    if above:
        return [*(paint(row, *styles) for row in fold(label, width)), *indented]
    return [paint(label, *styles) + indented[0][len(label) :], *indented[1:]] if indented else []


def _mark(paragraph: str) -> tuple[str, str]:
    text = paragraph.lstrip(" ")
    indent = paragraph[: len(paragraph) - len(text)]
    first, _, rest = text.partition(" ")
    if rest and (first == "-" or (first.endswith(".") and first[:-1].isdigit())):
        return f"{indent}{first} ", rest
    return "", paragraph


def ends(left: str, right: str, width: int) -> list[str]:
    """Return both on one line, the second at the right margin, or on two lines if they do not fit."""
    gap = width - columns(left) - columns(right)
    return [left + " " * gap + right] if gap >= 2 else [left, right]


def join_sections(sections: Iterable[Iterable[str]]) -> str:
    """Return sections of lines with an empty line between them, without trailing spaces and empty sections."""
    texts = ("\n".join(line.rstrip() for line in section) for section in sections)
    return "\n\n".join(filter(None, texts)) + "\n"
