"""Limits on requests: how many per minute, how large, and how slowly a body may come."""

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
from triage.service.csrf import SAFE_METHODS
from triage.service.errors import ServiceError, error_response
from triage.settings.sections import WebSettings

HEADER_BYTES = 16 << 10
HEADER_COUNT = 100
SLOWEST_BYTES_A_SECOND = 1024  # of a body, after its first `slow_seconds`, and of a response that is read
UPLOAD_PATHS = lazy_re(r"/api/v1/uploads(?:/|$)|/upload$")  # uploads.py limits their size
MAX_CLIENTS = 10_000
CLOSE = {"Connection": "close"}


@dataclass(slots=True)
class _Bucket:
    tokens: float
    updated_at: float


class TokenBuckets:
    """Token buckets by client. Each holds the tokens of one minute and refills evenly."""

    def __init__(self, tokens_a_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(tokens_a_minute)
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, client: str) -> float:
        """Take one token. Returns 0, or the seconds until there is one again."""
        now = self._clock()
        bucket = self._buckets.get(client)
        if bucket is None:
            if len(self._buckets) >= MAX_CLIENTS:
                self._forget_clients(now)
            bucket = self._buckets[client] = _Bucket(self._capacity, now)
        bucket.tokens = self._refilled(bucket, now)
        bucket.updated_at = now
        if bucket.tokens < 1:
            return (1 - bucket.tokens) * 60 / self._capacity
        bucket.tokens -= 1
        return 0.0

    def _refilled(self, bucket: _Bucket, now: float) -> float:
        return min(self._capacity, bucket.tokens + (now - bucket.updated_at) * self._capacity / 60)

    def _forget_clients(self, now: float) -> None:
        """Drop full buckets, then the older half if that is not enough: many clients must not cost more memory."""
        buckets = {
            client: bucket for client, bucket in self._buckets.items() if self._refilled(bucket, now) < self._capacity
        }
        if len(buckets) >= MAX_CLIENTS:
            buckets = dict(sorted(buckets.items(), key=lambda item: item[1].updated_at)[MAX_CLIENTS // 2 :])
        self._buckets = buckets


class RequestLimits:
    """Middleware that refuses too many (429), too large (413, 431), too slow (408) and ambiguous (400) requests."""

    def __init__(self, app: ASGIApp, web: WebSettings) -> None:
        self._app = app
        self._web = web
        self._requests = TokenBuckets(web.requests_a_minute)
        self._changes = TokenBuckets(web.changes_a_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        max_bytes = None if UPLOAD_PATHS.match(scope["path"]) else self._web.body_bytes
        error = self._rate_error(scope) or _header_error(scope) or _length_error(scope, max_bytes)
        if error is not None:
            await error_response(Request(scope), error)(scope, receive, send)
        elif scope["method"] in SAFE_METHODS:
            await self._app(scope, receive, send)
        else:
            body = _LimitedBody(receive, max_bytes, self._web.slow_seconds)
            await self._app(scope, body.receive, body.replace_response(scope, receive, send))

    def _rate_error(self, scope: Scope) -> ServiceError | None:
        user = scope.get("triage.principal")
        client = (user and user.client_key) or f"address {scope.get('triage.address', '')}"
        wait = self._requests.take(client)
        if not wait and scope["method"] not in SAFE_METHODS:
            wait = self._changes.take(client)
        return ServiceError(429, "too many requests", headers={"Retry-After": str(math.ceil(wait))}) if wait else None


def _header_error(scope: Scope) -> ServiceError | None:
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
        return ServiceError(400, "the request has both Content-Length and Transfer-Encoding", headers=CLOSE)
    size = len(scope["path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    if size > HEADER_BYTES or len(scope["headers"]) > HEADER_COUNT:
        return ServiceError(431, "the headers are too large", headers=CLOSE)
    return None


def _length_error(scope: Scope, max_bytes: int | None) -> ServiceError | None:
    length = Headers(scope=scope).get("content-length", "")
    is_too_large = max_bytes is not None and length.isdigit() and int(length) > max_bytes
    return _too_large(max_bytes) if is_too_large and scope["method"] not in SAFE_METHODS else None


class _LimitedBody:
    """A request body that is read with limits. `error` is set, and raised, once the body breaks one."""

    def __init__(self, receive: Receive, max_bytes: int | None, slow_seconds: float) -> None:
        self.error: ServiceError | None = None
        self._receive = receive
        self._max_bytes = max_bytes
        self._slow_seconds = slow_seconds
        self._started = time.monotonic()
        self._bytes = 0
        self._has_more = True

    async def receive(self) -> Message:
        """Return the next piece. Raises ServiceError."""
        if not self._has_more:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), self._slow_seconds)
        except TimeoutError:
            self.error = _too_slow("the request body stopped coming")
            raise self.error from None
        self._has_more = bool(message.get("more_body", False))
        self._bytes += len(message.get("body", b""))
        latest = self._started + self._slow_seconds + self._bytes / SLOWEST_BYTES_A_SECOND
        if self._max_bytes is not None and self._bytes > self._max_bytes:
            self.error = _too_large(self._max_bytes)
        elif self._has_more and time.monotonic() > latest:
            self.error = _too_slow("the request body comes too slowly")
        if self.error is not None:
            raise self.error
        return message

    def replace_response(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Return a `send` that answers with `error`: frameworks turn an error of `receive` into one of their own."""

        async def send_or_refuse(message: Message) -> None:
            if self.error is None:
                await send(message)
            elif message["type"] == "http.response.start":
                await error_response(Request(scope), self.error)(scope, receive, send)

        return send_or_refuse


def _too_large(max_bytes: int | None) -> ServiceError:
    return ServiceError(413, f"a request body may have at most {max_bytes} bytes", headers=CLOSE)


def _too_slow(message: str) -> ServiceError:
    return ServiceError(408, message, code="too-slow", hint="send it again, faster", headers=CLOSE)
