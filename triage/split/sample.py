"""Sample some lines from all over a source, to detect its layout before it is split."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from triage.base.lazy_re import lazy_re
from triage.ranks.log_wrappers import CRI_PREFIX
from triage.split.launcher_layout import HEAD
from triage.split.unwrapped_stream import Format, UnwrappedStream, detect_format

if TYPE_CHECKING:
    from triage.sources.bytestream import ByteStream

_PLACES = 8
_WINDOW = 1 << 18
_STREAM = 4 << 20
_FORMAT_HEAD = 1 << 16
_LINES_OF_STREAM = 4000
_FEWER_TAGGED = 16
_TAG = lazy_re(rb"\[rank\d{1,6}\]:")
_BEFORE_TAG = 160


class Sample(NamedTuple):
    """The format of a source, the starts of some of its lines, and its first bytes (unwrapped).

    `tagged` holds the starts of lines with torch's rank tag behind another prefix. `longest` is the length in bytes of
    the longest line in the sampled windows.
    """

    format: Format
    lines: list[str]
    first: bytes
    tagged: list[str]
    longest: int


def sample_file(path: str, size: int, most: int) -> Sample:
    """Sample at most `most` lines of a file. A file that cannot be read gives an empty sample."""
    try:
        with open(path, "rb") as file:
            first = file.read(_STREAM)
    except OSError:
        return Sample("", [], b"", [], 0)
    if detect_format(first[:_FORMAT_HEAD]):
        return _sample_head(first, most)
    lines, tagged, longest = _sample_windows(path, size, most)
    return Sample("", lines, first, tagged, longest)


def sample_stream(stream: BinaryIO) -> Sample:
    """Sample the start of a stream without consuming it."""
    peeking: ByteStream = stream  # type: ignore[assignment]
    return _sample_head(peeking.peek(_STREAM), _LINES_OF_STREAM)


def _sample_windows(path: str, size: int, most: int) -> tuple[list[str], list[str], int]:
    """Sample windows from the start, the end and between: line starts, tagged line starts, longest line."""
    lines: list[str] = []
    tagged: list[str] = []
    longest = 0
    last = max(0, size - _WINDOW)
    places = [last * place // (_PLACES - 1) for place in range(_PLACES if last else 1)]
    try:
        with open(path, "rb", buffering=0) as file:
            for at in places:
                data = os.pread(file.fileno(), _WINDOW, at)
                lines += _thin_out(data, at, most // len(places) + 1)
                tagged += _tagged_lines(data, most)
                longest = max(longest, _longest(data))
    except OSError:
        return [], [], 0
    return lines, tagged, longest


def _sample_head(first: bytes, most: int) -> Sample:
    format = detect_format(first[:_FORMAT_HEAD])  # noqa: A001
    data = UnwrappedStream(io.BytesIO(first), format).read(_STREAM) if format else first
    return Sample(format, _thin_out(data, 0, most), data, _tagged_lines(data, most), _longest(data))


def _longest(data: bytes) -> int:
    return max(map(len, data.split(b"\n")))


def _tagged_lines(data: bytes, most: int) -> list[str]:
    """Return one line for each prefix before torch's tag: they show which rank a local rank is."""
    lines: dict[bytes, bytes] = {}
    tagged_at = -1
    for match in _TAG.finditer(data):
        begin = data.rfind(b"\n", 0, match.start()) + 1
        is_behind_prefix = tagged_at < begin < match.start() <= begin + _BEFORE_TAG
        if is_behind_prefix and (before := data[begin : match.end()]) not in lines:
            lines[before] = data[begin : begin + HEAD].split(b"\n", 1)[0]
            if len(lines) == most // _FEWER_TAGGED:
                break
        tagged_at = begin if begin < match.start() else tagged_at
    return [line[:HEAD].rstrip(b"\r").decode("latin-1") for line in lines.values()]


def _thin_out(data: bytes, offset: int, most: int) -> list[str]:
    """Return at most `most` whole lines, evenly spread."""
    lines = data.split(b"\n")
    lines = lines[1 if offset else 0 : -1] or lines[:1]
    if b" P " in data:  # what follows a cut piece has no prefix of its own
        is_cut = [(piece := CRI_PREFIX.match(line)) is not None and piece[2] == b"P" for line in lines]
        lines = [line for line, before in zip(lines, [False, *is_cut], strict=False) if not before] or lines
    step = max(1, len(lines) // max(1, most))
    return [line[:HEAD].rstrip(b"\r").decode("latin-1") for line in lines[::step][:most]]
