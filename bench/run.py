"""Measure `triage ingest` against ripgrep with the same patterns on the same files: `make bench`.

Both run in turns, three times each, and the fastest wall time counts. ripgrep gets every text pattern of the catalog
and every generic trigger (`rg -f PATTERNS -n -a --no-unicode`, all cores), except patterns over several lines, which
ripgrep cannot match. `triage ingest` does the whole diagnosis. The last line is for machines.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from memory import PeakMemory

HERE = Path(__file__).parent
DATA = HERE / "data"
ROUNDS = 3
# Other benchmarks: scripts beside this one, in this order. The last line of each is `BENCH key=value …` and joins ours.
MORE: tuple[str, ...] = (
    "split",
    "ranks",
    "diagnose",
    "flight",
    "clusters",
    "store",
    "cores",
    "watch",
    "service",
    "causes",
    "digest",
    "performance",
)
RIPGREP = "@vscode/ripgrep@1.18.0"  # ripgrep 15.0.0


def write_patterns() -> None:
    """Write the catalog's patterns and the triggers to a file, one per line.

    Capture names are removed, since ripgrep does not allow a name twice.
    """
    from triage import evidence
    from triage.catalog.load import load
    from triage.catalog.match import positive_leaves

    texts = {leaf.text for signature in load().signatures for leaf in positive_leaves(signature.match) if leaf.text}
    texts = {re.sub(r"\?P<\w+>", "?:", text) for text in texts}
    texts = {without_unicode_classes(text) for text in texts}
    texts = {text for text in texts if not re.search(r"\\n", re.sub(r"\[\^[^\]]*\]", "", text))}
    lines = sorted(texts) + [re.sub(r"([^\w\s])", r"\\\1", trigger) for trigger in evidence.TRIGGERS]
    (DATA / "patterns.txt").write_text("\n".join(lines) + "\n")


def without_unicode_classes(pattern: str) -> str:
    """Return the pattern with other characters than ASCII moved out of its classes, where --no-unicode forbids them."""

    def move_out(match: re.Match[str]) -> str:
        if match[2] is None:
            return match[0]
        others = re.findall(r"[^\x00-\x7f]", match[2])
        plain = f"[{match[1]}{''.join(filter(str.isascii, match[2]))}]"
        return f"(?:{'|'.join([plain, *others])})" if others and not match[1] else plain

    return re.sub(r"\\.|\[(\^?)((?:\\.|[^\]\\])*)\]", move_out, pattern)


def find_ripgrep() -> str:
    """Return ripgrep 15 from the npm registry, else any installed rg (the wheel `ripgrep`, Debian's package)."""
    target = DATA / "rg"
    binaries = sorted(target.glob("node_modules/@vscode/ripgrep-*/bin/rg"))
    if not binaries and shutil.which("npm"):
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(target), RIPGREP], check=False
        )
        binaries = sorted(target.glob("node_modules/@vscode/ripgrep-*/bin/rg"))
    rg = (
        str(binaries[0])
        if binaries
        else shutil.which("rg") or shutil.which("rg", path=str(Path(sys.executable).parent))
    )
    if rg is None:
        sys.exit("bench: ripgrep is not there; install npm, or the Debian package ripgrep, and run again")
    return rg


def time_command(command: list[str]) -> tuple[float, float]:
    """Return wall and processor seconds of a command; its output goes to a file."""
    with (DATA / "out").open("wb") as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"bench: {' '.join(command[:4])} … ended with {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime


def peak_memory(command: list[str]) -> float:
    """Return the peak memory in MB of a command and its processes, in a separate run, since measuring slows it down."""
    with (DATA / "out").open("wb") as out, PeakMemory(process := subprocess.Popen(command, stdout=out), 0.01) as memory:
        process.wait()
    return memory.peak


def compare(name: str, directory: Path, rg: str, pattern_file: Path) -> tuple[float, float]:
    """Return the ratio of the fastest wall times, and the peak memory of triage in MB."""
    triage = [sys.executable, "-m", "triage", "ingest", str(directory), "--exact", "--format", "json"]
    grep = [rg, "-f", str(pattern_file), "-n", "-a", "--no-unicode", str(directory)]
    time_command(triage)  # warms the page cache and the catalog's cache for both
    runs = [(time_command(grep), time_command(triage)) for _ in range(ROUNDS)]
    theirs = min(run[0] for run in runs)
    ours = min(run[1] for run in runs)
    memory = peak_memory(triage)
    size = sum(file.stat().st_size for file in directory.iterdir()) / 1e6
    print(f"{name}: {size:.0f} MB")
    print(f"  ripgrep        {theirs[0]:6.2f} s wall  {theirs[1]:6.2f} s processor  {peak_memory(grep):6.0f} MB")
    print(
        f"  triage ingest  {ours[0]:6.2f} s wall  {ours[1]:6.2f} s processor  {memory:6.0f} MB   ratio "
        f"{ours[0] / theirs[0]:.2f}"
    )
    return ours[0] / theirs[0], memory


def generate_logs(name: str, *options: str) -> Path:
    directory = DATA / name
    if not directory.exists():
        print(f"writing {directory} …", flush=True)
        scratch = directory.with_suffix(".part")
        subprocess.run([sys.executable, str(HERE / "generate.py"), str(scratch), *options], check=True)
        scratch.rename(directory)
    return directory


def ripgrep_ratios(gib: float) -> str:
    """Return the `key=value` pairs of the comparison with ripgrep."""
    job = generate_logs(f"job-{gib:g}", "--gib", str(gib))
    storm = generate_logs(f"storm-{gib:g}", "--gib", str(gib / 4), "--storm")
    rg, pattern_file = find_ripgrep(), DATA / "patterns.txt"
    write_patterns()
    print(subprocess.run([rg, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0])
    scan, peak = compare("job, 0.05 % failure lines", job, rg, pattern_file)
    storm_ratio, storm_peak = compare("storm, 30 % failure lines", storm, rg, pattern_file)
    return f"scan_vs_rg={scan:.2f} storm_vs_rg={storm_ratio:.2f} peak_mb={max(peak, storm_peak):.0f}"


def run_benchmark(name: str) -> str:
    """Run another benchmark and return the `key=value` pairs of its last line."""
    print(f"\n{name}", flush=True)
    last = ""
    with subprocess.Popen([sys.executable, str(HERE / f"{name}.py")], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line
    if process.returncode or not last.startswith("BENCH "):
        sys.exit(f"bench: {name}.py ended with {process.returncode} and the last line {last.strip()!r}")
    return last.removeprefix("BENCH ").strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=1.0, help="size of the job's logs; the storm is a quarter of it")
    args = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    print("BENCH", ripgrep_ratios(args.gib), *map(run_benchmark, MORE))


if __name__ == "__main__":
    main()
