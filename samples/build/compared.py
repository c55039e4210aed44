"""Write samples/jobs/{env,divergence,memory}_*: jobs that only a comparison of the ranks explains, and some in
which a comparison must find nothing.

    python samples/build/compared.py                # into samples/jobs
    python samples/build/compared.py -o /tmp/jobs

Made up in the formats of real programs; the same script always writes the same bytes. What a CPU can show is
recorded instead.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

START = 1_772_600_400  # 2026-03-04 05:00:00 UTC


@dataclass
class ComparedJob:
    """One job: its files and its truth."""

    verdict: str
    root: Sequence[str]
    ranks: Sequence[int] | None
    world_size: int
    what_happened: str
    files: dict[str, list[str]] = field(default_factory=dict)

    def add_lines(self, name: str, *lines: str) -> None:
        """Append lines to a file."""
        self.files.setdefault(name, []).extend(lines)

    def write(self, target: Path) -> None:
        """Replace the directory `target` by this job."""
        shutil.rmtree(target, ignore_errors=True)
        for name, lines in self.files.items():
            path = target / "job" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes("".join(line + "\n" for line in lines).encode())
        truth = {
            "verdict": self.verdict,
            "root": list(self.root),
            "root_ranks": None if self.ranks is None else list(self.ranks),
            "world_size": self.world_size,
            "what_happened": self.what_happened,
            "layout": "written",
            "torch": None,
        }
        (target / "TRUTH.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in truth.items()))


def format_time(second: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return the time `second` seconds after the start."""
    return time.strftime(form, time.gmtime(START + second))


def watchdog_timeout(rank: int, second: float, sequence: int) -> str:
    """Return the timeout line of torch 2.6 for a collective that did not finish."""
    return (
        f"[rank{rank}]:[E{format_time(second, '%m%d %H:%M:%S')}.000000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
        "Watchdog caught collective operation"
        f" timeout: WorkNCCL(SeqNum={sequence}, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, "
        "Timeout(ms)=600000)"
        f" ran for 600{rank:03d} milliseconds before timing out."
    )


def env_nccl_algo_two_nodes() -> ComparedJob:
    """NCCL logs its settings on every rank; node2 has another algorithm."""
    job = ComparedJob(
        "known",
        ["config.env-mismatch"],
        [4, 5, 6, 7],
        8,
        "NCCL_ALGO is Tree on node2 and Ring on node1: the first all-reduce never ends",
    )
    for rank in range(8):
        host, local, pid = f"node{1 + rank // 4}", rank % 4, 4100 + rank
        name, info = f"{host}.log", f"{host}:{pid}:{pid} [{local}] NCCL INFO"
        job.add_lines(
            name,
            f"{info} NCCL_SOCKET_IFNAME set by environment to eth0",
            f"{info} NCCL_ALGO set by environment to {'Tree' if rank > 3 else 'Ring'}.",
        )
        job.add_lines(
            name,
            f"{host}:{pid}:{pid + 90} [{local}] NCCL INFO comm 0x55d0{rank:04x} rank {rank} nranks 8 cudaDev {local} "
            f"nvmlDev {local} busId {local + 1}b000 commId 0xa1 - Init COMPLETE",
        )
    for rank in range(8):
        job.add_lines(f"node{1 + rank // 4}.log", watchdog_timeout(rank, 620, 1))
    return job


def env_launch_blocking_nccl_2143() -> ComparedJob:
    """Every rank left its environment; the NCCL version is in one log."""
    what = "NCCL 2.14.3 hangs for ever under CUDA_LAUNCH_BLOCKING=1, on all ranks alike"
    job = ComparedJob("known", ["nccl.launch-blocking-hang"], None, 4, what)
    for rank in range(4):
        values = {
            "HOME": "/home/user",
            "HOSTNAME": "node1",
            "LOCAL_RANK": rank,
            "PATH": "/usr/bin:/bin",
            "RANK": rank,
            "WORLD_SIZE": 4,
        }
        values |= {
            "CUDA_LAUNCH_BLOCKING": 1,
            "NCCL_DEBUG": "VERSION",
            "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
        }
        job.add_lines(f"env/rank{rank}.env", *(f"{name}={value}" for name, value in sorted(values.items())))
        if rank == 0:
            job.add_lines("rank0.log", "NCCL version 2.14.3+cuda11.7")
        job.add_lines(
            f"rank{rank}.log",
            f"[rank{rank}] {format_time(2)} model built, 1.1 B parameters",
            watchdog_timeout(rank, 640, 3),
        )
    return job


def env_determinism_npu() -> ComparedJob:
    """One switch of three is on, and the gradient norms drift apart."""
    what = (
        "HCCL_DETERMINISTIC is on, LCCL_DETERMINISTIC and ATB_MATMUL_SHUFFLE_K_ENABLE are not: the norms drift "
        "apart on rank 6"
    )
    job = ComparedJob("known", ["config.determinism-incomplete", "numeric.rank-divergence"], None, 8, what)
    rng = random.Random(6)
    norms = [rng.uniform(0.8, 1.3) for _ in range(120)]
    for rank in range(8):
        name = f"worker{rank // 4}/rank_{rank}.log"
        job.add_lines(
            name,
            "+ export HCCL_DETERMINISTIC=true",
            "+ export HCCL_CONNECT_TIMEOUT=600",
            f"{format_time(1)} [rank {rank}] INFO world_size=8 backend hccl",
        )
        for step in range(1, 121):
            drift = 1 + (step - 70) * 3e-4 if rank == 6 and step > 70 else 1.0
            job.add_lines(
                name,
                f"{format_time(step * 3)} [rank {rank}] INFO step {step} | loss {rng.uniform(2, 3):.6f} | grad norm: "
                f"{norms[step - 1] * drift:.6f}",
            )
    for node in range(2):
        values = {
            "ASCEND_HOME_PATH": "/usr/local/Ascend",
            "HCCL_DETERMINISTIC": "true",
            "HCCL_CONNECT_TIMEOUT": "600",
            "HOME": "/home/user",
        }
        job.add_lines(
            f"worker{node}/printenv.txt",
            *(f"{name}={value}" for name, value in values.items()),
            "PATH=/usr/bin:/bin",
            f"HOSTNAME=worker{node}",
        )
    return job


def env_differs_and_finished() -> ComparedJob:
    """Settings differ, and the job finishes."""
    job = ComparedJob(
        "clean", [], None, 4, "NCCL_DEBUG and NCCL_CROSS_NIC differ between the nodes, and the job finished"
    )
    for rank in range(4):
        host = f"node{1 + rank // 2}"
        values = {
            "HOSTNAME": host,
            "HOME": "/home/user",
            "PATH": "/usr/bin:/bin",
            "RANK": rank,
            "WORLD_SIZE": 4,
            "NCCL_CROSS_NIC": rank // 2,
        }
        job.add_lines(f"{host}/env_rank{rank}", *(f"{name}={value}" for name, value in values.items()))
        for step in range(1, 41):
            job.add_lines(f"{host}/rank{rank}.log", f"[rank{rank}]: step {step} loss {3 - step / 40:.4f} lr 1.0e-04")
        job.add_lines(f"{host}/rank{rank}.log", f"[rank{rank}]: training finished")
    return job


def divergence_megatron_one_file() -> ComparedJob:
    """All ranks write to one file with prefixes; the norm has three decimal places."""
    job = ComparedJob(
        "known",
        ["numeric.rank-divergence"],
        [11],
        16,
        "from iteration 240 on the gradient norm of rank 11 is not that of the others",
    )
    rng = random.Random(11)
    for iteration in range(10, 401, 10):
        norm = rng.uniform(0.6, 2.4)
        for rank in range(16):
            wrong = 1.35 if rank == 11 and iteration >= 240 else 1.0
            job.add_lines(
                "job.out",
                f"{rank}: iteration {iteration:8d}/{500:8d} | elapsed time per iteration (ms): "
                f"{rng.uniform(900, 999):.1f} |"
                f" lm loss: {rng.uniform(2, 4):.6E} | loss scale: 1.0 | grad norm: {norm * wrong:.3f} | number of "
                "skipped iterations:   0 |",
            )
    return job


def divergence_grad_sum_first_step() -> ComparedJob:
    """Sums of single gradients, without a step in the line."""
    job = ComparedJob(
        "known",
        ["numeric.rank-divergence"],
        [3],
        4,
        "one layer of rank 3 is not reduced: its gradient sums are its own",
    )
    rng = random.Random(3)
    for step in range(1, 6):
        sums = {
            name: rng.uniform(-1, 1)
            for name in ("embed.weight", "layers.0.attn.weight", "layers.0.mlp.weight", "head.weight")
        }
        for rank in range(4):
            job.add_lines(f"rank{rank}.log", f"=== step {step} ===")
            for name, value in sums.items():
                own = value + 0.173 if rank == 3 and name == "layers.0.mlp.weight" else value
                job.add_lines(f"rank{rank}.log", f"Rank {rank}: {name} grad_sum = {own:.9f}")
    return job


def divergence_by_design() -> ComparedJob:
    """Losses of each rank's own batch, and norms that are equal within each of two pipeline stages."""
    job = ComparedJob(
        "clean",
        [],
        None,
        8,
        "every rank prints the loss of its own batch and the norm of its own stage; nothing is wrong",
    )
    rng = random.Random(5)
    for step in range(1, 61):
        norms = (rng.uniform(0.5, 2), rng.uniform(0.5, 2))
        for rank in range(8):
            job.add_lines(
                f"rank{rank}.log",
                f"{format_time(step)} [rank {rank}] INFO step {step} loss {rng.uniform(2, 3):.6f} grad_norm "
                f"{norms[rank // 4]:.6f}",
            )
    for rank in range(8):
        job.add_lines(f"rank{rank}.log", f"{format_time(70)} [rank {rank}] INFO training finished")
    return job


def _out_of_memory(rank: int, device: int, used: float) -> list[str]:
    """Return the traceback of a rank that runs out of GPU memory."""
    head = f"[rank{rank}]: "
    return [
        f"{head}Traceback (most recent call last):",
        f'{head}  File "/home/user/train.py", line 88, in <module>',
        f"{head}    loss.backward()",
        f"{head}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {device} has a total "
        "capacity of 79.11 GiB of which"
        f" 1.21 GiB is free. Process 41{rank:02d} has {used:.2f} GiB memory in use.",
    ]


def memory_one_rank_fuller() -> ComparedJob:
    """Each rank prints allocated and reserved memory, which is uneven long before the end."""
    what = "rank 3 holds 71 GB where the others hold 41: it runs out of memory"
    job = ComparedJob("known", ["cuda.memory-imbalance", "cuda.out-of-memory"], [3], 4, what)
    for rank in range(4):
        for step in range(1, 21):
            used = (70.1 + step * 0.05 if rank == 3 else 40.6 + 0.02 * step) + rank * 0.01
            job.add_lines(
                f"rank{rank}.log", f"step {step}: Rank {rank}: allocated={used:.2f}GB, reserved={used + 3.4:.2f}GB"
            )
    job.add_lines("rank3.log", *_out_of_memory(3, 3, 77.6))
    return job


def memory_even() -> ComparedJob:
    """All ranks use the same memory: no imbalance is reported."""
    job = ComparedJob(
        "known",
        ["cuda.out-of-memory"],
        [2],
        4,
        "all ranks hold 70 GB, rank 2 meets the longest sequence and runs out of memory",
    )
    for rank in range(4):
        for step in range(1, 21):
            job.add_lines(
                f"rank{rank}.log",
                f"step {step}: Rank {rank}: allocated={70 + (rank * step % 7) / 10:.2f}GB, reserved=76.00GB",
            )
    job.add_lines("rank2.log", *_out_of_memory(2, 2, 77.9))
    return job


KINDS: tuple[Callable[[], ComparedJob], ...] = (
    env_nccl_algo_two_nodes,
    env_launch_blocking_nccl_2143,
    env_determinism_npu,
    env_differs_and_finished,
    divergence_megatron_one_file,
    divergence_grad_sum_first_step,
    divergence_by_design,
    memory_one_rank_fuller,
    memory_even,
)


def main() -> None:
    """Parse the command line and write the jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).resolve().parents[1] / "jobs")
    output = parser.parse_args().output
    for kind in KINDS:
        kind().write(output / kind.__name__)


if __name__ == "__main__":
    main()
