"""Measure `triage watch` on 512 files that grow at 20 MB/s together: does it keep up, and how fast is a report?

Prints `BENCH watch_lag_s=… watch_cpu=… watch_mb=… watch_told_s=…`: the largest lag behind the writers in seconds, the
share of one core, the peak memory, and the seconds from the decisive line to the report.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FILES, RATE, SECONDS = 512, 20_000_000, 30
STEP = (
    "2026-11-21 10:00:{:02d},123 INFO train: rank {} step {} loss 2.3171 grad_norm 1.02 lr 3.0e-04 tokens/s 18233 "
    "mem 61.2GB it/s 4.1\n"
)
FAILURE = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 210, in <module>\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79.15 GiB\n"
)


class Writers(threading.Thread):
    """Writes steps into all files at the given rate, ten times per second."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.files = [(directory / f"rank_{rank}.log").open("a", buffering=1 << 20) for rank in range(FILES)]
        self.written = 0
        self.started = time.monotonic()

    def run(self) -> None:
        step = 0
        while (passed := time.monotonic() - self.started) < SECONDS:
            target = int(RATE * passed)
            while self.written < target:
                for rank, file in enumerate(self.files):
                    text = "".join(STEP.format(int(passed) % 60, rank, step + number) for number in range(8))
                    self.written += file.write(text)
                step += 8
            for file in self.files:
                file.flush()
            time.sleep(0.1)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        job = Path(directory) / "job"
        job.mkdir()
        writers = Writers(job)
        env = {**os.environ, "TRIAGE_STORE": "off"}
        command = [
            sys.executable,
            "-m",
            "triage",
            "watch",
            str(job),
            "--no-state",
            "--format",
            "json",
            "--stall-least",
            "1h",
        ]
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        writers.start()
        lag = 0.0
        while writers.is_alive():
            time.sleep(1.0)
            lag = max(lag, (writers.written - _read(watch.pid)) / RATE)
        with (job / "rank_37.log").open("a") as file:
            file.write(FAILURE)
        written_at = time.monotonic()
        events = map(json.loads, iter(watch.stdout.readline, ""))
        failure = next(event for event in events if event["event"] == "failure")
        delay = time.monotonic() - written_at
        assert failure["ranks"] == [37], failure["text"]
        watch.terminate()
        _, _, usage = os.wait4(watch.pid, 0)
        cpu = (usage.ru_utime + usage.ru_stime) / (time.monotonic() - writers.started)
        written = f"{writers.written / SECONDS / 1e6:.0f} MB/s into {FILES} files for {SECONDS} s"
        memory = f"{usage.ru_maxrss / 1e3:.0f}"
        print(f"{written}: at most {lag:.1f} s behind, {cpu:.2f} of a core, {memory} MB; reported after {delay:.1f} s")
        print(f"BENCH watch_lag_s={lag:.1f} watch_cpu={cpu:.2f} watch_mb={memory} watch_told_s={delay:.1f}")


def _read(pid: int) -> int:
    """Return the bytes that the process has read so far, from files or their cache."""
    text = Path(f"/proc/{pid}/io").read_text()
    return int(text.split("rchar:")[1].split()[0])


if __name__ == "__main__":
    main()
