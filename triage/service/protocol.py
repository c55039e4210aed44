"""HTTP as uvicorn speaks it with httptools, and not for ever: headers must come whole within a time and a size."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from triage.service.failure import CODES, body

HEADER_BYTES = 16 << 10
HEADERS = 100


async def _too_large(scope: Scope, receive: Receive, send: Send) -> None:
    said = body(431, CODES[431][0], "the headers are too large", CODES[431][1])
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(said)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 431, "headers": headers})
    await send({"type": "http.response.body", "body": said})


def guarded(seconds: float) -> type[HttpToolsProtocol]:
    """The protocol with this limit on the time in which headers come."""

    class Guarded(HttpToolsProtocol):
        """One connection."""

        _timer: TimerHandle | None = None
        _bytes = 0
        _waiting = True
        _plain: Any = None

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._plain = self.app
            self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._waiting:
                self._arm()
                self._bytes += len(data)
            super().data_received(data)
            if self._waiting and self._bytes > HEADER_BYTES and not self.transport.is_closing():
                self.transport.write(
                    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
                )
                self.transport.close()

        def on_headers_complete(self) -> None:
            self._waiting = False
            self._disarm()
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            large = size > HEADER_BYTES or len(self.headers) > HEADERS
            self.app = _too_large if large else self._plain
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._waiting, self._bytes = True, 0

        def _arm(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(seconds, self._late)

        def _disarm(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._timer = None
            if self.transport is not None and not self.transport.is_closing():
                self.transport.abort()

    return Guarded
