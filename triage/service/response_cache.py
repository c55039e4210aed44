"""Cache of whole responses: the same request gets the same bytes until the store changes.

The store counts its changes, so a response is never older than the data. Only while BUSY_RESPONSES or more are being
made, or if it is popular, it may lack diagnoses of the last BUSY_SECONDS, but never what a person has decided; requests
with `Cache-Control: no-cache` get all. Relative times ("3 minutes ago") may be CACHE_SECONDS old. Requests for the same
response at the same time wait for one of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict, deque
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from triage.base.lazy_re import lazy_re
from triage.service.dependencies import ServiceState
from triage.service.sessions import read_cookie
from triage.store.service_data import Changes

CACHE_SECONDS = 15.0
BUSY_RESPONSES = 8
BUSY_SECONDS = 2.0
POPULAR_REQUESTS = 4
"""A response is popular from so many requests within BUSY_SECONDS on."""
MAX_COUNTED = 2000  # responses whose requests are counted
MAX_BYTES = 64 << 20
MAX_RESPONSE_BYTES = 1 << 20
# These depend on more than the store.
UNCACHED_PATHS = lazy_re(
    r"/static/|/metrics$|/api/v1/(?:tasks|uploads|health|ready|metrics|me|status|tokens|audit|sources)\b|/auth/"
    r"|/sign-in|/tasks?\b|/status\b|/upload\b|.*/(?:raw|context|evidence)\b"
)
# These look the same for everybody with the same scopes who sees all incidents; a page also shows who is signed in.
SHARED_PATHS = lazy_re(r"/api/v1/|.*\.json$")
PERSONAL_PATHS = lazy_re(r"/api/v1/views\b|/(?:views|causes|incidents)\.json$")  # with one's own views and visits
_RECOMPUTED_HEADERS = frozenset({b"content-length", b"etag", b"date", b"cache-control"})
_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A response without the headers that are recomputed."""

    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    etag: bytes
    changes: Changes
    stored_at: float


class Popularity:
    """Counts the latest requests for each response."""

    def __init__(self) -> None:
        self._times: OrderedDict[_Key, deque[float]] = OrderedDict()

    def count(self, key: _Key, now: float) -> bool:
        """Count a request; return whether the response is popular."""
        times = self._times.setdefault(key, deque(maxlen=POPULAR_REQUESTS))
        times.append(now)
        self._times.move_to_end(key)
        if len(self._times) > MAX_COUNTED:
            self._times.popitem(last=False)
        return len(times) == POPULAR_REQUESTS and now - times[0] <= BUSY_SECONDS


class ResponseCache:
    """Middleware that caches responses with status 200 to GET requests of signed-in users."""

    def __init__(self, app: ASGIApp, state: ServiceState) -> None:
        self._app = app
        self._responses: OrderedDict[_Key, CachedResponse] = OrderedDict()
        self._bytes = 0
        self._pending: dict[_Key, asyncio.Event] = {}
        self._version = state.version
        self._popularity = Popularity()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = _cache_key(scope)
        if key is None:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        _, changes = await self._version.get()
        is_popular = self._popularity.count(key, time.monotonic())
        while True:
            cached = self._find(key, changes, self._may_be_old(headers, is_popular))
            if cached is not None:
                await _send_response(cached, headers, send)
                return
            pending = self._pending.get(key)
            if pending is None:
                break
            await pending.wait()
            cached = self._find(key, changes, self._may_be_old(headers, is_popular))
            if cached is None:  # that response is older, or could not be cached
                await self._app(scope, receive, send)
                return
        finished = self._pending[key] = asyncio.Event()
        try:
            await self._call_app(key, changes, scope, receive, send)
        finally:
            del self._pending[key]
            finished.set()

    def _may_be_old(self, headers: Headers, is_popular: bool) -> bool:
        """Whether the response may lack the latest diagnoses."""
        is_shared = is_popular or len(self._pending) >= BUSY_RESPONSES
        return is_shared and "no-cache" not in headers.get("cache-control", "")

    def _find(self, key: _Key, changes: Changes, may_be_old: bool) -> CachedResponse | None:
        """Return the response for the store as it was when the request came, or later; else a bit older."""
        cached = self._responses.get(key)
        if cached is None:
            return None
        age = time.monotonic() - cached.stored_at
        is_late = cached.changes.generation < changes.generation
        if is_late and not (may_be_old and age <= BUSY_SECONDS and cached.changes.decision >= changes.decision):
            return None
        if age > CACHE_SECONDS:
            return None
        self._responses.move_to_end(key)
        return cached

    async def _call_app(self, key: _Key, changes: Changes, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application. A response that can be cached is held back until it is complete."""
        start: Message | None = None

        async def send_or_cache(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                is_cacheable = message["status"] == 200 and not names & {b"set-cookie", b"content-disposition"}
                start = message if is_cacheable else None
                if not is_cacheable:
                    await send(message)
            elif start is None:
                await send(message)
            elif message.get("more_body"):  # a stream
                await send(start)
                start = None
                await send(message)
            else:
                response = _make_response(start, message.get("body", b""), changes)
                self._store(key, response)
                await _send_response(response, Headers(scope=scope), send)

        await self._app(scope, receive, send_or_cache)

    def _store(self, key: _Key, response: CachedResponse) -> None:
        if len(response.body) > MAX_RESPONSE_BYTES:
            return
        old = self._responses.pop(key, None)
        self._bytes += len(response.body) - (len(old.body) if old is not None else 0)
        self._responses[key] = response
        while self._bytes > MAX_BYTES:
            self._bytes -= len(self._responses.popitem(last=False)[1].body)


def _cache_key(scope: Scope) -> _Key | None:
    """Return what the response depends on, or None if it must not be cached."""
    user = scope.get("triage.principal")
    if scope["type"] != "http" or scope["method"] != "GET" or user is None or UNCACHED_PATHS.match(scope["path"]):
        return None
    headers = Headers(scope=scope)
    wants_page = "text/html" in headers.get("accept", "")
    reader: object = user.scopes
    path, query = scope["path"], scope["query_string"]
    is_personal = user.sees is not None or PERSONAL_PATHS.match(path) or b"visit" in query
    if is_personal or not SHARED_PATHS.match(path):
        reader = user.scopes, user.sees, user.name, read_cookie(headers, "theme")
    return path, query, wants_page, reader


def _make_response(start: Message, body: bytes, changes: Changes) -> CachedResponse:
    etag = b'"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode() + b'"'
    headers = tuple((name, value) for name, value in start["headers"] if name not in _RECOMPUTED_HEADERS)
    return CachedResponse(headers, body, etag, changes, time.monotonic())


async def _send_response(response: CachedResponse, request_headers: Headers, send: Send) -> None:
    headers = [
        *response.headers,
        (b"etag", response.etag),
        (b"cache-control", b"private, no-cache"),
        (b"vary", b"Accept, Authorization, Cookie"),
    ]
    status, body = 200, response.body
    if response.etag.decode() in request_headers.get("if-none-match", ""):
        status, body = 304, b""
        headers = [(name, value) for name, value in headers if name != b"content-type"]
    else:
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
