"""Measure the clusters of a store with many unknown failures: one assignment, the list of clusters, the inbox.

Failures are drawn from classes of random words, few of which are common, and all have one guard, which is the worst
case: a new key is compared with all of its guard. Times are of this process; the last line is for machines.

    python bench/cluster_store.py [--failures 100000] [--classes 5000]
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import table  # noqa: E402

import triage  # noqa: E402
from triage.model import Diagnosis, Finding  # noqa: E402
from triage.store import Store  # noqa: E402

VOCABULARY, TERMS, BATCH = 3000, 6, 1000


def draw_failures(count: int, classes: int, finding: Finding) -> Iterator[Finding]:
    """Yield unknown failures of random classes; of the classes, the first are drawn most."""
    rng = random.Random(7)
    vocabulary = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randrange(4, 10))) for _ in range(VOCABULARY)]
    sentences = [" ".join(rng.sample(vocabulary, TERMS)) for _ in range(classes)]
    for number in range(count):
        sentence = sentences[
            min(int(rng.paretovariate(0.5)) - 1, classes - 1) if number % 4 else rng.randrange(classes)
        ]
        fact = dataclasses.replace(finding.evidence[0], text=f"RuntimeError: {sentence} {number}", fields={})
        yield dataclasses.replace(finding, evidence=(fact,))


def assign_all(store: Store, diagnosis: Diagnosis, failures: Iterator[Finding]) -> list[float]:
    """Assign all failures; return the processor seconds of each, transactions of BATCH aside."""
    times: list[float] = []
    batch: list[Finding] = []
    stored = store.incidents.add(diagnosis).id
    for finding in failures:
        batch.append(finding)
        if len(batch) == BATCH:
            with store.connections.write() as db:
                for one in batch:
                    started = time.process_time()
                    store.clusters.assign(db, one, stored, diagnosis, time.time(), count=True)
                    times.append(time.process_time() - started)
            batch.clear()
    return times


def timed_ms(query: object) -> float:
    """Return the best of five runs in milliseconds of processor time."""
    runs = []
    for _ in range(5):
        started = time.process_time()
        query()  # type: ignore[operator]
        runs.append(1000 * (time.process_time() - started))
    return min(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=5_000)
    args = parser.parse_args()
    diagnosis = triage.ingest(ROOT / "samples" / "jobs" / "exception_one_rank_tee" / "job")
    finding = diagnosis.root_cause
    if finding is None:
        raise SystemExit("the sample has no root cause")
    finding = dataclasses.replace(finding, signature=None, cluster="u-000001")
    with tempfile.TemporaryDirectory() as scratch, Store.open(Path(scratch) / "triage.db") as store:
        times = assign_all(store, diagnosis, draw_failures(args.failures, args.classes, finding))
        last = sorted(times[-len(times) // 10 :])
        mean, most = 1000 * sum(last) / len(last), 1000 * last[len(last) * 99 // 100]
        listed = timed_ms(lambda: store.clusters.list_clusters(limit=50))
        inbox = timed_ms(lambda: store.clusters.list_clusters(states=("open",), limit=200))
        keys = len(store.clusters.list_keys())
    rows = [(f"{len(times):,}", f"{keys:,}", *(f"{value:.2f} ms" for value in (mean, most, listed, inbox)))]
    print(table.as_markdown(("failures", "keys", "assignment", "99 % under", "50 clusters", "200 clusters"), rows))
    print(f"BENCH assign_ms={mean:.3f} assign_p99_ms={most:.3f} clusters_ms={listed:.1f} inbox_ms={inbox:.1f}")


if __name__ == "__main__":
    main()
