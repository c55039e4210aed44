"""Measure the memory of a process and its children (proportional set size, Linux; shared pages count once)."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path


def process_memory(pid: int) -> int:
    """Return the bytes of a process and its children now; 0 for a process that has ended."""
    try:
        own = Path(f"/proc/{pid}/smaps_rollup").read_text()
        children = [
            child
            for task in os.listdir(f"/proc/{pid}/task")
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        ]
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in own.splitlines() if line.startswith("Pss:")) + sum(
        process_memory(int(child)) for child in children
    )


class PeakMemory:
    """Measures the peak memory of a running process in MB, every `seconds`."""

    def __init__(self, process: subprocess.Popen[bytes] | subprocess.Popen[str], seconds: float) -> None:
        self.peak = 0.0
        self._pid = process.pid
        self._seconds = seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(self._seconds):
            self.peak = max(self.peak, process_memory(self._pid) / 1e6)
