"""Puts the parts of one writer together: stretches of a source follow each other, several sources are merged by their
stamps.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.base.lazy_re import lazy_re
from triage.ranks.splitting.spans import write_all
from triage.ranks.stamps import GLOG, ISO, seconds

_STAMPED = lazy_re(
    rb"(?m)^[^\n]{0,48}?(?:(\d{4}[-/]\d\d[-/]\d\d[ T_-]\d\d:\d\d:\d\d[^\n]{0,16})|([IWEF]\d{3,4} \d\d:\d\d:\d\d\.\d+))"
)
_BLOCK = 1 << 20
_AT_ONCE = 1 << 30
_HEAD = 1 << 18


@dataclass(frozen=True, slots=True)
class Stream:
    """The lines of one writer from one source, in order. `place` orders streams that no clock orders."""

    source: str
    attempt: int
    place: int
    parts: tuple[Path, ...]


def join(streams: Sequence[Stream], target: Path, year: int) -> bool:
    """Write all streams to `target`, and remove their parts. False when stamps are missing, so that sources follow each
    other unmerged.
    """
    ordered = sorted(streams, key=lambda stream: (stream.attempt, stream.place))
    if len(ordered) == 1:
        _concatenate(ordered[0].parts, target)
        return True
    told = True
    with target.open("wb") as output:
        for attempt in sorted({stream.attempt for stream in ordered}):
            group = [stream for stream in ordered if stream.attempt == attempt]
            stamped = [stream for stream in group if _has_stamp(stream)]
            silent = [stream for stream in group if stream not in stamped]
            told = told and (len(group) == 1 or not silent)
            for data in (
                _merged(stamped, year) if len(stamped) > 1 else (data for stream in stamped for data in _blocks(stream))
            ):
                output.write(data)
            for stream in silent:
                for data in _blocks(stream):
                    output.write(data)
    for stream in ordered:
        for part in stream.parts:
            part.unlink(missing_ok=True)
    return told


def _concatenate(parts: Sequence[Path], target: Path) -> None:
    os.replace(parts[0], target)
    if len(parts) > 1:
        with target.open("r+b", buffering=0) as output:
            output.seek(0, os.SEEK_END)
            for part in parts[1:]:
                with part.open("rb", buffering=0) as data:
                    _copy(data.fileno(), output.fileno())
                part.unlink()


def _copy(data: int, output: int) -> None:
    """The rest of one file to where another is written: by the system where it can, which spares copies."""
    with contextlib.suppress(OSError, AttributeError):
        while os.copy_file_range(data, output, _AT_ONCE):
            pass
    while block := os.read(data, _BLOCK):
        write_all(output, block)


def _has_stamp(stream: Stream) -> bool:
    for part in stream.parts:
        with part.open("rb") as file:
            if _STAMPED.search(file.read(_HEAD)):
                return True
    return False


def _blocks(stream: Stream) -> Iterator[bytes]:
    """Whole lines; the last gets the newline it may lack, for something may follow."""
    rest = b""
    for part in stream.parts:
        with part.open("rb") as file:
            while data := file.read(_BLOCK):
                cut = data.rfind(b"\n") + 1
                if cut:
                    yield rest + data[:cut]
                    rest = data[cut:]
                else:
                    rest += data
    if rest:
        yield rest + b"\n"


def _merged(streams: Sequence[Stream], year: int) -> Iterator[bytes]:
    """By stamp; lines without one go with the line before them, and a clock that steps back does not reorder its own
    stream.
    """
    runs = [_runs(stream, index, year) for index, stream in enumerate(streams)]
    for _, _, _, data in heapq.merge(*runs):
        yield data


def _runs(stream: Stream, index: int, year: int) -> Iterator[tuple[float, int, int, bytes]]:
    latest = float("-inf")
    number = 0
    early: list[bytes] = []
    for block in _blocks(stream):
        at = 0
        for match in _STAMPED.finditer(block):
            time = _time(match, year)
            if time is None or time <= latest:
                continue
            if match.start() > at:
                if latest == float("-inf"):
                    early.append(block[at : match.start()])
                else:
                    yield latest, index, number, block[at : match.start()]
                    number += 1
                at = match.start()
            latest = time
            if early:
                yield latest, index, number, b"".join(early)
                number += 1
                early = []
        if at < len(block):
            if latest == float("-inf"):
                early.append(block[at:])
            else:
                yield latest, index, number, block[at:]
                number += 1
    if early:
        yield latest, index, number, b"".join(early)


def _time(match: re.Match[bytes], year: int) -> float | None:
    text = (match[1] or match[2]).decode("latin-1")
    found = re.match(ISO if match[1] else GLOG, text)
    return seconds(found, year) if found is not None else None
