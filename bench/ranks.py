"""Measure `triage ingest` on a job of many ranks, each a file with 300 steps and some 25 lines of failure.

One rank runs out of memory, all others time out, their sockets close, and they abort. `growth` compares the seconds per
rank at the two sizes: 1.0 means that twice the ranks take twice as long. The last line is for machines.

With `--hang`, each rank writes only what its watchdog prints: all wait in groups of eight or in the default group, for
one rank that enqueued less.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memory import PeakMemory

SIZES = (500, 2_000)
STEPS = 300
ECHOES = 4
GUILTY = 3
GROUP = 8
Lines = Callable[[int, int, random.Random], list[str]]


def log_lines(rank: int, ranks: int, draw: random.Random) -> list[str]:
    """Return the log of one rank."""
    tag, nccl_prefix = f"[rank{rank}]:", f"node{rank // 8}:{1000 + rank}:{2000 + rank} [{rank % 8}]"
    output = [
        f"{nccl_prefix} NCCL INFO comm 0x55 rank {rank} nranks {ranks} cudaDev {rank % 8} nvmlDev {rank % 8} busId "
        f"{rank % 8:x}000 commId 0xabc - Init COMPLETE"
    ]
    output += [
        f"{tag} 2026-11-20 10:{step // 60:02d}:{step % 60:02d},123 - INFO - iteration {step}/ 10000 | elapsed time "
        "per iteration (ms): "
        f"{draw.random() * 1000:.1f} | loss: 2.{step:04d} | grad norm: 1.{draw.randrange(999)} | tokens per sec 15123"
        for step in range(STEPS)
    ]
    trace = [
        f"{tag} Traceback (most recent call last):",
        f'{tag}   File "/w/train.py", line 88, in <module>',
        f"{tag}     loss.backward()",
    ]
    if rank == GUILTY:
        return [
            *output,
            *trace,
            f"{tag} torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total "
            "capacity of 79.15 GiB of which 2.00 MiB is free.",
        ]
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    for second in range(ECHOES):
        stamp = f"{tag}[E1120 10:15:{second:02d}.123456789 ProcessGroupNCCL.cpp:"
        output += [
            f"{stamp}632] {group} Watchdog caught collective operation timeout: WorkNCCL(SeqNum={STEPS}, "
            "OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600012 milliseconds "
            "before timing out.",
            f"{stamp}1785] {group} Exception (either an error or timeout) detected by watchdog at work: {STEPS}, "
            f"last enqueued NCCL work: {STEPS}, last completed NCCL work: {STEPS - 1}.",
            f"{stamp}1834] {group} Timeout at NCCL work: {STEPS}, last enqueued NCCL work: {STEPS}, last completed "
            f"NCCL work: {STEPS - 1}.",
            f"{nccl_prefix} NCCL WARN socketProgress: Connection closed by remote peer node0<50000>",
            f"{nccl_prefix} NCCL INFO transport/net_socket.cc:490 -> 6",
        ]  # fmt: skip
    return [
        *output,
        *trace,
        f"{tag} torch.distributed.DistBackendError: NCCL communicator was aborted on rank {rank}.",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        "Fatal Python error: Aborted",
    ]


def watchdog_lines(rank: int, ranks: int, draw: random.Random) -> list[str]:
    """Return what the watchdog of a rank of a job that hangs writes."""
    tag = f"[rank{rank}]:[E1120 10:15:00.123456789 ProcessGroupNCCL.cpp:"
    head = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    if rank == GUILTY:
        state = f"Last enqueued NCCL work: {STEPS - 1}, last completed NCCL work: {STEPS - 1}."
        return [
            f"{tag}1682] {head} Received a dump signal due to a collective timeout from  rank 0 and we will. {state}"
        ]
    if rank // GROUP == GUILTY // GROUP:
        head = f"[PG ID 1 PG GUID {rank // GROUP + 1}(tp) Rank {rank % GROUP}]"
    work = f"WorkNCCL(SeqNum={STEPS}, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000)"
    state = f"PG status: last enqueued work: {STEPS}, last completed work: {STEPS - 1}"
    ended = f"Watchdog caught collective operation timeout: {work} ran for 600012 milliseconds before timing out."
    return [
        f"{tag}632] [Rank {rank}] {ended}",
        f"{tag}2271] {head}  failure detected by watchdog at work sequence id: {STEPS} {state}",
        f"{tag}681] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
        "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        f"{tag}695] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.",
        f"{tag}1902] {head} Process group watchdog thread terminated with exception: [Rank {rank}] {ended}",
    ]


def write_logs(directory: Path, ranks: int, lines: Lines) -> int:
    """Write the job's files; return their bytes."""
    draw, size = random.Random(1), 0
    for rank in range(ranks):
        size += (directory / f"rank_{rank}.log").write_text("\n".join(lines(rank, ranks, draw)) + "\n")
    return size


def measure(ranks: int, lines: Lines) -> tuple[float, float]:
    """Return wall seconds and peak memory in MB of one diagnosis, which must name the rank."""
    directory = Path(tempfile.mkdtemp())
    try:
        size = write_logs(directory, ranks, lines)
        start = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "triage",
            "ingest",
            str(directory),
            "--exact",
            "--format",
            "json",
            "--no-store",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        with PeakMemory(process, 0.2) as memory:
            report = json.load(process.stdout) if process.stdout else {}
            status = process.wait()
            wall = time.perf_counter() - start
    finally:
        shutil.rmtree(directory)
    if status or report["root_cause"]["ranks"] != [GUILTY]:
        sys.exit(f"bench: the root cause of {ranks} ranks was not found")
    print(
        f"{ranks:6d} ranks, {size / 1e6:4.0f} MB: {wall:6.2f} s, {memory.peak:5.0f} MB, {wall / ranks * 1e3:.1f} ms "
        "a rank",
        flush=True,
    )
    return wall, memory.peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=SIZES)
    parser.add_argument("--hang", action="store_true")
    options = parser.parse_args()
    sizes = sorted(options.ranks)
    walls = {ranks: measure(ranks, watchdog_lines if options.hang else log_lines) for ranks in sizes}
    first, (last, peak) = walls[sizes[0]][0], walls[sizes[-1]]
    print(
        f"BENCH ranks={sizes[-1]} ranks_s={last:.1f} ranks_mb={peak:.0f} "
        f"ranks_growth={last / sizes[-1] / (first / sizes[0]):.2f}"
    )


if __name__ == "__main__":
    main()
