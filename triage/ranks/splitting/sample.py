"""A few lines from all over a source, to learn its layout before it is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

from triage.ranks.splitting.layout import HEAD

if TYPE_CHECKING:
    from triage.sources.bytestream import ByteStream

_PLACES = 8
_WINDOW = 1 << 18
_STREAM = 4 << 20
_LINES = 4000


def heads(path: str, size: int, most: int) -> list[str]:
    """The beginnings of at most `most` lines from the begin, the end and between."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return []
    try:
        if size <= _WINDOW:
            return _thin(os.pread(fd, size, 0), 0, most)
        last = size - _WINDOW
        each = most // _PLACES + 1
        places = [last * place // (_PLACES - 1) for place in range(_PLACES)]
        return [head for at in places for head in _thin(os.pread(fd, _WINDOW, at), at, each)]
    except OSError:
        return []
    finally:
        os.close(fd)


def heads_of(stream: BinaryIO) -> tuple[list[str], BinaryIO]:
    """The same of the first bytes of a stream, which can be read from its begin afterwards."""
    peeking: ByteStream = stream  # type: ignore[assignment]
    return _thin(peeking.peek(_STREAM), 0, _LINES), stream


def _thin(data: bytes, offset: int, most: int) -> list[str]:
    """Whole lines, evenly from all over."""
    lines = data.split(b"\n")
    lines = lines[1 if offset else 0 : -1] or lines[:1]
    step = max(1, len(lines) // max(1, most))
    return [line[:HEAD].rstrip(b"\r").decode("latin-1") for line in lines[::step][:most]]
