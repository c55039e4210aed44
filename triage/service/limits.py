"""How much one client may ask: requests a minute, bytes of a body, and how slowly it may send."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from triage.base.lazy_re import lazy_re
from triage.service import failure
from triage.service.crosssite import SAFE
from triage.service.failure import ServiceError
from triage.settings.web import Web

SLOWEST = 1024  # bytes a second that an upload must bring, once it has had its first seconds
UPLOADS = lazy_re(r"/api/v1/uploads(?:/|$)|/upload$")  # they are counted where they are taken
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
        self._all = {
            key: bucket
            for key, bucket in self._all.items()
            if bucket.left + (now - bucket.at) * self._most / 60 < self._most
        }
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
        body = _Body(receive, most, self._web.slow_seconds)

        async def sent(message: Message) -> None:
            # What was refused is said here: frameworks make another error of one that comes from `receive`.
            if body.refused is None:
                await send(message)
            elif message["type"] == "http.response.start":
                refused = body.refused
                said = failure.answer(
                    Request(scope),
                    refused.status,
                    refused.message,
                    hint=refused.hint,
                    code=refused.code,
                    headers=refused.headers,
                )
                await said(scope, receive, send)

        await self._app(scope, body.receive, sent)


class _Body:
    """The body of a request as it comes. Raises ServiceError, and keeps it in `refused`, when more comes than may, or
    too slowly.
    """

    def __init__(self, receive: Receive, most: int | None, slow: float) -> None:
        self.refused: ServiceError | None = None
        self._receive = receive
        self._most = most
        self._slow = slow
        self._began = time.monotonic()
        self._got = 0
        self._more = True

    async def receive(self) -> Message:
        """The next piece."""
        if not self._more:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), self._slow)
        except TimeoutError:
            self.refused = _slow("nothing came for too long")
            raise self.refused from None
        self._more = bool(message.get("more_body", False))
        self._got += len(message.get("body", b""))
        if self._most is not None and self._got > self._most:
            self.refused = ServiceError(413, f"a request may hold {self._most} bytes", headers={"Connection": "close"})
        elif self._more and time.monotonic() - self._began > self._slow + self._got / SLOWEST:
            self.refused = _slow("it comes too slowly")
        if self.refused is not None:
            raise self.refused
        return message


def _slow(said: str) -> ServiceError:
    return ServiceError(408, said, code="too-slow", hint="send it again, faster", headers={"Connection": "close"})
