"""A proxy on loopback that answers some requests with faults, and passes the others on to a real server."""

from __future__ import annotations

import http.client
import random
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Fault = str  # "throttle": 503 SlowDown; "cut": the connection ends within the body; "refuse": 500; "": none
Choose = Callable[[str, str], Fault]


def choose_some(rate: float, seed: int = 1) -> Choose:
    """Return a chooser that lets this share of the requests fail, in turn by throttling, a cut and an error."""
    numbers, lock = random.Random(seed), threading.Lock()

    def choose(method: str, path: str) -> Fault:
        with lock:
            return numbers.choice(("throttle", "cut", "refuse")) if numbers.random() < rate else ""

    return choose


class FaultyProxy:
    """Listens on a free port; `choose(method, path)` says how each request fails. `faults` counts what was done."""

    def __init__(self, target: str, choose: Choose) -> None:
        self.faults: Counter[str] = Counter()
        self.requests: list[tuple[str, str]] = []
        self._target = urlsplit(target).netloc
        self._choose = choose
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                proxy.answer(self)

            do_HEAD = do_GET  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FaultyProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        self.requests.append((handler.command, handler.path))
        fault = self._choose(handler.command, handler.path)
        if fault == "cut" and handler.command == "HEAD":  # it has no body
            fault = ""
        self.faults[fault] += 1
        if fault in ("throttle", "refuse"):
            body = b"<Error><Code>SlowDown</Code></Error>" if fault == "throttle" else b"<Error/>"
            handler.send_response(503 if fault == "throttle" else 500)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body if handler.command == "GET" else b"")
            return
        connection = http.client.HTTPConnection(self._target)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() != "connection"}
            connection.request(handler.command, handler.path, headers=headers)
            response = connection.getresponse()
            self._pass_on(handler, response, fault == "cut")
        finally:
            connection.close()

    def _pass_on(self, handler: BaseHTTPRequestHandler, response: http.client.HTTPResponse, is_cut: bool) -> None:
        length = response.getheader("Content-Length") if handler.command == "HEAD" else None
        body = response.read()
        handler.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", length or str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2] if is_cut else body)
        if is_cut:
            handler.close_connection = True
