"""A local HTTP server for tests, that fails when it is told to: what the servers of `triage.testing` have in common.

    with SlackServer() as slack:
        slack.trouble("chat.postMessage", "500", times=2)

Troubles: a status (`429`, `500`, `503` …) is answered instead of doing what was asked; `cut` closes the connection
before anything is
done; `cut after` does it and closes the connection instead of answering; `half` does it and closes in the middle of the
answer;
`slow` answers after the server's `slowness` in seconds.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

MOST_BODY = 8 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """What arrived. Names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; None when it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered; a body that is no bytes is written as JSON."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> bytes:
        """The body in bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class LocalServer:
    """A server on a free port of this machine, running between `with` and its end. `requests` holds all that arrived."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.slowness = 0.5
        self.retry_after = 1
        self.lock = threading.RLock()
        self._troubles: list[list[Any]] = []
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    def answer(self, request: Request) -> Reply:
        """Do what was asked. The lock is held."""
        raise NotImplementedError

    def name_of(self, request: Request) -> str:
        """What `trouble` calls a request."""
        return f"{request.method} {request.path}"

    def limited(self, seconds: int) -> Reply:
        """The answer of this service to those that ask too often."""
        return Reply(429, {"message": "too many requests"}, {"Retry-After": str(seconds)})

    def trouble(self, name: str, kind: str, *, times: int = 1) -> Self:
        """The next `times` requests whose name contains `name` meet this trouble."""
        with self.lock:
            self._troubles.append([name, kind, times])
        return self

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        assert self._server is not None, "the server runs only inside `with`"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
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
        """Wait until `done` says so. Raises TimeoutError."""
        until = time.monotonic() + seconds
        while not done():
            if time.monotonic() > until:
                raise TimeoutError(f"not within {seconds} s")
            time.sleep(0.02)

    def meet(self, request: Request) -> tuple[Reply | None, str]:
        """The answer (None: no answer, the connection is closed) and the trouble that was met."""
        with self.lock:
            self.requests.append(request)
            trouble = self._next(self.name_of(request))
            if trouble == "cut":
                return None, trouble
            if trouble.isdecimal():
                status = int(trouble)
                return self.limited(self.retry_after) if status == 429 else Reply(status, b"no\n"), trouble
            reply = self.answer(request)
        if trouble == "slow":
            time.sleep(self.slowness)
        return (None if trouble == "cut after" else reply), trouble

    def _next(self, name: str) -> str:
        for entry in self._troubles:
            if entry[0] in name and entry[2] > 0:
                entry[2] -= 1
                return str(entry[1])
        return ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


def _handler(server: LocalServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"
        timeout = 20

        def _any(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            length = min(int(self.headers.get("Content-Length") or 0), MOST_BODY)
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply, trouble = server.meet(Request(self.command, parts.path, query, headers, self.rfile.read(length)))
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
            self.wfile.write(data[: len(data) // 2] if trouble == "half" else data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _any  # noqa: N815

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    return Handler
