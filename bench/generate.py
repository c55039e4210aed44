"""Write realistic logs of a 64-rank job on 8 nodes, deterministically: `python bench/generate.py DIR --gib 1`.

The lines are what such jobs print: Megatron and logging step lines behind torchrun's prefix, NCCL INFO, tqdm bars with
carriage returns, some warnings. One line in 2,000 belongs to a failure. Rank 37 runs out of memory and all others time
out. `--storm` writes a file in which 30 % of the lines belong to failures.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

RANKS, PER_NODE = 64, 8
GUILTY = 37
START = 1_795_230_000


def stamp(second: float) -> str:
    """Return `2026-11-21 03:07:45,372` for seconds of the job."""
    whole = START + int(second)
    return f"2026-11-21 {whole // 3600 % 24:02}:{whole // 60 % 60:02}:{whole % 60:02},{int(second * 1000) % 1000:03}"


def healthy_line(rng: random.Random, rank: int, step: int) -> str:
    """Return one ordinary line of a rank."""
    local, host = rank % PER_NODE, f"node{rank // PER_NODE}"
    draw = rng.random()
    if draw < 0.55:
        return (
            f"[default{local}]:{stamp(step * 0.7)} [rank{rank}] INFO trainer: iteration {step:8d}/  500000 | "
            f"consumed samples: {step * 1024:12d} | "
            f"elapsed time per iteration (ms): {700 + rng.random() * 20:.1f} | learning rate: "
            f"{3e-4 * rng.random():.6E} | lm loss: {2 + rng.random():.6E} | grad norm: {rng.random():.3f}\n"
        )
    if draw < 0.75:
        return (
            f"[default{local}]:{host}:{4100 + local}:{5200 + local} [{local}] NCCL INFO Channel "
            f"{rng.randrange(32):02d}/0 : {rank}[{local}] -> {(rank + 1) % RANKS}[{(local + 1) % 8}] via "
            "P2P/CUMEM/read\n"
        )
    if draw < 0.85:
        bars = "".join(
            f"\rEpoch 1: {k}%|{'#' * (k // 10):<10}| {step + k}/500000 [02:1{k % 10}<1:22:03, 9.8it/s, loss=2.{k:03}]"
            for k in range(3)
        )
        return f"[default{local}]:{bars}\n"
    if draw < 0.97:
        return (
            f"[default{local}]:step {step} rank {rank} tokens/s {rng.randrange(3000, 4000)} mem "
            f"{rng.random() * 80:.2f}GB mfu {rng.random():.3f} data {rng.random():.4f}s\n"
        )
    return (
        f"[default{local}]:{stamp(step * 0.7)} [rank{rank}] WARNING data: sample {rng.randrange(10**7)} "
        "truncated to 4096 tokens\n"
    )


def failure_line(rng: random.Random, rank: int, step: int) -> str:
    """Return one line of a failing (or complaining) rank."""
    local, host = rank % PER_NODE, f"node{rank // PER_NODE}"
    lines = (
        f"{host}:{4100 + local}:{5200 + local} [{local}] NCCL INFO misc/socket.cc:47 -> 2\n",
        f"{host}:{4100 + local}:{5200 + local} [{local}] net_ib.cc:123 NCCL WARN NET/IB: Got completion from peer "
        f"10.0.{rank}.7<4791> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::{rank} hca "
        f"mlx5_{local}\n",
        f"[rank{rank}]:[E1121 03:07:45.372001001 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum={step}, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, "
        "Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n",
        f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: "
        "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, remote process exited or there was a network "
        "error, NCCL version 2.21.5\n",
        f"[rank{rank}]:[W1121 03:07:45.372001001 socket.cpp:469] [c10d] waitForInput: poll for socket "
        "SocketImpl(fd=12, addr=[node0]:33350, remote=[node0]:29500) returned 0, likely a timeout\n",
    )
    return f"[default{local}]:" + rng.choice(lines)


def final_lines(rank: int, step: int) -> Iterator[str]:
    """Yield the last lines of a rank."""
    local = rank % PER_NODE
    prefix = f"[default{local}]:[rank{rank}]: "
    if rank == GUILTY:
        yield f"{prefix}Traceback (most recent call last):\n"
        yield f'{prefix}  File "/workspace/train.py", line 88, in <module>\n'
        yield f"{prefix}    loss.backward()\n"
        yield (
            f"{prefix}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {local} has a "
            "total capacity of 79.15 GiB of which 1.20 GiB is free.\n"
        )
        return
    pg = f"[default{local}]:[rank{rank}]:[E1121 03:27:45.372001001 ProcessGroupNCCL.cpp"
    yield (
        f"{pg}:616] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={step}, "
        "OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600012 milliseconds before "
        "timing out.\n"
    )
    yield (
        f"{pg}:1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception (either an error or timeout) detected "
        f"by watchdog at work: {step}, last enqueued NCCL work: {step}, last completed NCCL work: {step - 1}.\n"
    )
    yield (
        f"{pg}:630] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature "
        "of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
    )
    yield f"{pg}:636] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.\n"


def write_node(path: Path, node: int, size: int, share: float) -> None:
    """Write the console of one node: eight ranks in turn until `size` bytes, then their last lines."""
    rng = random.Random(node)
    ranks = [node * PER_NODE + local for local in range(PER_NODE)]
    written, step = 0, 0
    with path.open("w") as file:
        while written < size:
            step += 1
            lines = []
            for rank in ranks:
                lines += [
                    failure_line(rng, rank, step) if rng.random() < share else healthy_line(rng, rank, step)
                    for _ in range(4)
                ]
            text = "".join(lines)
            file.write(text)
            written += len(text)
        for rank in ranks:
            file.writelines(final_lines(rank, step))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--gib", type=float, default=1.0, help="size of all files together")
    parser.add_argument(
        "--storm", action="store_true", help="one file with 30 %% failure lines instead of eight with 0.05 %%"
    )
    args = parser.parse_args()
    args.directory.mkdir(parents=True, exist_ok=True)
    size = int(args.gib * (1 << 30))
    if args.storm:
        write_node(args.directory / "node0.log", 0, size, 0.30)
        return
    for node in range(RANKS // PER_NODE):
        write_node(args.directory / f"node{node}.log", node, size // (RANKS // PER_NODE), 0.0005)


if __name__ == "__main__":
    main()
