"""A few lines from all over a source, to learn its layout before it is read."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from triage.base.lazy_re import lazy_re
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
_FEWER_TAGGED = 16
_TAG = lazy_re(rb"\[rank\d{1,6}\]:")
_BEFORE_TAG = 160


def heads(path: str, size: int, most: int) -> tuple[list[str], list[str], int]:
    """The beginnings of at most `most` lines from the begin, the end and between, of tagged ones there, and the longest
    one's length.
    """
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return [], [], 0
    try:
        last = max(0, size - _WINDOW)
        places = [last * place // (_PLACES - 1) for place in range(_PLACES if last else 1)]
        lines: list[str] = []
        tagged: list[str] = []
        longest = 0
        for at in places:
            data = os.pread(fd, _WINDOW, at)
            lines += _thin(data, at, most // len(places) + 1)
            tagged += _tagged(data, most)
            longest = max(longest, _longest(data))
        return lines, tagged, longest
    except OSError:
        return [], [], 0
    finally:
        os.close(fd)


class Sample(NamedTuple):
    """How the lines of a source are packed, the beginnings of some of them from all over, and its first bytes, opened.

    `tagged`: of further lines that name their rank behind something else. `longest`: bytes of the longest line that was
    looked at.
    """

    kind: Kind
    lines: list[str]
    first: bytes
    tagged: list[str]
    longest: int


def sampled(path: str, size: int, most: int) -> Sample:
    """Of a file."""
    try:
        with open(path, "rb") as file:
            first = file.read(_STREAM)
    except OSError:
        return Sample("", [], b"", [], 0)
    if kind_of(first[:_HEAD]):
        return _opened(first, most)
    lines, tagged, longest = heads(path, size, most)
    return Sample("", lines, first, tagged, longest)


def sampled_of(stream: BinaryIO) -> Sample:
    """Of a stream, which can be read from its begin afterwards."""
    peeking: ByteStream = stream  # type: ignore[assignment]
    return _opened(peeking.peek(_STREAM), _LINES)


def _opened(first: bytes, most: int) -> Sample:
    kind = kind_of(first[:_HEAD])
    data = Opened(io.BytesIO(first), kind).read(_STREAM) if kind else first
    return Sample(kind, _thin(data, 0, most), data, _tagged(data, most), _longest(data))


def _longest(data: bytes) -> int:
    return max(map(len, data.split(b"\n")))


def _tagged(data: bytes, most: int) -> list[str]:
    """One line for each beginning with torch's tag behind another prefix: what tells which rank a local rank is."""
    found: dict[bytes, bytes] = {}
    begun = -1
    for match in _TAG.finditer(data):
        begin = data.rfind(b"\n", 0, match.start()) + 1
        if begun < begin < match.start() <= begin + _BEFORE_TAG and (before := data[begin : match.end()]) not in found:
            found[before] = data[begin : begin + HEAD].split(b"\n", 1)[0]
            if len(found) == most // _FEWER_TAGGED:
                break
        begun = begin if begin < match.start() else begun
    return [line[:HEAD].rstrip(b"\r").decode("latin-1") for line in found.values()]


def _thin(data: bytes, offset: int, most: int) -> list[str]:
    """Whole lines, evenly from all over."""
    lines = data.split(b"\n")
    lines = lines[1 if offset else 0 : -1] or lines[:1]
    if b" P " in data:  # what follows a piece that goes on has no prefix of its own
        goes_on = [(piece := CRI.match(line)) is not None and piece[2] == b"P" for line in lines]
        lines = [line for line, before in zip(lines, [False, *goes_on], strict=False) if not before] or lines
    step = max(1, len(lines) // max(1, most))
    return [line[:HEAD].rstrip(b"\r").decode("latin-1") for line in lines[::step][:most]]
