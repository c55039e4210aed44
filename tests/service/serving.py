"""`triage serve` as a process, for tests that need real sockets and real signals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]


class Server:
    """A running server. `log` is what it says on standard error, a dict a line."""

    def __init__(self, store: Path, *options: str, **settings: object) -> None:
        self._store = store
        self._options = options
        self._settings = {f"TRIAGE_{name.upper()}": str(value) for name, value in settings.items()}
        self.start()

    def start(self) -> None:
        self._out = (self._store.parent / f"serve-{time.monotonic_ns()}.log").open("w+b")
        own = {"TRIAGE_CONFIG": "", "TRIAGE_STORE": str(self._store), "TRIAGE_TASKS_NICE": "0", "PYTHONPATH": str(ROOT)}
        environment = {**os.environ, **own, **self._settings}
        command = [sys.executable, "-m", "triage", "serve", "--port", "0", *self._options]
        self.process = subprocess.Popen(command, env=environment, stdout=self._out, stderr=self._out)
        begun = eventually(lambda: next((item for item in self.log() if item["event"] == "triage serves"), None))
        self.url = begun["address"].rstrip("/")
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)
        eventually(self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/api/v1/health").status_code == 200
        return False

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in Path(self._out.name).read_text().splitlines() if line.startswith("{")]

    def children(self) -> list[int]:
        """The processes that answer and that work, in the order in which they were started."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def kill(self) -> None:
        """As the kernel would."""
        children = self.children()
        self.process.kill()
        self.process.wait()
        eventually(lambda: not any(running(child) for child in children))
        self._close()

    def stop(self) -> int:
        """As an operator would; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(40)
        self._close()
        return status

    def _close(self) -> None:
        self.client.close()
        self._out.close()


def running(pid: int) -> bool:
    """Is there a process of this number that has not ended?"""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def eventually(ask: Callable[[], Any], seconds: float = 240) -> Any:
    """What it says once it says something."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if found := ask():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came to be")


@contextlib.contextmanager
def serving(store: Path, *options: str, **settings: object) -> Iterator[Server]:
    """A server for a while."""
    server = Server(store, *options, **settings)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
