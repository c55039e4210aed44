"""How often the store has changed: asked for every request, so that no answer from a cache is older than the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from triage.store.interface import Connections
from triage.store.service_data import Changes, ServiceData

T = TypeVar("T")


class StoreVersion:
    """The version of a store's data and the counts of its changes, for the requests of one event loop."""

    def __init__(self, connections: Connections) -> None:
        self._service_data = ServiceData(connections)
        self._lock = threading.Lock()
        self._version: tuple[object, ...] = ()
        self._changes = Changes()
        self._shared = SharedRead(self._read) if connections.dialect.is_remote else None

    async def get(self) -> tuple[tuple[object, ...], Changes]:
        """Return the version of all data, and the counts of the changes that responses show.

        A file is asked by the event loop's thread, whose connection never writes and so sees all writes: that takes
        microseconds. A server is asked by another thread, for all requests that wait.
        """
        return self._read() if self._shared is None else await self._shared.get()

    def _read(self) -> tuple[tuple[object, ...], Changes]:
        with self._lock:
            version = self._service_data.get_data_version()
            if version != self._version:
                self._version, self._changes = version, self._service_data.count_changes()
            return version, self._changes


class SharedRead(Generic[T]):
    """Answers many callers with one call at a time; each gets the result of a call that began after it asked."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-version")
        self._running = asyncio.Lock()
        self._next: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """Return what `read` returns, or raise what it raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._call())
        return await asyncio.shield(self._next)

    async def _call(self) -> T:
        async with self._running:
            self._next = None  # whoever asks from now on may need a later answer
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._read)
