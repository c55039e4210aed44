"""A small HTTP server for Slack's requests, for `triage bot slack`, without a web framework.

It runs behind a reverse proxy with TLS, which Slack requires. `triage serve` accepts the same requests at the same
path.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from triage.bots.slack.actions import Actions
from triage.bots.slack.callbacks import MAX_BODY, SlackAction, handle_request
from triage.store import Store

PATH = "/hooks/slack"
MAX_WAITING = 1000


class ActionQueue:
    """Performs the requested actions in one thread, in their order, so that no request waits for them."""

    def __init__(self, actions: Actions, store: Store) -> None:
        self._actions = actions
        self._store = store
        self._queue: queue.Queue[SlackAction | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="slack-actions", daemon=True)
        self._thread.start()

    def put(self, action: SlackAction) -> bool:
        """Queue an action; return False if the queue is full."""
        try:
            self._queue.put_nowait(action)
        except queue.Full:
            return False
        return True

    def close(self, seconds: float = 10.0) -> None:
        """Perform the queued actions and stop."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (action := self._queue.get()) is not None:
            try:
                self._actions.perform(action, self._store)
            except Exception:  # an unexpected error must not stop the next action
                logging.getLogger("triage.bots").exception("an action or command from Slack failed")


@contextlib.contextmanager
def serve_callbacks(host: str, port: int, secret: str, store: Store, actions: Actions) -> Iterator[str]:
    """Serve until the block ends; yields the address that Slack calls."""
    action_queue = ActionQueue(actions, store)
    server = _Server((host, port), _build_handler(secret, store, action_queue))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        action_queue.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect or send something else than HTTP."""


def _build_handler(secret: str, store: Store, action_queue: ActionQueue) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5
        server_version = "triage"
        sys_version = ""

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path.partition("?")[0] != PATH:
                return self._respond(404, b"no such page\n")
            if not length.isdecimal():
                return self._respond(411, b"the Content-Length header is missing\n")
            # Read some of a body that is too long: a client that is cut off while it sends sees no response.
            body = self.rfile.read(min(int(length), 2 * MAX_BODY))
            if int(length) > MAX_BODY:
                return self._respond(413, b"the request is too long\n")
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = handle_request(secret, headers, body, store, time.time())
            if reply.action is not None and not action_queue.put(reply.action):
                store.notifications.release_request(reply.action.once)
                return self._respond(503, b"too many requests are waiting\n")
            return self._respond(reply.status, reply.body)

        def _respond(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            """Write no access log; the proxy has one."""

    return Handler
