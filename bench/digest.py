"""Measure what the digest of every byte costs an ingest: `python bench/digest.py`.

The same ingest runs with the digest and without it, in turns, and the fastest wall times are compared. Without it a
job would be known by the size and both ends of its files, as it once was.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from subprocess import DEVNULL, run

from run import generate_logs

ROUNDS = 5
WITHOUT = """
import sys
import triage.base.content_digest as content_digest

class NoDigest:
    def update(self, data):
        pass

    def hexdigest(self):
        return "0" * 64

content_digest.start_digest = NoDigest
from triage.cli import main

sys.exit(main())
"""


def time_ingest(start: list[str], directory: Path) -> float:
    """Return the wall seconds of an ingest whose interpreter is started with these arguments."""
    begin = time.perf_counter()
    command = [sys.executable, *start, "ingest", str(directory), "--exact", "--no-store", "--format", "json"]
    result = run(command, stdout=DEVNULL, stderr=DEVNULL, check=False)
    if result.returncode not in (0, 1):
        sys.exit(f"digest: triage ingest ended with {result.returncode}")
    return time.perf_counter() - begin


def main() -> None:
    directory = generate_logs("job-1", "--gib", "1")
    ways = {"without": ["-c", WITHOUT], "with": ["-m", "triage"]}
    for start in ways.values():
        time_ingest(start, directory)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, start in ways.items():
            times[name].append(time_ingest(start, directory))
    for name, seconds in times.items():
        print(f"{name:>8} the digest  {min(seconds):5.2f} s at least, {max(seconds):5.2f} s at most")
    print(f"BENCH digest_cost={min(times['with']) / min(times['without']):.2f}")


if __name__ == "__main__":
    main()
