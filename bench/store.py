"""Measure the store with 100,000 incidents: list, search, show, the size of the file, and the ingest of a small job.

The incidents are variations of the recorded samples (filled.py). Times are of the store alone, in this process; the
ingest is the whole command with and without the store, and counts as the fastest of five runs. The last line is for
machines.
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

from filled import ROOT, SAMPLES, prepare_store

from triage.store import Store, maintenance
from triage.store.search import Filter

ROUNDS = 5


def median_ms(query: Callable[[], object]) -> float:
    """Return the median time of ROUNDS runs in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        query()
        times.append((time.perf_counter() - started) * 1000)
    return sorted(times)[ROUNDS // 2]


def queries(store: Store) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield (group, label, query)."""
    some = next(item for item in reversed(store.search.list_incidents(limit=1000)) if item.hosts)
    deep = store.search.cursor_after(some)
    now = time.time()
    for what, filter_ in (
        ("the latest", Filter()),
        ("of a verdict", Filter(verdict="unknown")),
        ("of a signature", Filter(signature="data.worker-killed")),
        ("of a host", Filter(host=some.hosts[0])),
        ("of a rank", Filter(rank=1)),
        ("of a week", Filter(since=now - 7 * 86_400)),
        ("of a job", Filter(job="run-99")),
        ("of a cluster", Filter(cluster=next((c.id for c in store.clusters.list_clusters(limit=1)), "u-000000"))),
        ("with a rare word", Filter(text=some.job_name)),
        ("with a common word", Filter(text="RuntimeError")),
    ):
        yield "list", what, lambda filter_=filter_: store.search.list_incidents(filter_)
    yield "list", "a later page", lambda: store.search.list_incidents(after=deep)
    for what, query_text in (
        ("a common word", "worker killed"),
        ("rare words", f"{some.job_name}"),
        ("words that never occur together", "zebra RuntimeError quota"),
    ):
        yield "search", what, lambda query_text=query_text: store.search.search_text(query_text)
    yield "show", "an incident", lambda: store.incidents.get(some.id)
    yield "similar", "an incident", lambda: store.search.find_similar(some.id)
    yield "stats", "all incidents", lambda: store.search.compute_stats()
    yield "clusters", "by importance", lambda: store.clusters.list_clusters()


def command_seconds(*arguments: object) -> float:
    """Return the seconds that a command takes."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "triage", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, "TRIAGE_STORE": "off"})
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--incidents", type=int, default=100_000)
    args = parser.parse_args()
    path = prepare_store(args.incidents)
    worst: dict[str, float] = {}
    with Store.open(path) as store:
        print(
            f"{store.search.count_incidents()} incidents, {path.stat().st_size / 1e6:.0f} MB, "
            f"{path.stat().st_size / args.incidents:.0f} bytes each"
        )
        for group, what, query in queries(store):
            taken = median_ms(query)
            worst[group] = max(worst.get(group, 0.0), taken)
            print(f"  {group:<9} {what:<22} {taken:8.1f} ms")
        check_ms = time_ms(lambda: maintenance.check_store(store.connections))
        print(f"  {'check':<9} {'the whole file':<22} {check_ms:8.1f} ms")
    job = ROOT / "samples" / "jobs" / SAMPLES[0] / "job"
    turns = [
        (
            command_seconds("ingest", job, "--exact", "--store", path),
            command_seconds("ingest", job, "--exact", "--no-store"),
        )
        for _ in range(ROUNDS)
    ]
    stored, plain = (min(turn[side] for turn in turns) for side in (0, 1))
    print(f"  ingest of a small job: {stored:.2f} s with the store, {plain:.2f} s without")
    keys = {"store_mb": path.stat().st_size / 1e6, "ingest_small_s": stored, "ingest_store_ratio": stored / plain}
    print(
        "BENCH",
        *(f"store_{group}_ms={value:.0f}" for group, value in worst.items()),
        *(f"{name}={value:.2f}" for name, value in keys.items()),
    )


def time_ms(query: Callable[[], object]) -> float:
    """Return the time of one run in milliseconds."""
    started = time.perf_counter()
    query()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
