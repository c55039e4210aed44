"""Measures the store with 100,000 incidents: list, search and show, the size of the file, and the ingest of a small job
with and without it.

The incidents are variations of the recorded samples (filled.py). Times are of the store alone, in this process; the
ingest is the whole command, and counts as the least of five turns. The last line is for machines.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from filled import ROOT, SAMPLES, ready

from triage.store import Store, care
from triage.store.search import Filter

ROUNDS = 5


def slowest(ask: Callable[[], object]) -> float:
    """Milliseconds of the median of ROUNDS turns."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        ask()
        times.append((time.perf_counter() - started) * 1000)
    return sorted(times)[ROUNDS // 2]


def questions(store: Store) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """(group, what, how)."""
    some = next(item for item in reversed(store.search.listed(limit=1000)) if item.hosts)
    deep = store.search.cursor(some)
    now = time.time()
    for what, wanted in (
        ("the latest", Filter()),
        ("of a verdict", Filter(verdict="unknown")),
        ("of a signature", Filter(signature="data.worker-killed")),
        ("of a host", Filter(host=some.hosts[0])),
        ("of a rank", Filter(rank=1)),
        ("of a week", Filter(since=now - 7 * 86_400)),
        ("of a job", Filter(job="run-99")),
        ("of a cluster", Filter(cluster=next((c.id for c in store.clusters.listed(limit=1)), "u-000000"))),
        ("with a rare word", Filter(text=some.job_name)),
        ("with a common word", Filter(text="RuntimeError")),
    ):
        yield "list", what, lambda wanted=wanted: store.search.listed(wanted)
    yield "list", "a later page", lambda: store.search.listed(after=deep)
    for what, words in (
        ("a common word", "worker killed"),
        ("rare words", f"{some.job_name}"),
        ("words of no one place", "zebra RuntimeError quota"),
    ):
        yield "search", what, lambda words=words: store.search.text(words)
    yield "show", "an incident", lambda: store.incidents.get(some.id)
    yield "similar", "an incident", lambda: store.search.similar(some.id)
    yield "stats", "all of it", lambda: store.search.sums()
    yield "clusters", "by what matters", lambda: store.clusters.listed()


def wall(*arguments: object) -> float:
    """Seconds of a command."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "triage", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, "TRIAGE_STORE": "off"})
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--incidents", type=int, default=100_000)
    args = parser.parse_args()
    path = ready(args.incidents)
    worst: dict[str, float] = {}
    with Store.open(path) as store:
        print(
            f"{store.search.count()} incidents, {path.stat().st_size / 1e6:.0f} MB, {path.stat().st_size / args.incidents:.0f} bytes each"
        )
        for group, what, ask in questions(store):
            taken = slowest(ask)
            worst[group] = max(worst.get(group, 0.0), taken)
            print(f"  {group:<9} {what:<22} {taken:8.1f} ms")
        print(f"  {'check':<9} {'the whole file':<22} {slowest_once(lambda: care.check(store.connections)):8.1f} ms")
    job = ROOT / "samples" / "jobs" / SAMPLES[0] / "job"
    turns = [(wall("ingest", job, "--store", path), wall("ingest", job, "--no-store")) for _ in range(ROUNDS)]
    stored, plain = (min(turn[side] for turn in turns) for side in (0, 1))
    print(f"  ingest of a small job: {stored:.2f} s with the store, {plain:.2f} s without")
    keys = {"store_mb": path.stat().st_size / 1e6, "ingest_small_s": stored, "ingest_store_ratio": stored / plain}
    print(
        "BENCH",
        *(f"store_{group}_ms={value:.0f}" for group, value in worst.items()),
        *(f"{name}={value:.2f}" for name, value in keys.items()),
    )


def slowest_once(ask: Callable[[], object]) -> float:
    """Milliseconds of one turn."""
    started = time.perf_counter()
    ask()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
