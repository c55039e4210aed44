"""Forward byte streams: the base class of all files, members and decompressors.

`io.BufferedReader` is not used because it drops its buffer when the layer below raises, and the bytes just before the
damage matter most in a log. Nothing here raises: a stream ends early and gives the reason in `damage`.
"""

from __future__ import annotations

import errno
import io
import os
from typing import NamedTuple

PIECE = 256 * 1024
LEAST_HOLE = 64 << 20
"""Bytes of a hole in a file that is skipped. Shorter ones are read as the NULs that they are."""
_MAX_OFFSET = 1 << 62
"""Beyond any file, and still an offset the system takes (headers may claim more)."""


class Damage(NamedTuple):
    """Why a stream ended early: the code and the text of the warning.

    Where a limit was reached, `deliverable` is how many of the last bytes produced may still be delivered.
    """

    code: str
    message: str
    deliverable: int = 0


class ByteStream(io.BufferedIOBase):
    """Read-only stream over `_read_piece`, which returns the next bytes, or nothing at the end.

    Offsets count from the beginning of the stream. `seek` goes forward only, by reading.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buffer = b""
        self._position = 0
        self._base = 0
        self._is_over = False
        self.damage: Damage | None = None

    def _read_piece(self) -> bytes:
        raise NotImplementedError

    def _next_piece(self) -> bytes:
        """Return the next piece; the buffer must be used up."""
        piece = b"" if self._is_over else self._read_piece()
        self._is_over = not piece
        return piece

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._base + self._position

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes without consuming them; fewer only at the end."""
        while len(self._buffer) - self._position < size:
            piece = self._next_piece()
            if not piece:
                break
            self._base += self._position
            self._buffer = self._buffer[self._position :] + piece
            self._position = 0
        return self._buffer[self._position : self._position + size]

    def read1(self, size: int = -1, /) -> bytes:
        """Return available bytes, at most `size`; nothing only at the end."""
        if self._position >= len(self._buffer):
            self._base += len(self._buffer)
            self._buffer, self._position = self._next_piece(), 0
        start = self._position
        stop = len(self._buffer) if size < 0 else min(len(self._buffer), start + size)
        self._position = stop
        return self._buffer[start:stop]  # the whole piece is returned as it is, not copied

    def read(self, size: int | None = -1, /) -> bytes:
        """Return exactly `size` bytes, fewer only at the end; everything when `size` is negative or None."""
        left = -1 if size is None or size < 0 else size
        first = self.read1(left)
        if not first or len(first) == left:
            return first
        parts = [first]
        left -= len(first) if left > 0 else 0
        while left and (part := self.read1(left)):
            parts.append(part)
            left -= len(part) if left > 0 else 0
        return b"".join(parts)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Skip forward to `offset`, or to the end if that comes first."""
        if whence != os.SEEK_SET or offset < self.tell():
            raise io.UnsupportedOperation("only forward")
        while self.tell() < offset and self.read1(offset - self.tell()):
            pass
        return self.tell()

    def unread(self, data: bytes) -> None:
        """Put back bytes that were just read."""
        self._base = self.tell() - len(data)
        self._buffer, self._position = data + self._buffer[self._position :], 0


class MemoryStream(ByteStream):
    """Bytes in memory, with seeking to any offset."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._buffer = data

    def _read_piece(self) -> bytes:
        return b""

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to `offset`, counted from the start, from here or from the end."""
        offset += {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: len(self._buffer)}[whence]
        if offset < 0:
            raise OSError(22, "negative offset")
        self._position = min(offset, len(self._buffer))
        return self._position

    def seekable(self) -> bool:
        """Return True: any offset can be reached."""
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """Return available bytes, at most `size`; nothing only at the end."""
        start = self._position
        self._position = len(self._buffer) if size < 0 else min(len(self._buffer), start + size)
        return self._buffer[start : self._position]


class FileStream(ByteStream):
    """A regular file, with seeking to any offset. An I/O error ends it with `damage`.

    With `skips_holes` a hole of the file system is read as one NUL: a terabyte of nothing takes no time.
    """

    def __init__(self, path: str, *, skips_holes: bool = False) -> None:
        super().__init__()
        self._skips_holes = skips_holes
        self._fd = -1  # Python closes this object also when there is no file to open
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
        self._offset = 0

    def _read_piece(self) -> bytes:
        try:
            length = PIECE
            if self._skips_holes:
                if (after := _end_of_hole(self._fd, self._offset)) > self._offset:
                    self._offset = after
                    return b"\0"
                length = min(PIECE, _distance_to_hole(self._fd, self._offset))
            piece = os.pread(self._fd, length, self._offset)
        except OSError as error:
            self.damage = Damage("unreadable", f"reading failed after {self._offset:,} bytes: {error.strerror}")
            return b""
        self._offset += len(piece)
        return piece

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to `offset`, counted from the start, from here or from the end, without reading."""
        if whence == os.SEEK_CUR:
            offset += self.tell()
        elif whence == os.SEEK_END:
            offset += os.fstat(self._fd).st_size
        if offset < 0:
            raise OSError(22, "negative offset")
        if self._base <= offset <= self._base + len(self._buffer):
            self._position = offset - self._base
        else:
            self._base = self._offset = min(offset, _MAX_OFFSET)
            self._buffer, self._position = b"", 0
        self._is_over = False
        return self.tell()

    def seekable(self) -> bool:
        """Return True: any offset can be reached."""
        return True

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        super().close()


def _end_of_hole(fd: int, offset: int) -> int:
    """Return where the hole at `offset` ends; `offset` itself if there is data, or only a short hole."""
    try:
        after = os.lseek(fd, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:  # a file system without holes
            return offset
        after = max(offset, os.fstat(fd).st_size)  # the rest is one hole
    return after if after - offset >= LEAST_HOLE else offset


def _distance_to_hole(fd: int, offset: int) -> int:
    """Return the number of bytes before the next large hole, at least PIECE if it is not near."""
    try:
        hole = os.lseek(fd, offset, os.SEEK_HOLE)
    except OSError:
        return PIECE
    return hole - offset if hole > offset and _end_of_hole(fd, hole) > hole else PIECE


def has_large_hole(fd: int, status: os.stat_result) -> bool:
    """Whether a file has a hole of LEAST_HOLE bytes or more at its first hole; cheap for files that lie on disk."""
    if not hasattr(os, "SEEK_HOLE") or status.st_size - status.st_blocks * 512 < LEAST_HOLE - status.st_blksize:
        return False
    try:
        first = os.lseek(fd, 0, os.SEEK_HOLE)
    except OSError:
        return False
    return _end_of_hole(fd, first) > first
