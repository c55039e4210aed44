"""`triage watch` over 512 files that grow at 20 MB/s together, for some seconds: does it keep up, and how soon is a
failure told?

Prints `BENCH watch_lag_s=… watch_cpu=… watch_mb=… watch_told_s=…`: how far behind the writers it was at most (seconds
of their writing), its share
of one core, its peak memory, and the seconds from the line that decides to the news.
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
STEP = "2026-11-21 10:00:{:02d},123 INFO train: rank {} step {} loss 2.3171 grad_norm 1.02 lr 3.0e-04 tokens/s 18233 mem 61.2GB it/s 4.1\n"
FAILURE = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 210, in <module>\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79.15 GiB\n"
)


class Writers(threading.Thread):
    """Writes steps into every file in turn, at the rate, ten times a second."""

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
    with tempfile.TemporaryDirectory() as place:
        job = Path(place) / "job"
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
        decided = time.monotonic()
        news = next(
            found for line in iter(watch.stdout.readline, "") if (found := json.loads(line))["event"] == "failure"
        )
        told = time.monotonic() - decided
        assert news["ranks"] == [37], news["text"]
        watch.terminate()
        _, _, usage = os.wait4(watch.pid, 0)
        cpu = (usage.ru_utime + usage.ru_stime) / (time.monotonic() - writers.started)
        written = f"{writers.written / SECONDS / 1e6:.0f} MB/s into {FILES} files for {SECONDS} s"
        print(
            f"{written}: at most {lag:.1f} s behind, {cpu:.2f} of a core, {usage.ru_maxrss / 1e3:.0f} MB; told {told:.1f} s after the line"
        )
        print(
            f"BENCH watch_lag_s={lag:.1f} watch_cpu={cpu:.2f} watch_mb={usage.ru_maxrss / 1e3:.0f} watch_told_s={told:.1f}"
        )


def _read(pid: int) -> int:
    """Bytes that the process has read so far, from files or their cache."""
    text = Path(f"/proc/{pid}/io").read_text()
    return int(text.split("rchar:")[1].split()[0])


if __name__ == "__main__":
    main()
