"""How much one client may ask: requests a minute, bytes of a body, and how slowly it may send."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from triage.service import failure
from triage.service.crosssite import SAFE
from triage.service.failure import ServiceError
from triage.settings.web import Web

SLOWEST = 1024  # bytes a second that an upload must bring, once it has had its first seconds
UPLOADS = re.compile(r"/api/v1/(?:uploads|ingest)(?:/|$)|/upload$")
MOST_CLIENTS = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Buckets:
    """Token buckets by client: each holds a minute's worth and fills again evenly."""

    def __init__(self, a_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = float(a_minute)
        self._clock = clock
        self._all: dict[str, _Bucket] = {}

    def take(self, key: str, count: float = 1.0) -> float:
        """Take one; 0, or the seconds until there is one again."""
        now = self._clock()
        bucket = self._all.get(key)
        if bucket is None:
            if len(self._all) >= MOST_CLIENTS:
                self._forget(now)
            bucket = self._all[key] = _Bucket(self._most, now)
        bucket.left = min(self._most, bucket.left + (now - bucket.at) * self._most / 60)
        bucket.at = now
        if bucket.left < count:
            return (count - bucket.left) * 60 / self._most
        bucket.left -= count
        return 0.0

    def _forget(self, now: float) -> None:
        """Full ones know nothing; then the oldest half goes, so that a flood of clients costs no more memory."""
        self._all = {key: bucket for key, bucket in self._all.items() if bucket.left + (now - bucket.at) * self._most / 60 < self._most}
        if len(self._all) >= MOST_CLIENTS:
            self._all = dict(sorted(self._all.items(), key=lambda item: item[1].at)[MOST_CLIENTS // 2 :])


class Limits:
    """Refuses with 429, 413 and 408."""

    def __init__(self, app: ASGIApp, web: Web) -> None:
        self._app = app
        self._web = web
        self._requests = Buckets(web.requests_a_minute)
        self._changes = Buckets(web.changes_a_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        who = scope.get("triage.principal")
        key = who.key if who is not None else f"address {scope.get('triage.address', '')}"
        changes = scope["method"] not in SAFE
        wait = self._requests.take(key) or (self._changes.take(key) if changes else 0.0)
        if wait:
            headers = {"Retry-After": str(math.ceil(wait))}
            await failure.answer(Request(scope), 429, "too many requests", headers=headers)(scope, receive, send)
            return
        if not changes:
            await self._app(scope, receive, send)
            return
        most = None if UPLOADS.match(scope["path"]) else self._web.body_bytes
        length = Headers(scope=scope).get("content-length", "")
        if most is not None and length.isdigit() and int(length) > most:
            said = f"a request may hold {most} bytes"
            await failure.answer(Request(scope), 413, said, headers={"Connection": "close"})(scope, receive, send)
            return
        await self._app(scope, _counted(receive, most, self._web.slow_seconds), send)


def _counted(receive: Receive, most: int | None, slow: float) -> Receive:
    """The same, that raises ServiceError when more comes than may, or too slowly."""
    began, got, more = time.monotonic(), 0, True

    async def received() -> Message:
        nonlocal got, more
        if not more:
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), slow)
        except TimeoutError:
            raise ServiceError(408, "nothing came for too long", code="too-slow", hint="send it again, faster") from None
        more = bool(message.get("more_body", False))
        got += len(message.get("body", b""))
        if most is not None and got > most:
            raise ServiceError(413, f"a request may hold {most} bytes", headers={"Connection": "close"})
        if more and time.monotonic() - began > slow + got / SLOWEST:
            raise ServiceError(408, "it comes too slowly", code="too-slow", hint="send it again, faster")
        return message

    return received
