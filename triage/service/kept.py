"""Answers that are kept: the same question gets the same bytes while nothing has changed in the store.

The store counts its changes, so what is kept is never older than the data. Words that depend on the time of day may be
old by SECONDS.
Several that ask the same at once wait for one answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from triage.base.lazy_re import lazy_re
from triage.service.identify import cookie
from triage.service.state import Service

SECONDS = 15.0
MOST_BYTES = 64 << 20
LARGEST = 1 << 20
# What does not depend on the store alone.
NEVER = lazy_re(
    r"/static/|/metrics$|/api/v1/(?:tasks|uploads|health|ready|metrics|me|status|tokens|audit|sources)\b|/auth/|/sign-in|/tasks?\b|/status\b|/upload\b|"
    r".*/(?:raw|context|evidence)\b"
)
# What every signed-in person sees alike; pages also show who is signed in.
SHARED = lazy_re(r"/api/v1/|.*\.json$")
_DROP = frozenset({b"content-length", b"etag", b"date", b"cache-control"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What was sent, without the headers that are made anew."""

    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    etag: bytes
    generation: int
    at: float


class Kept:
    """Keeps whole answers of 200 to GET, for whoever may read."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._answers: OrderedDict[tuple[object, ...], Answer] = OrderedDict()
        self._bytes = 0
        self._pending: dict[tuple[object, ...], asyncio.Event] = {}
        self._generation = Generation(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        who = scope.get("triage.principal")
        if scope["type"] != "http" or scope["method"] != "GET" or who is None or NEVER.match(scope["path"]):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        page = "text/html" in headers.get("accept", "")
        seen = who.scopes if SHARED.match(scope["path"]) else (who.scopes, who.name, cookie(headers, "theme"))
        key = (scope["path"], scope["query_string"], page, seen)
        while True:
            found = self._find(key)
            if found is not None:
                await _send(found, headers, send)
                return
            waiting = self._pending.get(key)
            if waiting is None:
                break
            await waiting.wait()
            if self._find(key) is None:
                await self._app(scope, receive, send)  # it was none that can be kept
                return
        done = self._pending[key] = asyncio.Event()
        try:
            await self._made(key, scope, receive, send, headers)
        finally:
            del self._pending[key]
            done.set()

    def _find(self, key: tuple[object, ...]) -> Answer | None:
        found = self._answers.get(key)
        if found is None or found.generation != self._generation.now() or time.monotonic() - found.at > SECONDS:
            return None
        self._answers.move_to_end(key)
        return found

    async def _made(
        self, key: tuple[object, ...], scope: Scope, receive: Receive, send: Send, headers: Headers
    ) -> None:
        """Ask the application; what it sends is held back until it is whole, if it is of a kind that can be kept."""
        generation = self._generation.now()
        start: Message | None = None

        async def sent(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                plain = message["status"] == 200 and b"set-cookie" not in names and b"content-disposition" not in names
                start = message if plain else None
                if not plain:
                    await send(message)
            elif start is None:
                await send(message)
            elif message.get("more_body"):  # a stream
                await send(start)
                start = None
                await send(message)
            else:
                answer = _answer(start, message.get("body", b""), generation)
                self._keep(key, answer)
                await _send(answer, headers, send)

        await self._app(scope, receive, sent)

    def _keep(self, key: tuple[object, ...], answer: Answer) -> None:
        if len(answer.body) > LARGEST:
            return
        old = self._answers.pop(key, None)
        self._bytes += len(answer.body) - (len(old.body) if old is not None else 0)
        self._answers[key] = answer
        while self._bytes > MOST_BYTES:
            self._bytes -= len(self._answers.popitem(last=False)[1].body)


class Generation:
    """The store's count of changes, asked for only when SQLite says that somebody has written at all."""

    def __init__(self, service: Service) -> None:
        self._beside = service.store.beside
        self._lock = threading.Lock()
        self._seen: tuple[int, int] = (-1, 0)

    def now(self) -> int:
        """The number. Called from the event loop's thread, whose connection never writes, so that all writes are told."""
        with self._lock:
            version = self._beside.changed_elsewhere()
            if version != self._seen[0]:
                self._seen = version, self._beside.generation()
            return self._seen[1]


def _answer(start: Message, body: bytes, generation: int) -> Answer:
    etag = b'"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode() + b'"'
    headers = tuple((name, value) for name, value in start["headers"] if name not in _DROP)
    return Answer(headers, body, etag, generation, time.monotonic())


async def _send(answer: Answer, asked: Headers, send: Send) -> None:
    common = [
        *answer.headers,
        (b"etag", answer.etag),
        (b"cache-control", b"private, no-cache"),
        (b"vary", b"Accept, Authorization, Cookie"),
    ]
    if answer.etag.decode() in asked.get("if-none-match", ""):
        start = [(name, value) for name, value in common if name != b"content-type"]
        await send({"type": "http.response.start", "status": 304, "headers": start})
        await send({"type": "http.response.body", "body": b""})
        return
    start = [*common, (b"content-length", str(len(answer.body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": start})
    await send({"type": "http.response.body", "body": answer.body})
