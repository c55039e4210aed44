"""What this process reads from addresses: objects by their address, cells of them, and what that cost."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, replace
from typing import Any, TypeVar

from triage.base.addresses import READERS
from triage.model.diagnosis import RemoteCost
from triage.remote.cell_cache import CellCache, CellKey
from triage.remote.filesystems import FileSystems
from triage.remote.interface import CELL, AddressError, RemoteObject, RemoteRules
from triage.remote.listing import list_children, list_objects
from triage.remote.newline_counts import NewlineCounts
from triage.remote.transfer import IncompleteError, Transfer

T = TypeVar("T")
R = TypeVar("R")
MAX_WHOLE_BYTES = 1 << 28
"""The largest object that is read where the server sends no part of it."""


class RemoteSession:
    """Lists and reads objects from any thread. A cell is requested once, also if two threads want it."""

    def __init__(self, rules: RemoteRules = RemoteRules(), transfer: Transfer | None = None) -> None:
        self.transfer = transfer or Transfer()
        self.cache = CellCache(rules.cache_bytes)
        self.newlines = NewlineCounts()
        self._systems = FileSystems(rules)
        self._objects: dict[str, RemoteObject] = {}
        self._lock = threading.Lock()
        self._in_flight: dict[CellKey, threading.Event] = {}

    def list_objects(self, root: str) -> Iterator[RemoteObject]:
        """Yield the objects below an address, and remember them. Raises AddressError."""
        for listed in list_objects(root, self._systems.open(root), self.transfer):
            item = listed if listed.size >= 0 else self._measure(listed)
            self._objects[item.address] = item
            yield item

    def list_children(self, root: str) -> list[str]:
        """Return the addresses directly below `root`; those of directories end in a slash. Raises AddressError."""
        return list_children(root, self._systems.open(root), self.transfer)

    def object_at(self, address: str) -> RemoteObject:
        """Return an object that was listed. Raises OSError if it was not."""
        try:
            return self._objects[address]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "it is not in the listing") from None

    def describe_object(self, address: str) -> list[Any]:
        """Return a listed object as JSON can carry it to another machine, which reads it with its own credentials."""
        return list(astuple(self._objects[address]))

    def accept_object(self, described: list[Any]) -> str:
        """Remember an object that another machine has listed; return its address."""
        item = RemoteObject(*described)
        self._objects[item.address] = item
        return item.address

    def find_changed(self, addresses: Iterable[str]) -> dict[str, str]:
        """Return what happened to those objects that are not as they were listed; each root is listed once more."""
        before = [self._objects[address] for address in addresses if address in self._objects]
        changed: dict[str, str] = {}
        for root in sorted({item.root for item in before}):
            now: dict[str, str] = {}
            try:
                listing = list_objects(root, self._systems.open(root), self.transfer)
                now.update((item.address, item.version) for item in listing)
            except AddressError as error:
                if getattr(error.__cause__, "errno", None) != errno.ENOENT:
                    changed[root] = error.message
                    continue
            for item in before:
                if item.root == root and now.get(item.address) != item.version:
                    changed[item.address] = "it was replaced" if item.address in now else "it went away"
        return changed

    def read_run(self, item: RemoteObject, cell: int, count: int = 1) -> bytes:
        """Return the cells of an object from number `cell` on, up to `count` of them, at least one.

        Ends early before a cell that is cached or that another thread is reading. Raises OSError.
        """
        while True:
            cached = self.cache.read((item.address, item.version, cell))
            if cached is not None:
                return cached
            first, most = (cell, max(1, count)) if item.has_ranges else (0, -(-item.size // CELL))
            claimed = self._claim(item, first, most)
            if isinstance(claimed, list):
                data = self._fetch_cells(item, first, claimed)
                return data[(cell - first) * CELL :]
            claimed.wait()

    def warm(self, reads: Iterable[tuple[str, int]]) -> None:
        """Read these (address, cell) into the cache, many at a time; errors show when they are needed."""

        def read(task: tuple[str, int]) -> None:
            with suppress(OSError):
                self.read_run(self.object_at(task[0]), task[1])

        for _ in self.map(read, reads):
            pass

    def map(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results of `work` in order, of many tasks at a time; takes tasks only as fast as they are done."""
        with ThreadPoolExecutor(2 * READERS) as pool:
            pending: list[Any] = []
            for task in tasks:
                pending.append(pool.submit(work, task))
                if len(pending) >= 8 * READERS:
                    yield pending.pop(0).result()
            for future in pending:
                yield future.result()

    def _measure(self, item: RemoteObject) -> RemoteObject:
        """Return an object whose size the server does not state with its size; it is read whole."""
        data = self._fetch_whole(item)
        measured = replace(item, size=len(data))
        self._store(measured, 0, data)
        return measured

    def _claim(self, item: RemoteObject, cell: int, count: int) -> list[CellKey] | threading.Event:
        """Return the cells that this thread shall read, or what to wait for because another thread reads the first."""
        keys: list[CellKey] = []
        end = min(cell + count, -(-item.size // CELL))
        event = threading.Event()
        with self._lock:
            for number in range(cell, end):
                key = item.address, item.version, number
                if key in self._in_flight:
                    if not keys:
                        return self._in_flight[key]
                    break
                if keys and item.has_ranges and key in self.cache:
                    break
                keys.append(key)
            self._in_flight.update(dict.fromkeys(keys, event))
        return keys

    def _fetch_cells(self, item: RemoteObject, cell: int, keys: list[CellKey]) -> bytes:
        """Read the claimed cells into the cache, and wake those that wait for them."""
        try:
            start, stop = cell * CELL, min(item.size, (cell + len(keys)) * CELL)
            data = self._fetch(item, start, stop) if item.has_ranges else self._fetch_whole(item)
            self._store(item, cell, data)
            return data
        finally:
            with self._lock:
                events = {event for key in keys if (event := self._in_flight.pop(key, None)) is not None}
            for event in events:
                event.set()

    def _store(self, item: RemoteObject, cell: int, data: bytes) -> None:
        view = memoryview(data)
        if item.size > CELL:
            self.newlines.add(item, cell, view)
        for number in range(-(-len(data) // CELL)):
            self.cache.store((item.address, item.version, cell + number), view[number * CELL : (number + 1) * CELL])

    def _fetch(self, item: RemoteObject, start: int, stop: int) -> bytes:
        if start >= stop:
            return b""

        def request() -> bytes:
            fs = self._systems.open(item.root).fs
            data: bytes = fs.cat_file(item.place, start=start, end=stop)
            self.transfer.count_bytes(len(data))
            if len(data) > stop - start:  # a server that knows no ranges sends everything
                data = data[start:stop]
            if len(data) < stop - start:
                raise IncompleteError
            return data

        return self.transfer.call(request)

    def _fetch_whole(self, item: RemoteObject) -> bytes:
        if item.size > MAX_WHOLE_BYTES:
            raise OSError(errno.EFBIG, "the server sends no parts of it, and it is too large to be read as a whole")

        def request() -> bytes:
            data: bytes = self._systems.open(item.root).fs.cat_file(item.place)
            self.transfer.count_bytes(len(data))
            if 0 <= item.size != len(data):
                raise IncompleteError
            return data

        return self.transfer.call(request)

    def stop_threads(self) -> None:
        """End all threads; the next request starts them again."""
        self._systems.stop()

    def cost(self) -> RemoteCost:
        """Return what everything so far cost."""
        return self.transfer.cost()


class _Current:
    session: RemoteSession | None = None
    rules = RemoteRules()


_CURRENT_LOCK = threading.Lock()


def current_session() -> RemoteSession:
    """Return the session of this process, opened at the first address."""
    with _CURRENT_LOCK:
        if _Current.session is None:
            _Current.session = RemoteSession(_Current.rules)
        return _Current.session


def set_rules(rules: RemoteRules) -> None:
    """Set how this process reads addresses from now on."""
    with _CURRENT_LOCK:
        if _Current.session is not None:
            _Current.session.stop_threads()
            _Current.session.cache.close()
        _Current.rules, _Current.session = rules, None
