"""Measure the pages of a support team: the causes of 10,000 and of 1,000,000 stored incidents, in 300 causes.

`triage serve` answers as for a browser. Each page is asked for once right after the start, with nothing of the store in
memory, and then CALLS times; each address is new, so that no cache of answers helps. The processor time is that of the
server. The stores are those of filled.py: a million takes minutes and 7.5 GB. With `--postgres` they are copied into a
server of PostgreSQL first, large ones as 100,000 that are repeated there. The last line is for programs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from filled import BASE, prepare_store  # noqa: E402
from repeated import repeat_incidents  # noqa: E402
from service import PAGE, Server  # noqa: E402

from triage.store import Store, copying  # noqa: E402
from triage.store.causes import CauseFilter  # noqa: E402

CALLS = 20
SIZES = (10_000, 1_000_000)
NAMES = {10_000: "list", 1_000_000: "million"}
FOOT_SECONDS = 5.5  # then the foot of a page, with the last ingest, is computed again
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of the first call, and the median, the longest and the processor time of the later ones."""

    first: float
    median: float
    longest: float
    processor: float


def find_pages(store: str) -> dict[str, str]:
    """Return the addresses that are measured: those of the most frequent signature, cluster and host, too."""
    with Store.open(store) as opened:
        most = [
            opened.causes.list_causes(CauseFilter(kind=kind), order="count", limit=1).causes[0]
            for kind in ("signature", "cluster")
        ]
    return {
        "start page": "/causes",
        "causes of a host": f"/causes?host={most[0].hosts[0]}",
        "page of a signature": f"/causes/{most[0].id}",
        "page of a cluster": f"/causes/{most[1].id}",
        "page of a host": f"/hosts/{most[0].hosts[0]}",
        "list of incidents": "/incidents",
        "incidents of a verdict": "/incidents?verdict=unknown",
    }


def measure_pages(store: str, pages: dict[str, str]) -> Iterator[tuple[str, Timing]]:
    """Yield the times of each page, each on a server that was just started."""
    numbers = itertools.count()
    for name, address in pages.items():
        with tempfile.TemporaryDirectory(prefix="triage-bench-") as scratch:
            server = Server(Path(scratch), store, 1, 0)
            try:
                get(server, "/sign-in", numbers)  # the process is warm, the store is not
                time.sleep(FOOT_SECONDS)
                forget_pages(store)
                first = get(server, address, numbers)
                before = processor_seconds(server.process.pid)
                times = [get(server, address, numbers) for _ in range(CALLS)]
                used = 1000 * (processor_seconds(server.process.pid) - before) / CALLS
            finally:
                server.stop()
        yield name, Timing(first, statistics.median(times), max(times), used)


def get(server: Server, address: str, numbers: Iterator[int]) -> float:
    """Return the milliseconds until a page is there; its address is one that nobody asked for before."""
    mark = "&" if "?" in address else "?"
    url = f"http://127.0.0.1:{server.port}{address}{mark}number={next(numbers)}"
    request = urllib.request.Request(url, headers={"Accept": PAGE})
    begin = time.perf_counter()
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
        answer.read()
    return 1000 * (time.perf_counter() - begin)


def forget_pages(store: str) -> None:
    """Drop what the system keeps of the file in memory; of a database nothing can be dropped."""
    for path in (store, f"{store}-wal") if "://" not in store else ():
        if os.path.exists(path):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and its children so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / _TICK + sum(processor_seconds(int(child)) for child in children)


def main() -> None:
    """Fill the stores and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=SIZES, help="sizes of the stores")
    parser.add_argument("--postgres", action="store_true", help="in PostgreSQL instead of SQLite")
    args = parser.parse_args()
    keys = {}
    for count in args.counts:
        for place in in_postgres(count) if args.postgres else [str(prepare_store(count))]:
            print(f"{count:,} incidents:       first  median  longest  processor time, in ms")
            for name, timing in measure_pages(place, find_pages(place)):
                numbers = (timing.first, timing.median, timing.longest, timing.processor)
                print(f"  {name:<24}" + "".join(f"{number:8.0f}" for number in numbers), flush=True)
                if name == "start page":
                    keys |= {f"causes_{NAMES.get(count, count)}_first_ms": timing.first}
                    keys |= {f"causes_{NAMES.get(count, count)}_ms": timing.median}
                    keys |= {f"causes_{NAMES.get(count, count)}_cpu_ms": timing.processor}
    print("BENCH", *(f"{name}={value:.0f}" for name, value in keys.items()))


def in_postgres(count: int) -> Iterator[str]:
    """Yield the address of a database with so many incidents; it is gone afterwards."""
    from tests.store.postgres_server import PostgresServer, find_programs

    programs = find_programs()
    assert programs is not None, "PostgreSQL is not installed"
    server = PostgresServer(programs)
    try:
        url = server.create_database()
        times = count // BASE if count > BASE and count % BASE == 0 else 1
        with Store.open(prepare_store(count // times)) as source, Store.open(url) as target:
            copying.copy_store(source.connections, target.connections)
            repeat_incidents(target, times)
        server.execute("VACUUM ANALYZE", url.partition("?")[0].rpartition("/")[2])
        yield url
    finally:
        server.close()


if __name__ == "__main__":
    main()
