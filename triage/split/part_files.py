"""The files of a running split: one part for each writer and segment, with a limited number of open files.

Many pieces of memory are written with one system call (writev), without making a bytes object of every line.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Addresses = NDArray[np.uintp]

_IOV_MAX = 1024  # of Linux and macOS
_MOST_OPEN, _FEWEST_OPEN, _OPEN_ELSEWHERE = 2048, 32, 96


class MemorySpans:
    """Pieces of memory as rows of address and length (`struct iovec`). The caller keeps the memory alive."""

    def __init__(self, addresses: Addresses, lengths: Addresses) -> None:
        import numpy as np

        self._rows = np.empty((len(addresses), 2), np.uintp)
        self._rows[:, 0] = addresses
        self._rows[:, 1] = lengths
        self._address = self._rows.ctypes.data
        self._row_size = self._rows.strides[0]

    def write(self, fd: int, begin: int, end: int, size: int) -> None:
        """Write the rows from `begin` to `end`, `size` bytes in all. Raises OSError as os.write does."""
        gather = load_writev()
        if gather is None:
            write_all(fd, self._bytes(begin, end))
        elif end - begin > _IOV_MAX:
            for at in range(begin, end, _IOV_MAX):
                stop = min(end, at + _IOV_MAX)
                self.write(fd, at, stop, int(self._rows[at:stop, 1].sum()))
        else:
            done = gather(fd, self._address + begin * self._row_size, end - begin)
            if done != size:
                self._write_rest(fd, begin, end, done)

    def _write_rest(self, fd: int, begin: int, end: int, done: int) -> None:
        """Write what writev left. A full disk makes the next write raise; a signal only interrupted."""
        if done < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number))
            done = 0
        write_all(fd, self._bytes(begin, end)[done:])

    def _bytes(self, begin: int, end: int) -> bytes:
        return b"".join(ctypes.string_at(address, length) for address, length in self._rows[begin:end].tolist())


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, in as many system calls as it takes."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


@functools.cache
def load_writev() -> Callable[[int, int, int], int] | None:
    """Return the C function writev(fd, address of the rows, number of rows); None where there is none."""
    try:
        writev = ctypes.CDLL(None, use_errno=True).writev
    except (AttributeError, OSError, TypeError):
        return None
    writev.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    writev.restype = ctypes.c_ssize_t
    return writev


def address_of(data: bytes) -> int:
    """Return the memory address of the bytes."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


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
        fd = self._open[key] = os.open(
            f"{self._start}{key}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o666
        )
        return fd


def _most_open() -> int:
    """Return how many files may be open: the limit of the process, less what the rest of it needs."""
    try:
        import resource
    except ImportError:
        return _FEWEST_OPEN
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_OPEN if limit < 0 else max(_FEWEST_OPEN, min(_MOST_OPEN, limit - _OPEN_ELSEWHERE))
