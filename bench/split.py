"""Measure `triage split` on mixed logs of 512 ranks against awk, which splits by one prefix: `python bench/split.py`.

Both read the same file and write one file per rank, in turns, and the fastest wall time counts. awk gets the prefix and
its end beforehand. The last line is for machines: MB/s of both, and the peak memory of triage's processes.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from memory import PeakMemory

DATA = Path(__file__).parent / "data"
RANKS = 512
ROUNDS = 2
AWK = '{ i = index($0, "]:"); f = substr($0, 2, i - 2); print substr($0, i + 2) > (out "/" f) }'


def write_log(path: Path, gib: float) -> None:
    """Write lines of 512 ranks in random order behind `[node3:5]:`: steps, tracebacks, and some with the rank."""
    rng = random.Random(1)
    pool = [
        f"iteration {n:8d}/  500000 | consumed samples: {n * 1024:12d} | lm loss: {2 + rng.random():.6E} | grad "
        f"norm: {rng.random():.3f}\n"
        for n in range(2000)
    ]
    pool += [
        f"2026-11-21 03:{n // 60:02}:{n % 60:02},{n:03} INFO trainer: step {n} tokens/s {3000 + n} mem 70.1GB mfu "
        "0.41\n"
        for n in range(1000)
    ]
    pool += ['  File "/workspace/train.py", line 88, in <module>\n', "    loss.backward()\n", "\n"]
    size, most = 0, int(gib * (1 << 30))
    with path.open("w") as file:
        while size < most:
            ranks = [rng.randrange(RANKS) for _ in range(20_000)]
            lines = [f"[node{rank // 8}:{rank % 8}]:{rng.choice(pool)}" for rank in ranks]
            lines += [
                f"[node{rank // 8}:{rank % 8}]:[rank{rank}]: Traceback (most recent call last):\n"
                for rank in range(0, RANKS, 7)
            ]
            text = "".join(lines)
            file.write(text)
            size += len(text)


def time_command(command: list[str]) -> tuple[float, float]:
    """Return wall seconds and peak MB of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command)
    with PeakMemory(process, 0.2) as memory:
        status = process.wait()
        wall = time.perf_counter() - start
    if status:
        sys.exit(f"bench: {' '.join(command[:4])} … ended with {status}")
    return wall, memory.peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=1.0, help="size of the file")
    gib = parser.parse_args().gib
    DATA.mkdir(exist_ok=True)
    path, output = DATA / f"mixed-{gib:g}.log", DATA / "split"
    if not path.exists():
        print(f"writing {path} …", flush=True)
        write_log(path, gib)
    ours: list[tuple[float, float]] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        theirs.append(time_command(["awk", "-v", f"out={output}", AWK, str(path)])[0])
        shutil.rmtree(output)
        ours.append(time_command([sys.executable, "-m", "triage", "split", "-q", str(path), "-o", str(output)]))
    written = sum(file.stat().st_size for file in output.iterdir())
    shutil.rmtree(output)
    size = path.stat().st_size / 1e6
    speed, awk, peak = size / min(wall for wall, _ in ours), size / min(theirs), max(mb for _, mb in ours)
    print(f"{size:.0f} MB of {RANKS} ranks, {written / 1e6:.0f} MB without prefixes")
    print(f"  awk, one prefix  {min(theirs):6.2f} s  {awk:6.0f} MB/s")
    print(f"  triage split     {size / speed:6.2f} s  {speed:6.0f} MB/s  {peak:.0f} MB of memory")
    print(f"BENCH split_mbs={speed:.0f} split_vs_awk={speed / awk:.2f} split_peak_mb={peak:.0f}")


if __name__ == "__main__":
    main()
