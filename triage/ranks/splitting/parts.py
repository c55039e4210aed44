"""The files that a split writes while it reads: one for each writer of each stretch, buffered, with a bounded number of them open."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

PIECE = 1 << 17
MOST_BUFFERED = 48 << 20
_OPEN = 256


class _Piece:
    """What is to be written to one file: so many bytes here, `total` on disk, `lines` of both."""

    __slots__ = ("data", "lines", "size", "total")

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.size = self.total = self.lines = 0


class Parts:
    """Appends to files `<prefix>.<key>` in a directory. Counts bytes and lines of each key."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self._directory = directory
        self._prefix = prefix
        self._open: OrderedDict[int, int] = OrderedDict()
        self._pieces: dict[int, _Piece] = {}
        self._buffered = 0

    def path(self, key: int) -> Path:
        return self._directory / f"{self._prefix}.{key}"

    def add(self, key: int, data: bytes, lines: int) -> None:
        """Append to a key's file."""
        piece = self._pieces.get(key)
        if piece is None:
            piece = self._pieces[key] = _Piece()
        piece.lines += lines
        size = len(data)
        piece.data.append(data)
        piece.size += size
        self._buffered += size
        if piece.size >= PIECE:
            self._flush(key, piece)
        elif self._buffered >= MOST_BUFFERED:
            self.flush()

    def written(self) -> list[tuple[int, int, int]]:
        """Of each key the bytes and the lines."""
        return [(key, piece.total, piece.lines) for key, piece in self._pieces.items()]

    def flush(self) -> None:
        """Write what is buffered."""
        for key, piece in self._pieces.items():
            if piece.size:
                self._flush(key, piece)

    def close(self) -> None:
        self.flush()
        while self._open:
            os.close(self._open.popitem()[1])

    def _flush(self, key: int, piece: _Piece) -> None:
        data = memoryview(b"".join(piece.data))
        piece.data.clear()
        piece.total += piece.size
        self._buffered -= piece.size
        piece.size = 0
        fd = self._fd(key)
        while data:
            data = data[os.write(fd, data) :]

    def _fd(self, key: int) -> int:
        fd = self._open.get(key)
        if fd is not None:
            self._open.move_to_end(key)
            return fd
        if len(self._open) >= _OPEN:
            os.close(self._open.popitem(last=False)[1])
        fd = self._open[key] = os.open(self.path(key), os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o666)
        return fd
