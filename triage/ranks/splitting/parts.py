"""The files that a split writes while it reads: one for each writer of each stretch, with a bounded number of them
open.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

from triage.ranks.splitting.spans import Spans, write_all

_MOST_OPEN, _FEWEST_OPEN, _OTHERS_OPEN = 2048, 32, 96


class _Part:
    """What is on disk of one file."""

    __slots__ = ("lines", "size")

    def __init__(self) -> None:
        self.size = self.lines = 0


class Parts:
    """Appends to files `<prefix>.<key>` in a directory. Counts bytes and lines of each key."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self._start = f"{directory}/{prefix}."
        self._open: OrderedDict[int, int] = OrderedDict()
        self._parts: dict[int, _Part] = {}
        self._most = _most_open()

    def path(self, key: int) -> Path:
        return Path(f"{self._start}{key}")

    def append(self, key: int, data: bytes, lines: int) -> None:
        """Append bytes to a key's file."""
        self._count(key, len(data), lines)
        if data:
            write_all(self._fd(key), data)

    def append_spans(self, key: int, spans: Spans, begin: int, end: int, size: int, lines: int) -> None:
        """Append the rows from `begin` to `end`, `size` bytes in all."""
        self._count(key, size, lines)
        if size:
            spans.write(self._fd(key), begin, end, size)

    def written(self) -> list[tuple[int, int, int]]:
        """Of each key the bytes and the lines."""
        return [(key, part.size, part.lines) for key, part in self._parts.items()]

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def _count(self, key: int, size: int, lines: int) -> None:
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = _Part()
        part.size += size
        part.lines += lines

    def _fd(self, key: int) -> int:
        fd = self._open.get(key)
        if fd is not None:
            self._open.move_to_end(key)
            return fd
        if len(self._open) >= self._most:
            os.close(self._open.popitem(last=False)[1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        fd = self._open[key] = os.open(f"{self._start}{key}", flags, 0o666)
        return fd


def _most_open() -> int:
    """As many files as this process may have open, less what others need."""
    try:
        import resource
    except ImportError:
        return _FEWEST_OPEN
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_OPEN if allowed < 0 else max(_FEWEST_OPEN, min(_MOST_OPEN, allowed - _OTHERS_OPEN))
