"""A few lines from all over a source, to learn its layout before it is read."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

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


class Sample(NamedTuple):
    """How the lines of a source are packed, the beginnings of some of them from all over, and its first bytes, opened."""

    kind: Kind
    lines: list[str]
    first: bytes


def sampled(path: str, size: int, most: int) -> Sample:
    """Of a file."""
    try:
        with open(path, "rb") as file:
            first = file.read(_STREAM)
    except OSError:
        return Sample("", [], b"")
    found = _opened(first, most)
    return found if found.kind else Sample("", heads(path, size, most), first)


def sampled_of(stream: BinaryIO) -> Sample:
    """Of a stream, which can be read from its begin afterwards."""
    peeking: ByteStream = stream  # type: ignore[assignment]
    return _opened(peeking.peek(_STREAM), _LINES)


def _opened(first: bytes, most: int) -> Sample:
    kind = kind_of(first[:_HEAD])
    data = Opened(io.BytesIO(first), kind).read(_STREAM) if kind else first
    return Sample(kind, _thin(data, 0, most), data)


def _thin(data: bytes, offset: int, most: int) -> list[str]:
    """Whole lines, evenly from all over."""
    lines = data.split(b"\n")
    lines = lines[1 if offset else 0 : -1] or lines[:1]
    if b" P " in data:  # what follows a piece that goes on has no prefix of its own
        goes_on = [(piece := CRI.match(line)) is not None and piece[2] == b"P" for line in lines]
        lines = [line for line, before in zip(lines, [False, *goes_on], strict=False) if not before] or lines
    step = max(1, len(lines) // max(1, most))
    return [line[:HEAD].rstrip(b"\r").decode("latin-1") for line in lines[::step][:most]]
