"""Text copied from a terminal program that draws a bar on both sides of each line: read without the bars."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.sources.bytestream import PIECE, ByteStream

_BARS = tuple(bar.encode() for bar in "│┃║")
_LEFT = lazy_re("(?m)^[ \\t]*(?:│|┃|║) ?".encode())
_RIGHT = lazy_re("(?m)[ \\t]*(?:│|┃|║)[ \\t]*(?=\\r?$)".encode())
_FEWEST = 2  # lines in a frame
_LONGEST = 1 << 20  # bytes of a line; a longer one is passed on in parts


def has_line_frames(head: bytes) -> bool:
    """Whether all lines in the start of a text but blank ones begin and end with the same bar."""
    lines = [line for row in head.split(b"\n")[:-1] if (line := row.strip())]
    if len(lines) < _FEWEST:
        return False
    bar = lines[0][:3]
    return bar in _BARS and all(line.startswith(bar) and line.endswith(bar) and len(line) > 3 for line in lines)


def remove_line_frames(text: bytes) -> bytes:
    """Return whole lines without their bars and without the blanks that fill them up."""
    return _RIGHT.sub(b"", _LEFT.sub(b"", text))


class UnframedStream(ByteStream):
    """A parent's lines without their frame."""

    def __init__(self, parent: ByteStream) -> None:
        super().__init__()
        self._parent = parent
        self._begin = b""  # of a line, as far as it is known

    def _read_piece(self) -> bytes:
        while True:
            piece = self._parent.read1(PIECE)
            data = self._begin + piece
            if not data:
                self.damage = self._parent.damage
                return b""
            end = data.rfind(b"\n") + 1
            if not piece or (end == 0 and len(data) > _LONGEST):
                end = len(data)
            ready, self._begin = data[:end], data[end:]
            if ready:
                return remove_line_frames(ready)
