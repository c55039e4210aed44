"""Measure the reasoning: ranks × 20 facts each, from facts to the diagnosis, after the scan.

Each size runs in a process of its own, three times in turns; the least wall time counts. `growth` compares 10,000 ranks
with 1,000: 1.0 means that the time grows as n log n.
"""

from __future__ import annotations

import argparse
import gc
import math
import subprocess
import sys
import time

from triage.model.details import ExitDetail
from triage.model.evidence import Evidence, Origin

SIZES = (100, 1_000, 10_000)
ROUNDS = 3
PER_RANK = 20
PER_HOST = 8


def make_facts(ranks: int) -> list[Evidence]:
    """Return twenty facts per rank: a watchdog's timeout with all that follows from it, and one rank that lags."""
    facts = []
    for rank in range(ranks):
        host, source = f"node{rank // PER_HOST}", f"out/rank{rank}.log"
        enqueued = 810 if rank == ranks // 3 else 812
        head = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
        work = f"WorkNCCL(SeqNum={enqueued}, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000)"
        texts = [
            (
                "c10d",
                f"{head} Watchdog caught collective operation timeout: {work} ran for 600041 milliseconds "
                f"before timing out.",
            ),
            (
                "c10d",
                f"{head}  failure detected by watchdog at work sequence id: {enqueued} PG status: last "
                f"enqueued work: {enqueued}, last completed work: 809",
            ),
            (
                "c10d",
                f"{head} Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels",
            ),
            ("c10d", f"{head} To avoid data inconsistency, we are taking the entire process down."),
            ("c10d", f"{head} Observed flight recorder dump signal from another rank via TCPStore."),
            ("NCCL", f"NCCL WARN socketProgress: Connection closed by remote peer {host}<{40000 + rank % 20000}>"),
            (
                "c10d",
                f"[c10d] recvValue failed on SocketImpl(fd=66, addr=[{host}]:{30000 + rank % 9000}, "
                f"remote=[node0]:29500): Connection reset by peer",
            ),
            *(
                ("c10d", f"{head} To avoid data inconsistency, we are taking the entire process down. ({number})")
                for number in range(12)
            ),
        ]
        for number, (component, text) in enumerate(texts):
            origin = Origin(rank=rank, host=host, time=1_772_600_400.0 + number)
            facts.append(
                Evidence("message", component, text, origin, source, 200 * number, 200 * number + 150, {}, text)
            )
        table = Origin(rank=rank, local_rank=rank % PER_HOST, host=host, pid=4000 + rank, time=1_772_600_500.0)
        facts.append(
            Evidence(
                "exit",
                "launcher",
                "exitcode -6 (SIGABRT)",
                table,
                f"{host}.log",
                500 * rank,
                500 * rank + 400,
                {"exitcode": "-6", "signal": "SIGABRT", "pid": str(4000 + rank)},
                detail=ExitDetail(-6, "SIGABRT"),
            )
        )
    return facts


def measure(ranks: int) -> tuple[float, float]:
    """Return wall seconds and peak memory in MB of one diagnosis with its report, without starting Python and loading
    the catalog.
    """
    from triage.catalog.load import load
    from triage.diagnose import diagnose, rank_states, report
    from triage.pipeline import summary
    from triage.ranks.identity import JobMap
    from triage.records.activity import Activity

    catalog = load()
    evidence = make_facts(ranks)
    assert len(evidence) == ranks * PER_RANK
    job = JobMap()
    job.sizes.add(ranks)
    for fact in evidence:
        job.learn(fact.source, fact.origin)
    activities = [
        (
            f"out/rank{rank}.log",
            Activity(Origin(rank=rank, host=f"node{rank // PER_HOST}", time=1_772_600_000.0), 10, "", 40, False),
        )
        for rank in range(ranks)
    ]
    gc.disable()  # as `triage ingest` does
    start = time.perf_counter()
    result = diagnose(evidence, activities, job, catalog)
    _, root = report.decide_verdict(result)
    report.build_findings(result)
    report.build_moments(result)
    rank_states.infer_rank_states(result, job)
    seconds = time.perf_counter() - start
    if root is None or (root.signature, root.ranks) != ("torch.lagging-rank", (ranks // 3,)):
        sys.exit(
            f"bench: the diagnosis of {ranks} ranks is wrong: {root and (root.signature, root.ranks[:9], root.why)}"
        )
    return seconds, summary.peak_memory() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, help="measure this many ranks once, in this process")
    args = parser.parse_args()
    if args.ranks:
        seconds, memory = measure(args.ranks)
        print(f"{seconds} {memory}")
        return
    best: dict[int, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for size in SIZES:
            output = subprocess.run(
                [sys.executable, __file__, "--ranks", str(size)], check=True, stdout=subprocess.PIPE, text=True
            ).stdout.split()
            seconds, memory = float(output[0]), float(output[1])
            known = best.get(size, (seconds, memory))
            best[size] = (min(known[0], seconds), max(known[1], memory))
    for size, (seconds, memory) in best.items():
        print(f"{size:6} ranks x {PER_RANK}: {seconds:6.2f} s  {memory:5.0f} MB")
    small, large = best[SIZES[1]][0], best[SIZES[2]][0]
    growth = (large / small) / (SIZES[2] * math.log(SIZES[2]) / (SIZES[1] * math.log(SIZES[1])))
    print(f"BENCH diagnose_seconds={large:.2f} diagnose_mb={best[SIZES[2]][1]:.0f} diagnose_growth={growth:.2f}")


if __name__ == "__main__":
    main()
