"""Writes pieces of memory to files, many with one call of the system (writev), so that no object is made of a line."""

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

    Words = NDArray[np.uintp]

_MOST = 1024  # IOV_MAX of Linux and macOS


class Spans:
    """Pieces of memory, each an address and a length, in rows as the system wants them (`struct iovec`). The caller
    keeps the memory alive.
    """

    def __init__(self, addresses: Words, lengths: Words) -> None:
        import numpy as np

        self._rows = np.empty((len(addresses), 2), np.uintp)
        self._rows[:, 0] = addresses
        self._rows[:, 1] = lengths
        self._address = self._rows.ctypes.data
        self._row = self._rows.strides[0]

    def write(self, fd: int, begin: int, end: int, size: int) -> None:
        """Write the rows from `begin` to `end`, `size` bytes in all. Raises OSError as os.write does."""
        gather = writev()
        if gather is None:
            write_all(
                fd, b"".join(ctypes.string_at(address, length) for address, length in self._rows[begin:end].tolist())
            )
        elif end - begin > _MOST:
            for at in range(begin, end, _MOST):
                stop = min(end, at + _MOST)
                self.write(fd, at, stop, int(self._rows[at:stop, 1].sum()))
        else:
            done = gather(fd, self._address + begin * self._row, end - begin)
            if done != size:
                self._rest(fd, begin, end, done)

    def _rest(self, fd: int, begin: int, end: int, done: int) -> None:
        """Not all was written: the disk is full, which the next try will say, or a signal came."""
        if done < 0:
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise OSError(number, os.strerror(number))
            done = 0
        pieces = b"".join(ctypes.string_at(address, length) for address, length in self._rows[begin:end].tolist())
        write_all(fd, pieces[done:])


def write_all(fd: int, data: bytes) -> None:
    """Write `data`, however little the system takes at once."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


@functools.cache
def writev() -> Callable[[int, int, int], int] | None:
    """The system's call, where there is one: file, address of the rows, how many."""
    try:
        found = ctypes.CDLL(None, use_errno=True).writev
    except (AttributeError, OSError, TypeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    found.restype = ctypes.c_ssize_t
    return found


def address_of(data: bytes) -> int:
    """Where the bytes lie."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
