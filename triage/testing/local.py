"""A local HTTP server for tests that fails on demand: the base of the servers of `triage.testing`.

    with SlackServer() as slack:
        slack.inject_failure("chat.postMessage", "500", times=2)

Kinds of failures: a status (`429`, `500`, `503` …) replaces the handling of the request; `cut` closes the connection
before the handling; `cut after` closes it after the handling, without a response; `half` closes it in the middle of the
response; `slow` responds after `delay` seconds.
"""

from __future__ import annotations

import contextlib
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

MAX_BODY = 8 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """A received request. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body parsed as JSON, or None."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Reply:
    """A response; a body that is not bytes is written as JSON."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> bytes:
        """Return the body as bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class LocalServer:
    """A server on a free port, running inside `with`. `requests` holds all received requests.

    `rate` are the requests that are handled within so many seconds of `clock`; one more is refused.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.delay = 0.5
        self.retry_after = 1
        self.rate: tuple[int, float] | None = None
        self.clock: Callable[[], float] = time.monotonic
        self._handled_at: list[float] = []
        self.lock = threading.RLock()
        self._failures: list[list[Any]] = []
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    def handle(self, request: Request) -> Reply:
        """Handle a request. The lock is held."""
        raise NotImplementedError

    def request_name(self, request: Request) -> str:
        """Return the name of a request for `inject_failure`."""
        return f"{request.method} {request.path}"

    def rate_limit_reply(self, seconds: int) -> Reply:
        """Return the response of this service to too many requests."""
        return Reply(429, {"message": "too many requests"}, {"Retry-After": str(seconds)})

    def inject_failure(self, name: str, kind: str, *, times: int = 1) -> Self:
        """Let the next `times` requests whose name contains `name` fail in this way."""
        with self.lock:
            self._failures.append([name, kind, times])
        return self

    @property
    def url(self) -> str:
        """Address of the server, without a slash at the end."""
        assert self._server is not None, "the server runs only inside `with`"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _build_handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait(self, done: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until `done` returns a true value. Raises TimeoutError."""
        until = time.monotonic() + seconds
        while not done():
            if time.monotonic() > until:
                raise TimeoutError(f"not within {seconds} s")
            time.sleep(0.02)

    def respond(self, request: Request) -> tuple[Reply | None, str]:
        """Return the reply (None: the connection is closed) and the kind of the injected failure, if any."""
        with self.lock:
            self.requests.append(request)
            failure = self._take_failure(self.request_name(request))
            if failure == "cut":
                return None, failure
            if failure == "429":
                return self.rate_limit_reply(self.retry_after), failure
            if failure.isdecimal():
                return Reply(int(failure), b"injected failure\n"), failure
            wait = self._seconds_until_room()
            reply = self.rate_limit_reply(wait) if wait else self.handle(request)
        if failure == "slow":
            time.sleep(self.delay)
        return (None if failure == "cut after" else reply), failure

    def _seconds_until_room(self) -> int:
        """Return after how many seconds one more request is handled; 0: now, and it is counted."""
        if self.rate is None:
            return 0
        (most, seconds), now = self.rate, self.clock()
        self._handled_at = [at for at in self._handled_at if at > now - seconds]
        if len(self._handled_at) >= most:
            return max(math.ceil(self._handled_at[0] + seconds - now), 1)
        self._handled_at.append(now)
        return 0

    def _take_failure(self, name: str) -> str:
        for entry in self._failures:
            if entry[0] in name and entry[2] > 0:
                entry[2] -= 1
                return str(entry[1])
        return ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


def _build_handler(server: LocalServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"
        timeout = 20

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            length = min(int(self.headers.get("Content-Length") or 0), MAX_BODY)
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply, failure = server.respond(Request(self.command, parts.path, query, headers, self.rfile.read(length)))
            if reply is None:
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            data = reply.data()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json; charset=utf-8", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if failure == "half" else data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815

        def log_message(self, *arguments: Any) -> None:
            """Write no log."""

    return Handler
