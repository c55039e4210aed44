"""The files of a running split: one part for each writer and segment, with a limited number of open files."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

from triage.split.gather_write import MemorySpans, write_all

_MOST_OPEN, _FEWEST_OPEN, _OPEN_ELSEWHERE = 2048, 32, 96


class _Size:
    """Bytes and lines in one file."""

    __slots__ = ("bytes", "lines")

    def __init__(self) -> None:
        self.bytes = self.lines = 0


class PartFiles:
    """Append to the files `<prefix>.<key>` of a directory, and count the bytes and lines of each key."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self._start = f"{directory}/{prefix}."
        self._open: OrderedDict[int, int] = OrderedDict()
        self._sizes: dict[int, _Size] = {}
        self._most_open = _most_open()

    def path(self, key: int) -> Path:
        """Return the path of a key's file."""
        return Path(f"{self._start}{key}")

    def append(self, key: int, data: bytes, lines: int) -> None:
        """Append bytes to a key's file."""
        self._count(key, len(data), lines)
        if data:
            write_all(self._fd(key), data)

    def append_spans(self, key: int, spans: MemorySpans, begin: int, end: int, size: int, lines: int) -> None:
        """Append the rows from `begin` to `end`, `size` bytes in all, to a key's file."""
        self._count(key, size, lines)
        if size:
            spans.write(self._fd(key), begin, end, size)

    def sizes(self) -> list[tuple[int, int, int]]:
        """Return key, bytes and lines of every file."""
        return [(key, size.bytes, size.lines) for key, size in self._sizes.items()]

    def close(self) -> None:
        """Close all files."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _count(self, key: int, size: int, lines: int) -> None:
        counted = self._sizes.get(key)
        if counted is None:
            counted = self._sizes[key] = _Size()
        counted.bytes += size
        counted.lines += lines

    def _fd(self, key: int) -> int:
        fd = self._open.get(key)
        if fd is not None:
            self._open.move_to_end(key)
            return fd
        if len(self._open) >= self._most_open:
            os.close(self._open.popitem(last=False)[1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        fd = self._open[key] = os.open(f"{self._start}{key}", flags, 0o666)
        return fd


def _most_open() -> int:
    """Return how many files may be open: the limit of the process, less what the rest of it needs."""
    try:
        import resource
    except ImportError:
        return _FEWEST_OPEN
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_OPEN if limit < 0 else max(_FEWEST_OPEN, min(_MOST_OPEN, limit - _OPEN_ELSEWHERE))
