"""Pastes from a terminal that broke long lines at its width: join the pieces again.

The text alone shows it: no line is longer than the width, several are exactly that long, most of these break off within
a word, and what follows them does not look like the start of a line, nor begin as other lines do, as in a log whose
lines have the same length. Only small sources are checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from triage.base.lazy_re import lazy_re

Read = Callable[[int, int], bytes]

SMALL = 1 << 18
_NARROWEST, _WIDEST = 60, 400
_FEWEST = 3
_MOST_PIECES = 200
_LINE_START = lazy_re(
    r'\s+File "|Traceback \(|\[|\(\w+ pid=|\d{4}-\d\d-\d\d[T ]|\s*\d{1,5}: |[\w.-]+:\d+:\d+ \[|[-=*#]{8}|[IWEF]\d{4} '
)
_NUMBER = lazy_re(r"\d+")
_WORD_CHARACTER = lazy_re(r"[\w./]")


def detect_width(data: bytes) -> int:
    """Return the width at which the lines of a source were broken; 0 if they were not."""
    if not data or len(data) > SMALL:
        return 0
    lines = [line.rstrip("\r") for line in data.decode("utf-8", "replace").split("\n")]
    width = max(map(len, lines))
    full = [index for index, line in enumerate(lines[:-1]) if len(line) == width]
    if not _NARROWEST <= width <= _WIDEST or len(full) < _FEWEST or len(full) * 5 > 4 * sum(map(bool, lines)):
        return 0
    following = [lines[index + 1] for index in full]
    within_word = sum(
        bool(_WORD_CHARACTER.match(lines[index][-1])) and bool(_WORD_CHARACTER.match(lines[index + 1][:1]))
        for index in full
    )
    new_lines = sum(_LINE_START.match(line) is not None or not line for line in following)
    whole = {_first_word(after) for line, after in itertools.pairwise(lines) if len(line) < width}
    alike = sum(_first_word(line) in whole or _first_word(line) == _first_word(lines[0]) for line in following)
    is_broken = within_word * 2 >= len(full) and new_lines * 10 <= len(full) and alike * 2 <= len(full)
    return width if is_broken else 0


def _first_word(line: str) -> str:
    """Return the first word of a line without its numbers: prefixes of two writers are alike."""
    return _NUMBER.sub("#", line.split(maxsplit=1)[0]) if line.strip() else ""


def join_pieces(width: int, data: bytes, offset: int, size: int, read: Read) -> tuple[bytes, int, int] | None:
    """Return the whole line of the piece `data` at `offset`, where it begins and where it ends.

    None for a line that is not broken.
    """
    begin = offset
    for _ in range(_MOST_PIECES):
        start = max(0, begin - 4 * width - 2)
        before = read(start, begin - start)
        piece = before[:-1].rsplit(b"\n", 1)[-1] if before.endswith(b"\n") else b""
        if not begin or _length(piece) != width:
            break
        begin -= len(piece) + 1
    text, at = b"", begin
    for _ in range(_MOST_PIECES):
        piece = read(at, min(4 * width + 2, size - at)).split(b"\n", 1)[0]
        text += piece.rstrip(b"\r")
        at += len(piece)
        if _length(piece) != width or at + 1 >= size:
            break
        at += 1
    return None if begin == offset and at == offset + len(data) else (text, begin, at)


def find_joined_lines(width: int, data: bytes) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    """Yield the broken lines of a whole source: start, end, the whole text, and the pieces."""
    at = begin = 0
    pieces: list[str] = []
    for raw in data.split(b"\n"):
        piece = raw.decode("utf-8", "replace").rstrip("\r")
        begin = begin if pieces else at
        pieces.append(piece)
        if len(piece) != width:
            if len(pieces) > 1:
                yield begin, at + len(raw), "".join(pieces), pieces
            pieces = []
        at += len(raw) + 1


def _length(piece: bytes) -> int:
    return len(piece.decode("utf-8", "replace").rstrip("\r"))
