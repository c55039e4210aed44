"""A pool of connections: opened when they are needed, by the thread that needs one, and used again.

psycopg_pool opens connections in threads of its own. Those would forbid the forks of `triage serve`, and whoever waits
would learn after half a minute that no connection came, but not why.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from triage.base.errors import StoreError

WAIT_SECONDS = 30.0
IDLE_SECONDS = 300.0
Connect = Callable[[], "psycopg.Connection[Any]"]


class Pool:
    """At most `size` connections for all threads of one process."""

    def __init__(self, connect: Connect, size: int) -> None:
        self._connect = connect
        self._size = size
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._idle: list[tuple[float, psycopg.Connection[Any]]] = []
        self._free = threading.BoundedSemaphore(self._size)
        self._lock = threading.Lock()

    def take(self) -> psycopg.Connection[Any]:
        """Return a connection for this thread alone. Raises StoreError when all stay in use, and psycopg.Error."""
        if self._pid != os.getpid():
            self._reset()  # after a fork: the connections belong to the parent
        if not self._free.acquire(timeout=WAIT_SECONDS):
            hint = "try again; if it stays so, read the server's log for statements that take long"
            raise StoreError(f"all {self._size} connections of this process are in use", hint=hint)
        try:
            return self._take_idle() or self._connect()
        except BaseException:
            self._free.release()
            raise

    def _take_idle(self) -> psycopg.Connection[Any] | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                since, connection = self._idle.pop()
            if not connection.closed and time.monotonic() - since < IDLE_SECONDS:
                return connection
            _close(connection)

    def give_back(self, connection: psycopg.Connection[Any]) -> None:
        """Keep a connection for the next one who needs it; one that is broken or in a transaction is closed."""
        is_idle = not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if self._pid != os.getpid():
            return
        if is_idle:
            with self._lock:
                self._idle.append((time.monotonic(), connection))
        else:
            _close(connection)
        self._free.release()

    def drop_idle(self) -> None:
        """Close the connections that nobody uses: the server went away, and all of them are broken."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle if self._pid == os.getpid() else ():
            _close(connection)


def _close(connection: psycopg.Connection[Any]) -> None:
    with suppress(psycopg.Error):
        connection.close()
