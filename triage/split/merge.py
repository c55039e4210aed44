"""Merge the parts of one output file: concatenate segments of a source, merge several sources by timestamp."""

from __future__ import annotations

import contextlib
import heapq
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.base.lazy_re import lazy_re
from triage.ranks.timestamps import GLOG, ISO, epoch_seconds
from triage.split.part_files import write_all

_STAMPED = lazy_re(
    rb"(?m)^[^\n]{0,48}?(?:(\d{4}[-/]\d\d[-/]\d\d[ T_-]\d\d:\d\d:\d\d[^\n]{0,16})|([IWEF]\d{3,4} \d\d:\d\d:\d\d\.\d+))"
)
_READ_SIZE = 1 << 20
_COPY_SIZE = 1 << 30
_HEAD = 1 << 18
_NO_TIME = float("-inf")


@dataclass(frozen=True, slots=True)
class Stream:
    """The lines of one writer from one source, in order. `place` orders streams without timestamps."""

    source: str
    attempt: int
    place: int
    parts: tuple[Path, ...]


def merge_streams(streams: Sequence[Stream], target: Path, year: int) -> bool:
    """Merge the streams into `target` by attempt and time, and remove their parts. False: timestamps are missing."""
    ordered = sorted(streams, key=lambda stream: (stream.attempt, stream.place))
    if len(ordered) == 1:
        _concatenate(ordered[0].parts, target)
        return True
    all_merged = True
    with target.open("wb") as output:
        for attempt in sorted({stream.attempt for stream in ordered}):
            group = [stream for stream in ordered if stream.attempt == attempt]
            stamped = [stream for stream in group if _has_stamp(stream)]
            unstamped = [stream for stream in group if stream not in stamped]
            all_merged = all_merged and (len(group) == 1 or not unstamped)
            if len(stamped) > 1:
                output.writelines(_merge_by_time(stamped, year))
                stamped = []
            for stream in [*stamped, *unstamped]:
                output.writelines(_read_lines(stream))
    for stream in ordered:
        for part in stream.parts:
            part.unlink(missing_ok=True)
    return all_merged


def _concatenate(parts: Sequence[Path], target: Path) -> None:
    os.replace(parts[0], target)
    if len(parts) > 1:
        with target.open("r+b", buffering=0) as output:
            output.seek(0, os.SEEK_END)
            for part in parts[1:]:
                with part.open("rb", buffering=0) as data:
                    _copy(data.fileno(), output.fileno())
                part.unlink()


def _copy(source: int, target: int) -> None:
    """Copy the rest of one file to another, inside the kernel where it can."""
    with contextlib.suppress(OSError, AttributeError):
        while os.copy_file_range(source, target, _COPY_SIZE):
            pass
    while block := os.read(source, _READ_SIZE):
        write_all(target, block)


def _has_stamp(stream: Stream) -> bool:
    for part in stream.parts:
        with part.open("rb") as file:
            if _STAMPED.search(file.read(_HEAD)):
                return True
    return False


def _read_lines(stream: Stream) -> Iterator[bytes]:
    """Yield blocks of whole lines. A last line without a newline gets one, because other lines may follow."""
    rest = b""
    for part in stream.parts:
        with part.open("rb") as file:
            while data := file.read(_READ_SIZE):
                cut = data.rfind(b"\n") + 1
                if cut:
                    yield rest + data[:cut]
                    rest = data[cut:]
                else:
                    rest += data
    if rest:
        yield rest + b"\n"


def _merge_by_time(streams: Sequence[Stream], year: int) -> Iterator[bytes]:
    """Merge by timestamp; a line without one follows the line before it, and each stream keeps its own order."""
    for _, _, _, data in heapq.merge(*[_split_at_stamps(stream, index, year) for index, stream in enumerate(streams)]):
        yield data


def _split_at_stamps(stream: Stream, index: int, year: int) -> Iterator[tuple[float, int, int, bytes]]:
    """Yield the stream in pieces that begin with a later timestamp each, as (time, `index`, number, data)."""
    latest = _NO_TIME
    number = 0
    early: list[bytes] = []
    for block in _read_lines(stream):
        at = 0
        for match in _STAMPED.finditer(block):
            time = _parse_stamp(match, year)
            if time is None or time <= latest:
                continue
            if match.start() > at:
                if latest == _NO_TIME:
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
            if latest == _NO_TIME:
                early.append(block[at:])
            else:
                yield latest, index, number, block[at:]
                number += 1
    if early:
        yield latest, index, number, b"".join(early)


def _parse_stamp(match: re.Match[bytes], year: int) -> float | None:
    stamp = re.match(ISO if match[1] else GLOG, (match[1] or match[2]).decode("latin-1"))
    return epoch_seconds(stamp, year) if stamp is not None else None
