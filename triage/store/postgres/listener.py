"""Wait for NOTIFY: the trigger of the table of tasks sends one when there is new work."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg


class Listener:
    """A connection of its own that listens; for one thread, the one that has nothing else to do."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        self._connect = connect
        self._connection: psycopg.Connection[Any] | None = None
        self._channels: set[str] = set()
        self._pid = 0

    def wait(self, channel: str, seconds: float) -> None:
        """Return after a notification, or after so many seconds. The first call returns at once.

        Whoever calls looks for work between two calls, so that what came before the first one is not missed. Raises
        psycopg.Error.
        """
        if self._pid != os.getpid() or self._connection is None or self._connection.closed:
            self._connection, self._channels, self._pid = self._connect(), set(), os.getpid()
        if channel not in self._channels:
            self._connection.execute(f"LISTEN {channel}")
            self._channels.add(channel)
            return
        try:
            for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                pass
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next wait opens another one."""
        if self._connection is not None and self._pid == os.getpid():
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None
