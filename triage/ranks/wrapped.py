"""Pastes from a terminal that broke long lines at its width: the pieces are put together again.

Told by the text alone: no line is longer than the width, several are exactly so long, most of those break off within a
word, and what
follows them begins like nothing that opens a line. Only small sources are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from triage.base.lazy_re import lazy_re

Read = Callable[[int, int], bytes]

SMALL = 1 << 18
_NARROW, _WIDE = 60, 400
_FEWEST = 3
_MOST_PIECES = 200
_OPENS = lazy_re(
    r'\s+File "|Traceback \(|\[|\(\w+ pid=|\d{4}-\d\d-\d\d[T ]|\s*\d{1,5}: |[\w.-]+:\d+:\d+ \[|[-=*#]{8}|[IWEF]\d{4} '
)
_WORD = lazy_re(r"[\w./]")


def width_of(data: bytes) -> int:
    """The width at which the lines of a source were broken; 0 where they were not."""
    if not data or len(data) > SMALL:
        return 0
    lines = [line.rstrip("\r") for line in data.decode("utf-8", "replace").split("\n")]
    width = max(map(len, lines))
    full = [index for index, line in enumerate(lines[:-1]) if len(line) == width]
    if not _NARROW <= width <= _WIDE or len(full) < _FEWEST or len(full) * 5 > 4 * sum(map(bool, lines)):
        return 0
    following = [lines[index + 1] for index in full]
    within = sum(bool(_WORD.match(lines[index][-1])) and bool(_WORD.match(lines[index + 1][:1])) for index in full)
    opening = sum(_OPENS.match(line) is not None or not line for line in following)
    return width if within * 2 >= len(full) and opening * 10 <= len(full) else 0


def joined(width: int, data: bytes, offset: int, size: int, read: Read) -> tuple[bytes, int, int] | None:
    """The line that the piece `data` at `offset` belongs to, as if it were whole, where it begins and where it ends;
    None for one that is whole.
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


def lines_of(width: int, data: bytes) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    """The lines that are in pieces: where they begin and end, their text, and the pieces."""
    at = 0
    pieces: list[str] = []
    begin = 0
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
