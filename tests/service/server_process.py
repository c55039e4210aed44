"""`triage serve` as a process, for tests that need real sockets and real signals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
LOGS: Path | None = None  # the directory of the servers' logs; None: beside the store


class ServerProcess:
    """A running server with its address, a client and its log."""

    def __init__(self, store: Path | str, *options: str, **settings: object) -> None:
        self.store = store
        self._options = options
        self._settings = {f"TRIAGE_{name.upper()}": str(value) for name, value in settings.items()}
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        logs = LOGS or (self.store.parent if isinstance(self.store, Path) else Path(tempfile.gettempdir()))
        self._out = (logs / f"serve-{time.monotonic_ns()}.log").open("w+b")
        overrides = {
            "TRIAGE_CONFIG": "",
            "TRIAGE_STORE": str(self.store),
            "TRIAGE_TASKS_NICE": "0",
            "PYTHONPATH": str(ROOT),
        }
        environment = {**os.environ, **overrides, **self._settings}
        command = [sys.executable, "-m", "triage", "serve", "--port", "0", *self._options]
        self.process = subprocess.Popen(command, env=environment, stdout=self._out, stderr=self._out)
        started = wait_for(lambda: next((item for item in self.read_log() if item["event"] == "triage serves"), None))
        self.url = started["address"].rstrip("/")
        self.client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)
        wait_for(self._is_answering)

    def _is_answering(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/api/v1/health").status_code == 200
        return False

    def read_log(self) -> list[dict[str, Any]]:
        """Return the events on standard error."""
        return [json.loads(line) for line in Path(self._out.name).read_text().splitlines() if line.startswith("{")]

    def children(self) -> list[int]:
        """Return the pids of the web processes and the workers, in the order of their start."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def kill(self) -> None:
        """Kill it like the kernel does, and wait until its children are gone."""
        children = self.children()
        self.process.kill()
        self.process.wait()
        wait_for(lambda: not any(is_running(child) for child in children))
        self._close()

    def stop(self) -> int:
        """Stop it like an operator does. Returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(40)
        self._close()
        return status

    def _close(self) -> None:
        self.client.close()
        self._out.close()


def is_running(pid: int) -> bool:
    """Return whether a process with this pid has not ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def wait_for(condition: Callable[[], Any], seconds: float = 240) -> Any:
    """Return the result of the condition as soon as it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("the condition never became true")


@contextlib.contextmanager
def run_server(store: Path | str, *options: str, **settings: object) -> Iterator[ServerProcess]:
    """Run a server, and stop it at the end."""
    server = ServerProcess(store, *options, **settings)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
