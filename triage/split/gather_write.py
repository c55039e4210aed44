"""Write many pieces of memory with one system call (writev), without making a bytes object of every line."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Addresses = NDArray[np.uintp]

_IOV_MAX = 1024  # of Linux and macOS


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
