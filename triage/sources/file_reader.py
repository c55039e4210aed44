"""Read plain files again at any offset, and find the lines of offsets."""

from __future__ import annotations

import contextlib
import errno
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

from triage.base.addresses import displayed_address
from triage.base.forks import LocalProcesses, RemoteUnits, SharedWork, WorkSharer
from triage.model.evidence import Warning
from triage.sources.interface import Warn
from triage.sources.opened_file import LocalFile, OpenedFile, accept_file, describe_file, open_file

_MAX_OPEN_FILES = 64
# A file of so many bytes that is read again and again is held: a slice costs less than a system call.
_SMALL_FILE, _HELD_AT = 1 << 17, 3
# Newlines are counted in chunks that begin at multiples of this size: the cells of objects, whose counts may be known.
_CHUNK = 1 << 18
# Line feeds are counted in pieces of this size, by several processes from so many bytes on.
_PIECE = 1 << 22
_MIN_BYTES_FOR_PROCESSES = 1 << 26


class FileReader:
    """Reads at any offset of many files with at most `limit` of them open. For one thread.

    A file that vanished, shrank or cannot be read gives fewer bytes or none, and one warning.
    """

    def __init__(self, warn: Warn | None = None, limit: int = _MAX_OPEN_FILES) -> None:
        self._warn = warn
        self._limit = max(1, limit)
        self._files: OrderedDict[str, OpenedFile] = OrderedDict()
        self._last_path, self._times, self._held = "", 0, b""
        self._warned_paths: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read_at(self, path: str, offset: int, length: int) -> bytes:
        """Return the `length` bytes at `offset`; fewer at the end of the file."""
        if path != self._last_path:
            self._last_path, self._times, self._held = path, 0, b""
        self._times += 1
        if self._times == _HELD_AT:
            self._held = self._read_small()
        if self._held:
            return self._held[offset : offset + length] if length > 0 else b""
        parts: list[bytes] = []
        try:
            file = self._open(path)
            while length > 0 and (part := file.read_at(length, offset)):
                parts.append(part)
                offset += len(part)
                length -= len(part)
        except OSError as error:
            self._warn_unreadable(path, error)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def count_newlines(self, path: str, start: int, stop: int) -> int:
        """Return how many newlines are between two offsets, without reading where that is known."""
        with contextlib.suppress(OSError):  # the read reports it
            known = self._open(path).known_newlines(start, stop)
            if known is not None:
                return known
        # bytes.count does 1.5 to 3 GB/s; a faster library for this would cost its import.
        return self.read_at(path, start, stop - start).count(b"\n")

    def close(self) -> None:
        """Close every file."""
        while self._files:
            self._files.popitem()[1].close()
        self._last_path, self._held = "", b""

    def _read_small(self) -> bytes:
        """Return all bytes of the file that was read last, if it is small and of this machine."""
        file = self._files.get(self._last_path)
        with contextlib.suppress(OSError):
            if isinstance(file, LocalFile) and file.size() <= _SMALL_FILE:
                return file.read_at(_SMALL_FILE, 0)
        return b""

    def _open(self, path: str) -> OpenedFile:
        file = self._files.get(path)
        if file is not None:
            self._files.move_to_end(path)
            return file
        while len(self._files) >= self._limit:
            self._files.popitem(last=False)[1].close()
        file = self._files[path] = open_file(path)
        return file

    def _warn_unreadable(self, path: str, error: OSError) -> None:
        if self._warn and path not in self._warned_paths:
            self._warned_paths.add(path)
            self._warn(Warning("unreadable", displayed_address(path), f"could not be read again: {error.strerror}"))


def find_line_numbers(
    wanted: Mapping[str, Collection[int]], sharer: WorkSharer = LocalProcesses()
) -> dict[str, dict[int, int]]:
    """Return, for each path, the 1-based lines of these byte offsets.

    Newlines are counted up to the last offset only, by all who share the work where that is far. An offset past the
    end is on the last line, as is one past what can be read.
    """
    pieces: list[tuple[str, int, int]] = []
    for path, offsets in wanted.items():
        edges = sorted({0, *range(0, max(offsets, default=0), _PIECE), *offsets})
        pieces.extend((path, start, stop) for start, stop in pairwise(edges))
    lines: dict[str, dict[int, int]] = {path: {0: 1} for path in wanted}
    sizes = [stop - start for _, start, stop in pieces]
    with FileReader() as files:
        work = SharedWork(
            lambda number: _count(files, *pieces[number]),
            len(pieces),
            int,
            int,
            lambda: RemoteUnits(
                count_newlines, None, [[describe_file(path), start, stop] for path, start, stop in pieces], sizes
            ),
        )
        counts = (sharer if sum(sizes) >= _MIN_BYTES_FOR_PROCESSES else LocalProcesses()).map(work)
        for (path, start, stop), count in zip(pieces, counts, strict=True):
            lines[path][stop] = lines[path][start] + count
    return lines


def count_newlines(_: object, unit: Sequence[Any]) -> int:
    """Count the newlines between two offsets of a file, on another machine. Raises OSError if they are not there."""
    described, start, stop = unit
    path = accept_file(described)
    with contextlib.closing(open_file(path)) as file:
        if file.size() < stop:
            raise OSError(errno.ENODATA, "it is shorter here")
    with FileReader() as files:
        return _count(files, path, start, stop)


def _count(files: FileReader, path: str, start: int, stop: int) -> int:
    edges = [start, *range((start // _CHUNK + 1) * _CHUNK, stop, _CHUNK), stop]
    return sum(files.count_newlines(path, *edge) for edge in pairwise(edges))
