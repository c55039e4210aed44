"""A temporary file without a name that holds cells of objects, so that nothing is read twice while there is space."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterable

from triage.remote.interface import CELL

CellKey = tuple[str, str, int]
"""The address and the version of an object, and the number of a cell in it."""
SCANNED_BYTES = 1 << 28
"""From so many bytes on, cells that were scanned and are not needed again make room: new pages of a temporary file may
cost much more than pages that are used again (docs/scaling.md has figures)."""


class CellCache:
    """Cells in slots of one file; the cell that was stored first makes room when all slots are used.

    Never uses more than `limit` bytes or half of the free disk. A disk that fills up only makes the cache smaller.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._slots: dict[CellKey, tuple[int, int]] = {}  # the slot and the bytes in it
        self._free: list[int] = []
        self._end = 0
        self._fd: int | None = None
        self._owner = os.getpid()

    def read(self, key: CellKey) -> bytes | None:
        """Return a cell; None if it is not there."""
        with self._lock:  # a slot must not get another cell while it is read
            slot = self._slots.get(key)
            if slot is None or self._fd is None:
                return None
            return os.pread(self._fd, slot[1], slot[0] * CELL)

    def __contains__(self, key: CellKey) -> bool:
        return key in self._slots

    def store(self, key: CellKey, data: bytes | memoryview) -> None:
        """Store a cell, if there is space."""
        if self._owner != os.getpid():  # the file is shared with the parent of a fork
            return
        with self._lock:
            slot = None if key in self._slots else self._take_slot()
            if slot is None or self._fd is None:
                return
            try:
                written = os.pwrite(self._fd, data, slot * CELL)
            except OSError:
                written = 0
            if written == len(data):
                self._slots[key] = slot, written
            else:
                self._limit = len(self._slots) * CELL  # the disk is full
                self._free.append(slot)

    def forget(self, keys: Iterable[CellKey]) -> None:
        """Make room for other cells."""
        if self._owner != os.getpid():
            return
        with self._lock:
            self._free.extend(slot[0] for key in keys if (slot := self._slots.pop(key, None)) is not None)

    def is_filling(self) -> bool:
        """Whether cells that are not needed should make room: SCANNED_BYTES or half of the limit are used."""
        return len(self._slots) * CELL > min(SCANNED_BYTES, self._limit // 2)

    def close(self) -> None:
        """Remove the file."""
        with self._lock:
            self._slots.clear()
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _take_slot(self) -> int | None:
        if self._fd is None:
            self._open()
        if self._free:
            return self._free.pop()
        if (self._end + 1) * CELL <= self._limit:
            self._end += 1
            return self._end - 1
        first = next(iter(self._slots), None)
        return self._slots.pop(first)[0] if first is not None else None

    def _open(self) -> None:
        try:
            directory = tempfile.gettempdir()
            self._limit = min(self._limit, shutil.disk_usage(directory).free // 2)
            self._fd, path = tempfile.mkstemp(prefix="triage-", dir=directory)
            os.unlink(path)
        except OSError:
            self._limit = 0
