"""Forward byte streams: one small base class that every file, member and decompressor of this room is built on.

`io.BufferedReader` is not used because it drops what it holds when the layer below raises, and the bytes just before
the
damage are the ones that matter in a log. Here nothing raises: a stream ends early and says why in `damage`.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Buffer

PIECE = 256 * 1024
_FAR = 1 << 62
"""Beyond any file, and still an offset the system takes (headers may claim more)."""


class Damage(NamedTuple):
    """What is wrong with a stream: the code and the sentence of the warning to come.

    Where a cap was reached, `keep` says how many of the last bytes made may still be delivered.
    """

    code: str
    message: str
    keep: int = 0


class ByteStream(io.BufferedIOBase):
    """Read-only stream over `_pull`, which gives the next piece of bytes, or nothing at the end.

    Offsets count from where the stream began. `seek` goes forward only, by reading.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buffer = b""
        self._at = 0
        self._base = 0
        self._over = False
        self.damage: Damage | None = None

    def _pull(self) -> bytes:
        raise NotImplementedError

    def _next(self) -> bytes:
        """The next piece, past the buffer, which must be used up."""
        if self._over:
            return b""
        piece = self._pull()
        if not piece:
            self._over = True
        return piece

    def readable(self) -> bool:
        """True: the stream can be read."""
        return True

    def tell(self) -> int:
        """Bytes read so far."""
        return self._base + self._at

    def peek(self, size: int) -> bytes:
        """The next `size` bytes without taking them; fewer only at the end."""
        while len(self._buffer) - self._at < size:
            piece = self._next()
            if not piece:
                break
            self._base += self._at
            self._buffer = self._buffer[self._at :] + piece
            self._at = 0
        return self._buffer[self._at : self._at + size]

    def read1(self, size: int = -1, /) -> bytes:
        """What is at hand, at most `size` bytes; nothing only at the end."""
        if self._at >= len(self._buffer):
            self._base += len(self._buffer)
            self._buffer, self._at = self._next(), 0
        start = self._at
        stop = len(self._buffer) if size < 0 else min(len(self._buffer), start + size)
        self._at = stop
        return self._buffer[start:stop]  # the whole piece is returned as it is, not copied

    def read(self, size: int | None = -1, /) -> bytes:
        """Exactly `size` bytes, fewer only at the end; everything when `size` is negative or None."""
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

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill `buffer`, short only at the end."""
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view) and (part := self.read1(len(view) - done)):
            view[done : done + len(part)] = part
            done += len(part)
        return done

    def readinto1(self, buffer: Buffer, /) -> int:
        """Put what is at hand into `buffer`."""
        view = memoryview(buffer).cast("B")
        part = self.read1(len(view))
        view[: len(part)] = part
        return len(part)

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
        self._buffer, self._at = data + self._buffer[self._at :], 0


class Memory(ByteStream):
    """Bytes in memory. Seeks anywhere."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._buffer = data

    def _pull(self) -> bytes:
        return b""

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to `offset`, or to one counted from here or from the end."""
        offset += {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._buffer)}[whence]
        if offset < 0:
            raise OSError(22, "negative offset")
        self._at = min(offset, len(self._buffer))
        return self._at

    def seekable(self) -> bool:
        """True: any offset can be reached."""
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """What is at hand, at most `size` bytes; nothing only at the end."""
        start = self._at
        self._at = len(self._buffer) if size < 0 else min(len(self._buffer), start + size)
        return self._buffer[start : self._at]


class FileStream(ByteStream):
    """A regular file. An I/O error ends it, with `damage`. Seeks anywhere."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
        self._offset = 0

    def _pull(self) -> bytes:
        try:
            piece = os.pread(self._fd, PIECE, self._offset)
        except OSError as error:
            self.damage = Damage("unreadable", f"reading failed after {self._offset:,} bytes: {error.strerror}")
            return b""
        self._offset += len(piece)
        return piece

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to `offset` (or to one counted from the end), without reading."""
        if whence == os.SEEK_CUR:
            offset += self.tell()
        elif whence == os.SEEK_END:
            offset += os.fstat(self._fd).st_size
        if offset < 0:
            raise OSError(22, "negative offset")
        if self._base <= offset <= self._base + len(self._buffer):
            self._at = offset - self._base
        else:
            self._base = self._offset = min(offset, _FAR)
            self._buffer, self._at = b"", 0
        self._over = False
        return self.tell()

    def seekable(self) -> bool:
        """True: any offset can be reached."""
        return True

    def close(self) -> None:
        """Give the descriptor back."""
        if not self.closed:
            os.close(self._fd)
        super().close()
