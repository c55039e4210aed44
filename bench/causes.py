"""Measure the list of causes over many incidents: `python bench/causes.py --count 1000000 --causes 300`.

Writes a scratch store of rows of jobs and incidents without reports: the sums by cause need no more. Two thirds of the
causes are signatures, the others clusters. Prints the median and the longest of 20 calls of each list, in milliseconds,
and of the pages as a browser gets them, without the cache of responses.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from triage.store import Store  # noqa: E402
from triage.store.causes import CauseFilter  # noqa: E402

CALLS = 20
BATCH = 10_000
DAY = 86_400
HOSTS, JOBS = 2000, 5000
_INCIDENT = (
    *("id", "job", "verdict", "title", "signature", "key", "domain", "severity", "confidence", "ranks", "hosts", "at"),
    *("stored_at", "seen_at", "seen", "tool_version", "catalog_version", "digest"),
)


def fill_store(store: Store, count: int, causes: int, days: int = 365) -> None:
    """Store incidents of some causes: few are frequent and most are rare, as in a cluster of a year."""
    chance, now = random.Random(7), time.time()
    with store.connections.write() as db:
        for number in range(0, causes, 3):
            cluster = f"u-{number:06x}"
            row = (cluster, "open", f"ValueError: shard {number} is torn", now - days * DAY)
            db.execute("INSERT INTO cluster (id, state, title, created_at) VALUES (?, ?, ?, ?)", row)
            db.execute(
                "INSERT INTO cluster_key (key, version, cluster, guard, headline, anchored, why, trail, created_at) "
                "VALUES (?, 1, ?, '', '', 1, 'new', '[]', ?)",
                (f"k{number}", cluster, now),
            )
    weights = [1 / (1 + number) ** 0.8 for number in range(causes)]
    for begin in range(0, count, BATCH):
        roots = chance.choices(range(causes), weights, k=min(BATCH, count - begin))
        rows = list(_rows(begin, roots, chance, now, days))
        with store.connections.write() as db:
            db.executemany("INSERT INTO job VALUES (?, ?, ?, 8, NULL, NULL, '{}')", [row[0] for row in rows])
            marks = ", ".join("?" * len(_INCIDENT))
            db.executemany(f"INSERT INTO incident ({', '.join(_INCIDENT)}) VALUES ({marks})", [row[1] for row in rows])


def _rows(
    begin: int, roots: list[int], chance: random.Random, now: float, days: int
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    for number, root in enumerate(roots, begin):
        at, job = now - chance.random() * days * DAY, f"j-{number:012x}"
        name = f"train-{chance.randrange(JOBS)}"
        is_known = root % 3 != 0
        yield (
            (job, name, f"/jobs/{name}/{number}"),
            (
                *(f"i-{number:012x}", job, "known" if is_known else "unknown", f"Failure {root}"),
                *(f"bench.failure-{root}" if is_known else None, None if is_known else f"k{root}", "bench", "fatal"),
                *(0.9, "[1]", json.dumps([f"node{chance.randrange(HOSTS):04d}"]), at, at, at, 1, "1", "1", ""),
            ),
        )


def measure(name: str, call: Callable[[], object]) -> None:
    """Print the median and the longest time of some calls."""
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - begin))
    print(f"{name}: median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms", flush=True)


def measure_pages(store: Store) -> None:
    """Measure the first page and the page of the most frequent cause; a new query each time passes the cache by."""
    from starlette.testclient import TestClient

    from triage.service.app import create_app
    from triage.settings import Settings
    from triage.settings.sections import WebSettings

    web = WebSettings(requests_a_minute=100_000, log_requests=False)
    client, numbers = TestClient(create_app(Settings(web=web), store)), itertools.count()
    client.base_url = "http://127.0.0.1"
    for name, address in (
        ("first page", "/causes"),
        ("page of a cause", "/causes/bench.failure-1"),
        ("page of a cluster", "/causes/u-000000"),
        ("list of incidents", "/incidents"),
    ):

        def get(address: str = address) -> None:
            answer = client.get(f"{address}?number={next(numbers)}", headers={"Accept": "text/html"})
            assert answer.status_code == 200, answer.text

        measure(name, get)


def main() -> None:
    """Fill a scratch store, or the empty one at --store, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--causes", type=int, default=300)
    parser.add_argument("--store", help="an empty store; by default a file in a scratch directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, Store.open(options.store or Path(scratch) / "triage.db") as store:
        begin = time.perf_counter()
        fill_store(store, options.count, options.causes)
        print(f"{options.count / (time.perf_counter() - begin):.0f} incidents/s stored with their sums", flush=True)
        measure("causes of this week", store.causes.list_causes)
        measure("causes of one host", lambda: store.causes.list_causes(CauseFilter(host="node0007")))
        measure("one cause", lambda: store.causes.get("bench.failure-1"))
        measure_pages(store)


if __name__ == "__main__":
    main()
