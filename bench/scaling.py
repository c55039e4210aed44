"""Measure a Dask cluster of two workers of this machine beside local processes, and jobs of very many ranks.

    python bench/scaling.py cluster [mib=1024] [rounds=3]    the same files, in turns; then a worker is killed
    python bench/scaling.py ranks [count=20000]              a file for each rank, by the cluster
    python bench/scaling.py lines [counts=5000,100000]       one line a rank, in eight files, and all formats

Reports must be equal. The load of the machine is printed with each result.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from ranks import GUILTY, log_lines, write_logs  # noqa: E402
from remote import build, run  # noqa: E402

INGEST = """
import gc, hashlib, json, os, signal, sys, threading, time
from dataclasses import replace
from triage import pipeline
from triage.model.diagnosis import Stats
from triage.render import json as report
address, path = sys.argv[1:3]
pid, delay = int(sys.argv[3]), float(sys.argv[4])
def ingest(options):
    if pid:
        threading.Timer(delay, os.kill, (pid, signal.SIGKILL)).start()
    began = time.monotonic()
    diagnosis = pipeline.ingest([path], options)
    took = time.monotonic() - began
    digest = hashlib.sha256(report.render(replace(diagnosis, stats=Stats())).encode()).hexdigest()
    ranks = diagnosis.root_cause.ranks if diagnosis.root_cause else ()
    print(json.dumps([took, diagnosis.stats.peak_memory_bytes >> 20, digest, ranks]))
gc.disable()  # as `triage ingest` does
if address == "-":
    ingest(pipeline.Options(fork=True))
else:
    from triage.base.dask_cluster import dask_workers
    with dask_workers(address) as workers:
        ingest(pipeline.Options(cluster=workers))
"""


def show(what: str, took: float, memory: int, *more: Any) -> None:
    """Print one result with the load of the machine."""
    print(f"{what}: {took:.1f} s, {memory} MiB here, load {os.getloadavg()[0]:.1f}", *more, flush=True)


def compare_with_cluster(directory: Path, cluster: Any, options: dict[str, str]) -> dict[str, Any]:
    """Diagnose the same files by local processes and by the cluster, in turns, and kill a worker in the middle."""
    build(directory, 8, int(options.get("mib", "1024")) * (1 << 17))
    times: dict[str, list[float]] = {"-": [], cluster.scheduler_address: []}
    digests = set()
    for number in range(int(options.get("rounds", "3")) + 1):
        for address, values in times.items():
            took, memory, digest, _ = run(INGEST, address, str(directory), "0", "0")
            digests.add(digest)
            if number:  # the first of each warms caches
                values.append(took)
                show("local processes" if address == "-" else "two workers of Dask", took, memory)
    local, remote = map(min, times.values())
    pids = [nanny.pid for nanny in cluster.workers.values()]
    took, memory, digest, _ = run(INGEST, cluster.scheduler_address, str(directory), str(pids[0]), str(remote / 2))
    show("a worker killed in the middle", took, memory)
    return {"dask_vs_local": round(remote / local, 2), "same": {*digests, digest} == digests and len(digests) == 1}


def measure_ranks(directory: Path, cluster: Any, options: dict[str, str]) -> dict[str, Any]:
    """Diagnose a job with a file for each of very many ranks by the cluster."""
    count = int(options.get("count", "20000"))
    size = write_logs(directory, count, log_lines)
    took, memory, _, ranks = run(INGEST, cluster.scheduler_address, str(directory), "0", "0")
    show(f"{count} ranks, {size >> 20} MiB, two workers", took, memory, "ranks", ranks)
    return {"ranks_s": round(took, 1), "ranks_mb": memory, "right": ranks == [GUILTY]}


def measure_lines(directory: Path, options: dict[str, str]) -> dict[str, Any]:
    """Diagnose jobs of one line a rank, and write each format; seconds per rank must not grow."""
    from triage import pipeline
    from triage.render import render

    per_rank = []
    for count in map(int, options.get("counts", "5000,20000,100000").split(",")):
        place = directory / str(count)
        place.mkdir()
        for file in range(8):
            lines = (
                f"[rank{rank}]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank {rank}.\n"
                if rank != GUILTY
                else f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n"
                for rank in range(file, count, 8)
            )
            (place / f"node{file}.log").write_text("".join(lines))
        began = time.monotonic()
        diagnosis = pipeline.ingest([str(place)], pipeline.Options(fork=True))
        took = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        show(f"{count} ranks in eight files", took, peak, dataclasses.astuple(diagnosis.root_cause)[:4])
        per_rank.append(took / count)
        for form in ("text", "json", "html", "markdown"):
            began = time.monotonic()
            size = len(render(diagnosis, form))
            print(f"  {form}: {time.monotonic() - began:.2f} s, {size >> 10} KiB")
    return {"growth": round(per_rank[-1] / per_rank[0], 2)}


def main() -> None:
    """Measure one part, and print its keys."""
    part, options = sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:])
    with tempfile.TemporaryDirectory(dir=options.get("directory")) as name:
        directory = Path(name)
        if part == "lines":
            keys = measure_lines(directory, options)
        else:
            from distributed import LocalCluster

            measure = {"cluster": compare_with_cluster, "ranks": measure_ranks}[part]
            settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
            with LocalCluster(**settings, memory_limit=0, silence_logs=50) as cluster:
                keys = measure(directory, cluster, options)
    print("BENCH " + json.dumps(keys))


if __name__ == "__main__":
    main()
