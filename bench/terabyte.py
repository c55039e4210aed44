"""What a terabyte of logs costs: rates from small jobs, the arithmetic, and a run of a part of it to check them.

    python bench/terabyte.py [part=0.0001] [mb=5] [directory=/tmp/…]

Processor time = START + files × FILE + bytes × BYTE, of all processes together. Three small jobs give the three rates.
`part=0.01` diagnoses 10 GB in files of `mb` MB, and compares with what the rates predict. Times count processors, so
that other work on the machine matters less; wall time is printed beside.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from remote import INGEST, build, run

TERABYTE = 10**12
SMALL_JOBS = (50, 100_000), (50, 4_000_000), (450, 100_000)  # files, and bytes of each
ROUNDS = 3
REQUEST_BYTES = 1 << 23


class Cost(NamedTuple):
    """What one diagnosis took: processor seconds, seconds, and MiB of the largest process."""

    processor: float
    wall: float
    memory: int


class Rates(NamedTuple):
    """Processor seconds of any job, of each file, and of each byte."""

    start: float
    file: float
    byte: float

    def predict(self, files: int, size: int) -> float:
        """Return the processor seconds of a job."""
        return self.start + files * self.file + size * self.byte


def measure_job(directory: Path, files: int, size: int, rounds: int) -> tuple[Cost, int]:
    """Return the least cost of some runs of a job with so many files of so many bytes, and its bytes."""
    with tempfile.TemporaryDirectory(dir=directory) as name:
        build(Path(name), files, size)
        total = sum(path.stat().st_size for path in Path(name).iterdir())
        costs = []
        for _ in range(rounds):
            wall, memory, *_, processor = run(INGEST, name)
            costs.append(Cost(processor, wall, memory >> 20))
    return min(costs), total


def measure_rates(directory: Path) -> Rates:
    """Return the rates that explain three small jobs."""
    (few, few_bytes), (large, large_bytes), (many, many_bytes) = (
        measure_job(directory, files, size, ROUNDS) for files, size in SMALL_JOBS
    )
    byte = (large.processor - few.processor) / (large_bytes - few_bytes)
    files = SMALL_JOBS[2][0] - SMALL_JOBS[0][0]
    file = (many.processor - few.processor - byte * (many_bytes - few_bytes)) / files
    return Rates(few.processor - SMALL_JOBS[0][0] * file - few_bytes * byte, file, byte)


def explain(rates: Rates, size: int) -> None:
    """Print the rates, and what a terabyte in files of so many bytes, and in larger ones, would cost."""
    print(
        f"start {rates.start:.2f} s, {rates.file * 1000:.2f} ms a file, {1e-9 / rates.byte:.2f} GB a processor second"
    )
    for each in (size, 10**9):
        files = TERABYTE // each
        hours = rates.predict(files, TERABYTE) / 3600
        requests = files * (1 + -(-each // REQUEST_BYTES)) + 2 * files // 1000
        print(
            f"1 TB in {files:,} files of {each / 1e6:.0f} MB: {files} × {rates.file * 1000:.2f} ms + 1 TB × "
            f"{rates.byte * 1e9:.3f} s/GB = {hours:.2f} processor hours; on 64 cores {hours * 60 / 64:.1f} "
            f"minutes at best; {requests:,} requests where they are objects"
        )


def main() -> None:
    """Measure the rates, print the arithmetic, and check it."""
    options = {"part": "0.0001", "mb": "5", **dict(pair.split("=", 1) for pair in sys.argv[1:])}
    size = int(float(options["mb"]) * 1e6)
    files = max(1, round(TERABYTE * float(options["part"]) / size))
    with tempfile.TemporaryDirectory(dir=options.get("directory")) as name:
        rates = measure_rates(Path(name))
        explain(rates, size)
        cost, total = measure_job(Path(name), files, size, 1)
    predicted = rates.predict(files, total)
    print(
        f"{total / 1e9:.2f} GB in {files} files: {cost.processor:.1f} s of processor time ({predicted:.1f} s "
        f"predicted), {cost.wall:.1f} s, {cost.memory} MiB; load {os.getloadavg()[0]:.1f}"
    )
    keys = {"terabyte_part": total / TERABYTE, "measured_vs_predicted": cost.processor / predicted}
    print("BENCH " + json.dumps({key: round(value, 5) for key, value in keys.items()}))


if __name__ == "__main__":
    main()
