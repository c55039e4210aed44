"""Limits on connections: how many one address may have, and how long a client may send or read nothing.

uvicorn limits the connections of a process (`limit_concurrency`), the size of incomplete headers and the pause between
two requests (`timeout_keep_alive`). It has no limit per client and no time limit for headers, so that one client with
enough silent connections would keep out all others. A reverse proxy has both; these are for a service without one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from triage.service.authentication import TrustedProxies
from triage.service.limits import SLOWEST_BYTES_A_SECOND
from triage.service.log import write_event
from triage.settings.sections import WebSettings

LOG_SECONDS = 10.0  # at most one event about dropped connections in this time


class ConnectionTable:
    """The open connections of one process, by address, in the order in which they came or were last used."""

    def __init__(self, web: WebSettings) -> None:
        self._limit = web.connections
        self._client_limit = web.client_connections
        self._proxies = TrustedProxies(web)
        self._open: OrderedDict[LimitedProtocol, str] = OrderedDict()
        self._counts: dict[str, int] = {}
        self._dropped = 0
        self._logged_at = float("-inf")

    def add(self, connection: LimitedProtocol, address: str, now: float) -> bool:
        """Add a connection. Drops the longest silent one if there are too many; False if there is none to drop.

        The last connection below the limit stays free, since uvicorn answers 503 as soon as the limit is reached.
        """
        self._open[connection] = address
        self._counts[address] = self._counts.get(address, 0) + 1
        is_client_full = self._counts[address] > self._client_limit and not self._proxies.is_trusted(address)
        if is_client_full and not self._drop_silent(address, connection, now):
            return False
        if len(self._open) >= self._limit:
            self._drop_silent(None, connection, now)
        return True

    def remove(self, connection: LimitedProtocol) -> None:
        """Remove a connection that is closed."""
        address = self._open.pop(connection, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def touch(self, connection: LimitedProtocol) -> None:
        """Note that a request was answered: idle connections that were of use are dropped last."""
        if connection in self._open:
            self._open.move_to_end(connection)

    def _drop_silent(self, address: str | None, new: LimitedProtocol, now: float) -> bool:
        for connection, its_address in self._open.items():
            if connection is not new and address in (None, its_address) and connection.is_silent():
                self.remove(connection)
                connection.drop()
                self._log_drop(its_address, now)
                return True
        return False

    def _log_drop(self, address: str, now: float) -> None:
        self._dropped += 1
        if now - self._logged_at > LOG_SECONDS:
            write_event("connections dropped", why="too many", count=self._dropped, last_address=address)
            self._logged_at, self._dropped = now, 0


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn with these limits."""

    def __init__(
        self, table: ConnectionTable, seconds: float, config: Config, server_state: ServerState, **more: Any
    ) -> None:
        super().__init__(config, server_state, **more)
        self._table = table
        self._seconds = seconds
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection and start the time for its first headers."""
        super().connection_made(transport)
        address = self.client[0] if self.client else "local"
        if self._table.add(self, address, self.loop.time()):
            self._start_header_timer()
        else:  # all connections of this client are at work
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timers()
        self._table.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on. The first bytes of a later request start the time for its headers."""
        if self._header_timer is None and self.is_silent():
            self._start_header_timer()
        super().data_received(data)
        if not self.is_silent():
            self._stop_header_timer()

    def on_response_complete(self) -> None:
        """Limit the time for the rest of a body that nobody reads, and for a next request that has begun."""
        super().on_response_complete()
        self._table.touch(self)
        is_sending = self.conn.their_state is h11.SEND_BODY or self.conn.trailing_data[0]
        if self.is_silent() and is_sending and not self.transport.is_closing():
            self._start_header_timer()

    def pause_writing(self) -> None:
        """Start the time in which the client must read."""
        super().pause_writing()
        if self._write_timer is None:
            self._check_reading(self.transport.get_write_buffer_size() + self._least_bytes())

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _check_reading(self, unread_before: int) -> None:
        """Drop the client unless it read enough since the last look."""
        unread = self.transport.get_write_buffer_size()
        if unread > unread_before - self._least_bytes():
            self.drop()
        else:
            self._write_timer = self.loop.call_later(self._seconds, self._check_reading, unread)

    def _least_bytes(self) -> int:
        return int(self._seconds * SLOWEST_BYTES_A_SECOND)

    def is_silent(self) -> bool:
        """Whether no request is here that still needs a response."""
        return self.cycle is None or self.cycle.response_complete

    def drop(self) -> None:
        """Close the connection at once, without waiting for the client."""
        self._stop_timers()
        self.connections.discard(self)  # uvicorn would count it until the event loop has closed it
        self.transport.abort()

    def _start_header_timer(self) -> None:
        self._stop_header_timer()
        self._header_timer = self.loop.call_later(self._seconds, self.drop)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _stop_timers(self) -> None:
        self._stop_header_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def limited_protocol(web: WebSettings) -> Callable[..., LimitedProtocol]:
    """Return what uvicorn calls for each connection of this process."""
    table = ConnectionTable(web)

    def make_protocol(config: Config, server_state: ServerState, **more: Any) -> LimitedProtocol:
        return LimitedProtocol(table, web.slow_seconds, config, server_state, **more)

    return make_protocol
