"""A small HTTP server for Slack's calls, for `triage bot slack`: no web framework, one address, one purpose.

Behind a reverse proxy with TLS, as Slack asks for. `triage serve` takes the same calls at the same address, so that
whoever runs it needs
no second server.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from triage.bots.slack.actions import Actions
from triage.bots.slack.callbacks import MOST_BODY, Work, receive
from triage.store import Store

PATH = "/hooks/slack"
WAITING = 1000


class Doer:
    """One thread that does what the requests ask for, in their order, so that no request waits for it."""

    def __init__(self, actions: Actions, store: Store) -> None:
        self._actions = actions
        self._store = store
        self._queue: queue.Queue[Work | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name="slack-actions", daemon=True)
        self._thread.start()

    def put(self, work: Work) -> bool:
        """False when too much waits already."""
        try:
            self._queue.put_nowait(work)
        except queue.Full:
            return False
        return True

    def close(self, seconds: float = 10.0) -> None:
        """Finish what waits."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        import logging

        while (work := self._queue.get()) is not None:
            try:
                self._actions.perform(work, self._store)
            except Exception:  # whatever it was, the next press must still be heard
                logging.getLogger("triage.bots").exception("a press or command in Slack could not be done")


@contextlib.contextmanager
def listening(host: str, port: int, secret: str, store: Store, actions: Actions) -> Iterator[str]:
    """Serve until the block ends; gives the address that Slack is to call."""
    doer = Doer(actions, store)
    server = _Server((host, port), _handler(secret, store, doer))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        doer.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away or sent no HTTP is no news."""


def _handler(secret: str, store: Store, doer: Doer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5
        server_version = "triage"
        sys_version = ""

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path.partition("?")[0] != PATH:
                return self._say(404, b"no such page\n")
            if not length.isdecimal():
                return self._say(411, b"how long?\n")
            body = self.rfile.read(
                min(int(length), 2 * MOST_BODY)
            )  # who is cut off while sending does not see the answer
            if int(length) > MOST_BODY:
                return self._say(413, b"too long\n")
            answer = receive(
                secret, {name.lower(): value for name, value in self.headers.items()}, body, store, time.time()
            )
            if answer.work is not None and not doer.put(answer.work):
                store.told.forget_sight(answer.work.once)
                return self._say(503, b"too much to do\n")
            return self._say(answer.status, answer.body)

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            """The access log is the proxy's."""

    return Handler
