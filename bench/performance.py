"""Measure what a diagnosis costs, and write docs/performance.md: `python bench/performance.py [PART ...]`.

Each row of the page has the date, the commit, the machine and the load it was measured at, and stays until it is
measured again. Parts: floor, stages, tools, size, ranks, again, flame; all of them without an argument. `--gib` and
`--ranks` choose the sizes. `--page` only writes the page. The last line is for machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flame import draw, read_stacks
from memory import PeakMemory
from performance_page import PAGE, PICTURE, format_page
from run import DATA, find_ripgrep, generate_logs, write_patterns
from trust import RESULTS, write_result

ROUNDS = 3
GIB = (0.1, 1.0, 10.0)
RANKS = (1, 10, 100, 1000, 10_000)
_DRAIN_BYTES = 16 << 20  # of the job: Drain3 would take minutes for all of it
_STEPS = 300

Rows = dict[str, dict[str, Any]]


def describe_machine() -> str:
    """Return the processor, the number of cores and the operating system."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def run_command(command: Sequence[str], **environment: str) -> tuple[float, float]:
    """Return seconds and peak memory in MB of a command; its output is dropped."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    with PeakMemory(process, 0.05) as memory:
        status = process.wait()
    if status not in ((0, 1) if Path(command[0]).name == "rg" else (0,)):  # 1: ripgrep printed no line
        sys.exit(f"performance: {' '.join(map(str, command[:5]))} … ended with {status}")
    return time.perf_counter() - start, memory.peak


def fastest(command: Sequence[str], rounds: int = ROUNDS, **environment: str) -> dict[str, float]:
    """Return the fastest of some runs, after one that warms all caches."""
    run_command(command, **environment)
    runs = [run_command(command, **environment) for _ in range(rounds)]
    return {"seconds": round(min(seconds for seconds, _ in runs), 3), "memory": round(max(peak for _, peak in runs))}


def triage(directory: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "triage", "ingest", str(directory), "--no-store", "-q", "--format", "json", *more]


def job_of(gib: float) -> Path:
    """Return the generated logs of this size."""
    return generate_logs(f"job-{gib:g}", "--gib", str(gib))


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def measure_floor(gib: float) -> Rows:
    """What reading alone costs: cat, and one plain word with grep."""
    job = job_of(gib)
    files = sorted(map(str, job.iterdir()))
    commands = {"cat": ["cat", *files], "one word with ripgrep": [find_ripgrep(), "-a", "-c", "no such word", str(job)]}
    return {f"floor {name}": {"bytes": size_of(job), **fastest(command)} for name, command in commands.items()}


def measure_tools(gib: float) -> Rows:
    """The same patterns with ripgrep, a loop over lines in Python, and Drain3, beside triage."""
    job, storm = job_of(gib), generate_logs(f"storm-{gib:g}", "--gib", str(gib / 4), "--storm")
    write_patterns()
    rows: Rows = {}
    for name, directory in (("job", job), ("storm", storm)):
        grep = [find_ripgrep(), "-f", str(DATA / "patterns.txt"), "-n", "-a", "--no-unicode", str(directory)]
        for tool, command in (("triage ingest", triage(directory, "--exact")), ("ripgrep, all patterns", grep)):
            rows[f"tools {name}: {tool}"] = {"bytes": size_of(directory), **fastest(command)}
    sample = DATA / "sample.log"
    sample.write_bytes(next(job.iterdir()).read_bytes()[:_DRAIN_BYTES])
    for tool, code in (("a loop over lines in Python", _LOOP), ("Drain3", _DRAIN)):
        command = [sys.executable, "-c", code, str(sample), str(DATA / "patterns.txt")]
        rows[f"tools job: {tool}"] = {"bytes": sample.stat().st_size, **fastest(command, rounds=1)}
    return rows


# One alternation of all patterns in RE2, which is what a careful script would do; `re` takes far longer.
_LOOP = """
import re2, sys
patterns = [line for line in open(sys.argv[2], encoding="utf-8").read().splitlines() if line]
options = re2.Options(); options.max_mem = 1 << 28; options.log_errors = False
every = re2.compile("|".join(f"(?:{pattern})" for pattern in patterns), options)
print(sum(every.search(line) is not None for line in open(sys.argv[1], encoding="utf-8", errors="replace")))
"""
_DRAIN = """
import sys
from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig
miner = TemplateMiner(config=TemplateMinerConfig())
for line in open(sys.argv[1], encoding="utf-8", errors="replace"):
    miner.add_log_message(line.rstrip())
print(len(miner.drain.clusters))
"""


def measure_size(gib: float) -> Rows:
    """A job of this size."""
    job = job_of(gib)
    return {f"size {gib:g}": {"bytes": size_of(job), **fastest(triage(job, "--exact"), ROUNDS if gib <= 1 else 1)}}


def measure_ripgrep(gib: float) -> Rows:
    """ripgrep with all patterns on a job of this size."""
    job = job_of(gib)
    write_patterns()
    command = [find_ripgrep(), "-f", str(DATA / "patterns.txt"), "-n", "-a", "--no-unicode", str(job)]
    return {f"ripgrep {gib:g}": {"bytes": size_of(job), **fastest(command, ROUNDS if gib <= 1 else 1)}}


def write_ranks(directory: Path, count: int) -> Path:
    """Write a file for each rank with some hundred steps; rank 0 runs out of memory, the others time out."""
    if directory.exists():
        return directory
    scratch = directory.with_suffix(".part")
    scratch.mkdir(parents=True, exist_ok=True)
    for rank in range(count):
        steps = "".join(f"2026-11-21 03:{n // 60:02}:{n % 60:02},000 step {n} loss 2.{n:03}\n" for n in range(_STEPS))
        end = (
            "Traceback (most recent call last):\n"
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
            if rank == 0
            else f"[rank{rank}]:[E1121 03:15:45.372001001 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
            "collective operation timeout: WorkNCCL(SeqNum=300, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, "
            "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
        )
        (scratch / f"rank_{rank}.log").write_text(steps + end)
    return scratch.rename(directory)


def measure_ranks(count: int) -> Rows:
    """A job of so many ranks, each with a file of its own."""
    job = write_ranks(DATA / f"ranks-{count}", count)
    cost = fastest(triage(job, "--exact"), ROUNDS if count <= 100 else 1)
    return {f"ranks {count}": {"bytes": size_of(job), **cost}}


def measure_again(gib: float) -> Rows:
    """The first ingest, the second one, and one after every file has grown by a line."""
    job = job_of(gib)
    rows: Rows = {}
    with tempfile.TemporaryDirectory() as cache:
        run_command(triage(job, "--exact"), TRIAGE_CACHE=cache)  # compiles the catalog
        first, peak = run_command(triage(job), TRIAGE_CACHE=cache)
        rows["again first"] = {"seconds": round(first, 3), "memory": round(peak)}
        rows["again second"] = fastest(triage(job), TRIAGE_CACHE=cache)
        sizes = {path: path.stat().st_size for path in job.iterdir()}
        try:
            for path in sizes:
                with path.open("a") as file:
                    file.write("[default0]: one more line\n")
            seconds, peak = run_command(triage(job), TRIAGE_CACHE=cache)
        finally:
            for path, size in sizes.items():
                os.truncate(path, size)
        rows["again grown"] = {"seconds": round(seconds, 3), "memory": round(peak)}
    return {name: {"bytes": size_of(job), **row} for name, row in rows.items()}


def measure_stages(gib: float) -> Rows:
    """Seconds of each stage, in one process that has started."""
    code = (Path(__file__).parent / "stage_times.py").read_text()
    runs = [
        json.loads(
            subprocess.run([sys.executable, "-c", code, str(job_of(gib))], capture_output=True, check=True).stdout
        )
        for _ in range(ROUNDS)
    ]
    fast = min(runs, key=lambda run: sum(run.values()))
    return {f"stages {name}": {"bytes": size_of(job_of(gib)), "seconds": round(fast[name], 3)} for name in fast}


def draw_flame(gib: float) -> Rows:
    """Sample a diagnosis by py-spy and draw where its time goes."""
    job = job_of(gib)
    run_command(triage(job, "--exact"))
    with tempfile.NamedTemporaryFile("r") as raw:
        spy = ["py-spy", "record", "--format", "raw", "--rate", "500", "--subprocesses", "--output", raw.name, "--"]
        subprocess.run(
            [str(Path(sys.executable).with_name(spy[0])), *spy[1:], *triage(job, "--exact")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        root = read_stacks(_shorten(line) for line in Path(raw.name).read_text().splitlines())
    PICTURE.write_text(draw(root), encoding="utf-8")
    return {"flame": {"bytes": size_of(job), "samples": root.samples}}


def _shorten(line: str) -> str:
    """Drop the processes, whose numbers change, and the start of paths from a stack."""
    stack, _, count = line.rpartition(" ")
    frames = [frame for frame in stack.split(";") if not frame.startswith("process ")]
    return ";".join(frame.replace(str(Path(__file__).parents[1]) + "/", "") for frame in frames) + f" {count}"


PARTS: Mapping[str, Callable[[argparse.Namespace], Sequence[Callable[[], Rows]]]] = {
    "floor": lambda chosen: [lambda: measure_floor(chosen.base)],
    "stages": lambda chosen: [lambda: measure_stages(chosen.base)],
    "tools": lambda chosen: [lambda: measure_tools(chosen.base)],
    "size": lambda chosen: [lambda gib=gib: {**measure_size(gib), **measure_ripgrep(gib)} for gib in chosen.gib],
    "ranks": lambda chosen: [lambda count=count: measure_ranks(count) for count in chosen.ranks],
    "again": lambda chosen: [lambda: measure_again(chosen.base)],
    "flame": lambda chosen: [lambda: draw_flame(chosen.base)],
}


def read_rows() -> Rows:
    """Return all rows that were measured."""
    path = RESULTS / "performance.json"
    return json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else {}


def bench_line(rows: Rows) -> str:
    """Return the line for machines, of the rows that exist; run.py has the ratios of the job and the storm."""

    def ratio(one: str, other: str) -> float | None:
        return rows[one]["seconds"] / rows[other]["seconds"] if one in rows and other in rows else None

    values = {
        "scan10_vs_rg": ratio("size 10", "ripgrep 10"),
        "again_1gib_s": rows.get("again second", {}).get("seconds"),
        "memory_mb": max((row["memory"] for name, row in rows.items() if name.startswith("size ")), default=None),
    }
    return " ".join(["BENCH", *(f"{name}={value:.2f}" for name, value in values.items() if value is not None)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--base", type=float, default=1.0, help="GiB of the job for all parts but size and ranks")
    parser.add_argument("--gib", type=float, nargs="+", default=GIB, help="sizes of jobs")
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS, help="numbers of ranks")
    parser.add_argument("--page", action="store_true", help="write the page from what was measured, measure nothing")
    chosen = parser.parse_args()
    unknown = set(chosen.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    DATA.mkdir(exist_ok=True)
    for part in [] if chosen.page else chosen.parts or PARTS:
        for measure in PARTS[part](chosen):
            load = os.getloadavg()[0]
            origin = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "machine": describe_machine()}
            rows = {name: {**row, **origin, "load": round(load, 1)} for name, row in measure().items()}
            for name, row in rows.items():
                print(f"{name}: {row}", flush=True)
            write_result("performance", {"rows": rows}, merge="rows")
    PAGE.write_text(format_page(read_rows()), encoding="utf-8")
    print(bench_line(read_rows()))


if __name__ == "__main__":
    main()
