"""Read one object: at any offset, as the scan and later stages read files, or forward as a stream with read-ahead."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor

from triage.remote.interface import CELL, RUN, RemoteObject
from triage.remote.session import RemoteSession

_RUN_CELLS = RUN // CELL
_STREAM_CELLS = 4
_AHEAD = 4
"""Requests of a stream that are under way while the bytes before them are used."""


class OpenedObject:
    """Reads at any offset of an object. For one thread.

    `is_scanned`: it is read from beginning to end, so long runs are requested; else only the cells that are read.
    """

    def __init__(self, session: RemoteSession, item: RemoteObject, *, is_scanned: bool) -> None:
        self._session = session
        self._item = item
        self._most_cells = _RUN_CELLS if is_scanned else 1
        self._start = 0
        self._run = b""

    def read_at(self, length: int, offset: int) -> bytes:
        """Return the `length` bytes at `offset`, fewer only at the end. Raises OSError."""
        part = self._read_part(length, offset)
        if len(part) == length or offset + len(part) >= self._item.size:
            return part
        parts, read = [part], len(part)
        while read < length and (part := self._read_part(length - read, offset + read)):
            parts.append(part)
            read += len(part)
        return b"".join(parts)

    def _read_part(self, length: int, offset: int) -> bytes:
        start = offset - self._start
        if not 0 <= start < len(self._run):
            if offset >= self._item.size:
                return b""
            cell = offset // CELL
            self._run = b""  # two runs need not be in memory
            self._run = self._session.read_run(self._item, cell, self._most_cells)
            self._start = cell * CELL
            start = offset - self._start
        return self._run[start : start + length]

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill the start of `buffer` with bytes at `offset`; return how many. Raises OSError."""
        data = self.read_at(len(buffer), offset)
        buffer[: len(data)] = data
        return len(data)

    def known_newlines(self, start: int, stop: int) -> int | None:
        """Return the newlines between two offsets of a whole cell that was received before; None for other bytes."""
        if start % CELL or stop - start != CELL:
            return None
        return self._session.newlines.find(self._item, start // CELL)

    def size(self) -> int:
        """Return the bytes that the object had when it was listed."""
        return self._item.size

    def forget(self, start: int, stop: int, needed: Callable[[], Collection[int]]) -> None:
        """Make room: of the bytes from `start` to `stop`, only the cells in `needed` will be read again soon."""
        if self._session.cache.is_filling():
            numbers = set(range(-(-start // CELL), stop // CELL)).difference(needed())
            self._session.cache.forget((self._item.address, self._item.version, number) for number in sorted(numbers))

    def close(self) -> None:
        """Let go of the last bytes."""
        self._run = b""


class ObjectRuns:
    """The runs of an object from an offset on, in order, a few of them requested ahead."""

    def __init__(self, session: RemoteSession, item: RemoteObject, offset: int) -> None:
        self._session = session
        self._item = item
        self._offset = offset
        self._pool = ThreadPoolExecutor(_AHEAD)
        self._pending: dict[int, Future[bytes]] = {}

    def next_run(self) -> bytes:
        """Return the next bytes; none at the end. Raises OSError."""
        if self._offset >= self._item.size:
            return b""
        cell = self._offset // CELL
        end = -(-self._item.size // CELL)
        current = cell - cell % _STREAM_CELLS
        for first in range(current, min(end, current + _AHEAD * _STREAM_CELLS), _STREAM_CELLS):
            begin = max(first, cell)
            if first not in self._pending:
                count = first + _STREAM_CELLS - begin
                self._pending[first] = self._pool.submit(self._session.read_run, self._item, begin, count)
        data = self._pending.pop(current).result()[self._offset - cell * CELL :]
        self._offset += len(data)
        return data

    def close(self) -> None:
        """Give up what was requested ahead."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pending.clear()
