"""A few lines from all over a source, to learn its layout before it is read."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO

from triage.ranks.envelopes import CRI
from triage.ranks.splitting.layout import HEAD
from triage.ranks.splitting.opened import Kind, Opened, kind_of

if TYPE_CHECKING:
    from triage.sources.bytestream import ByteStream

_PLACES = 8
_WINDOW = 1 << 18
_STREAM = 4 << 20
_HEAD = 1 << 16
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


def sampled(path: str, size: int, most: int) -> tuple[Kind, list[str]]:
    """How the lines of a file are packed, and the beginnings of some of them."""
    try:
        with open(path, "rb") as file:
            kind = kind_of(file.read(_HEAD))
            file.seek(0)
            return kind, _thin(Opened(file, kind).read(_STREAM), 0, most) if kind else heads(path, size, most)
    except OSError:
        return "", []


def sampled_of(stream: BinaryIO) -> tuple[Kind, list[str]]:
    """The same of the first bytes of a stream, which can be read from its begin afterwards."""
    peeking: ByteStream = stream  # type: ignore[assignment]
    data = peeking.peek(_STREAM)
    kind = kind_of(data[:_HEAD])
    return kind, _thin(Opened(io.BytesIO(data), kind).read(_STREAM) if kind else data, 0, _LINES)


def _thin(data: bytes, offset: int, most: int) -> list[str]:
    """Whole lines, evenly from all over."""
    lines = data.split(b"\n")
    lines = lines[1 if offset else 0 : -1] or lines[:1]
    if b" P " in data:  # what follows a piece that goes on has no prefix of its own
        goes_on = [(piece := CRI.match(line)) is not None and piece[2] == b"P" for line in lines]
        lines = [line for line, before in zip(lines, [False, *goes_on], strict=False) if not before] or lines
    step = max(1, len(lines) // max(1, most))
    return [line[:HEAD].rstrip(b"\r").decode("latin-1") for line in lines[::step][:most]]
