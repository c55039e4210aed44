"""A made-up failed job: its hosts with their clocks, its ranks, the words of NCCL, HCCL, the kernel and the scheduler,
and its truth.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

START = 1_772_600_400  # 2026-03-04 05:00:00 UTC
PG = "PG ID 0 PG GUID 0(default_pg)"
TIMEOUT = 600_000


class Incident:
    """One job. `layout`: perrank (out/rank3.log), srun (slurm-4711.out with labels), nodes (node1.log, `[rank3]:` where
    torch writes it).

    `skew`: host to the seconds by which its clock is ahead.
    """

    def __init__(
        self, name: str, ranks: int, *, hosts: int = 1, layout: str = "perrank", skew: Sequence[float] = ()
    ) -> None:
        self.name = name
        self.ranks = ranks
        self.per_host = ranks // hosts
        self.layout = layout
        self.skew = [*skew, *[0.0] * (hosts - len(skew))]
        self.dice = random.Random(name)
        self.now = START + self.dice.randrange(86_400) * 1.0
        self.files: dict[str, list[str]] = {}
        self.truth: dict[str, str] = {}

    def host(self, rank: int) -> str:
        return f"node{rank // self.per_host + 1}"

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def stamp(self, form: str, rank: int = 0, host: int | None = None) -> str:
        """The clock of a rank's host."""
        when = self.now + self.skew[rank // self.per_host if host is None else host - 1]
        return time.strftime(form.replace("%L", f"{when % 1:.3f}"[2:5]), time.gmtime(when))

    def to(self, file: str, *texts: str) -> None:
        self.files.setdefault(file, []).extend(line for text in texts for line in text.split("\n"))

    def say(self, rank: int, *texts: str) -> None:
        """Lines as a rank writes them, with what the layout puts before them."""
        file, prefix = {
            "perrank": (f"out/rank{rank}.log", ""),
            "srun": ("slurm-4711.out", f"{rank:>{len(str(self.ranks - 1))}}: "),
            "nodes": (f"{self.host(rank)}.log", ""),
        }[self.layout]
        self.to(file, *(prefix + line for text in texts for line in text.split("\n")))

    def log(self, rank: int, text: str) -> None:
        """A record of the program's logger."""
        self.say(rank, f"{self.stamp('%Y-%m-%d %H:%M:%S,%L', rank)} [rank{rank}] INFO trainer: {text}")

    def steps(self, first: int, last: int, ranks: Iterable[int] | None = None) -> None:
        for step in range(first, last + 1):
            self.wait(1.5)
            for rank in self.everyone() if ranks is None else ranks:
                self.log(
                    rank, f"step {step} loss {9 / (1 + step) ** 0.3:.4f} tokens/s {self.dice.randrange(9000, 9900)}"
                )

    def everyone(self, *but: int) -> list[int]:
        return [rank for rank in range(self.ranks) if rank not in but]

    # NCCL and torch

    def nccl(self, rank: int, text: str) -> None:
        """A line of NCCL; pid and device of the rank."""
        device = rank % self.per_host
        self.say(rank, f"{self.host(rank)}:{4100 + rank}:{4300 + rank} [{device}] {text}")

    def init(self, buses: Sequence[str] = ("1b", "3d", "4f", "5e", "9b", "bb", "cb", "dc")) -> None:
        """NCCL says which GPU each rank has."""
        for rank in self.everyone():
            device = rank % self.per_host
            self.nccl(rank, f"NCCL INFO Bootstrap : Using eth0:10.0.0.{rank // self.per_host + 1}<0>")
            self.nccl(
                rank,
                f"NCCL INFO ncclCommInitRankConfig comm 0x55d{rank:x}0 rank {rank} nranks {self.ranks} cudaDev {device} nvmlDev {device} "
                f"busId {buses[device]}000 commId 0x9c1 - Init COMPLETE",
            )
        self.wait(2)

    def c10(self, rank: int, where: str, text: str, level: str = "E") -> None:
        """A line of torch's C++ loggers (torch 2.5 and later)."""
        stamp = self.stamp("%m%d %H:%M:%S", rank)
        self.say(rank, f"[rank{rank}]:[{level}{stamp}.{self.dice.randrange(10**9):09d} {where}] {text}")

    def timeout(
        self,
        rank: int,
        *,
        seq: int,
        op: str = "ALLREDUCE",
        numel: int = 1_048_576,
        pg: str = PG,
        ran: int = TIMEOUT + 41,
        local: int | None = None,
    ) -> None:
        """The watchdog gives up, without a word on how far the rank had come."""
        of = f"[{pg} Rank {rank if local is None else local}]"
        work = f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)={TIMEOUT})"
        self.c10(
            rank,
            "ProcessGroupNCCL.cpp:632",
            f"{of} Watchdog caught collective operation timeout: {work} ran for {ran} milliseconds before timing out.",
        )

    def progress(self, rank: int, enqueued: int, completed: int, *, pg: str = PG) -> None:
        self.c10(
            rank,
            "ProcessGroupNCCL.cpp:2271",
            f"[{pg} Rank {rank}]  failure detected by watchdog at work sequence id: {completed + 1} PG status: last enqueued work: {enqueued}, "
            f"last completed work: {completed}",
        )

    def taken_down(self, rank: int) -> None:
        self.c10(
            rank,
            "ProcessGroupNCCL.cpp:681",
            f"[{PG} Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        )
        self.c10(
            rank,
            "ProcessGroupNCCL.cpp:695",
            f"[{PG} Rank {rank}] To avoid data inconsistency, we are taking the entire process down.",
        )

    def store_lost(self, rank: int) -> None:
        self.c10(
            rank,
            "TCPStore.cpp:125",
            f"[c10d] recvValue failed on SocketImpl(fd=66, addr=[{self.host(rank)}]:{37000 + rank}, remote=[node1]:29500): Connection reset by peer",
            "W",
        )

    def remote_error(self, rank: int) -> None:
        self.nccl(
            rank,
            f"NCCL WARN socketProgress: Connection closed by remote peer {self.host((rank + 1) % self.ranks)}<{40000 + rank}>",
        )
        self.traceback(
            rank,
            "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2027, remote process exited or there was a network error, NCCL version 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        )

    def retry_exceeded(self, rank: int, peer: int, device: str = "mlx5_4") -> None:
        """InfiniBand gave up; in the form of NCCL 2.28."""
        stamp = self.stamp("[%Y-%m-%d %H:%M:%S]", rank)
        self.say(
            rank,
            f"{stamp} {self.host(rank)}:{4100 + rank}:{4300 + rank} [{rank % self.per_host}] transport/net_ib/p2p.cc:688 NCCL WARN NET/IB: Got completion from peer "
            f"10.0.0.{peer // self.per_host + 1}<{51000 + peer}> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129 (Send) hca {device}",
        )

    def traceback(self, rank: int, error: str, *, line: int = 88, tagged: bool = True) -> None:
        tag = f"[rank{rank}]: " if tagged else ""
        frames = [
            "Traceback (most recent call last):",
            f'  File "/workspace/train.py", line {line}, in train',
            "    loss.backward()",
        ]
        self.say(rank, *(tag + text for text in [*frames, *error.split("\n")]))

    def table(self, exits: dict[int, int], host: int = 1, to: str = "launcher.log") -> None:
        """torchelastic's table of one node, the first observed failure first."""
        names = {-9: "SIGKILL", -11: "SIGSEGV", -7: "SIGBUS", -6: "SIGABRT", -15: "SIGTERM"}
        entries = [
            [
                f"[{number}]:",
                f"  time      : {self.stamp('%Y-%m-%d_%H:%M:%S', host=host)}",
                f"  host      : node{host}",
                f"  rank      : {rank} (local_rank: {rank % self.per_host})",
                f"  exitcode  : {code} (pid: {4100 + rank})" + (f" ({names[code]})" if code in names else ""),
                "  error_file: <N/A>",
                f"  traceback : Signal {-code} ({names[code]}) received by PID {4100 + rank}"
                if code in names
                else "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
            ]
            for number, (rank, code) in enumerate(exits.items())
        ]
        first, *others = entries
        self.to(
            to,
            "Traceback (most recent call last):",
            '  File "/opt/venv/bin/torchrun", line 8, in <module>',
            "    sys.exit(main())",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            "=" * 60,
            "train.py FAILED",
            "-" * 60,
            "Failures:",
            *([text for entry in others for text in entry] or ["  <NO_OTHER_FAILURES>"]),
            "-" * 60,
            "Root Cause (first observed failure):",
            *first,
            "=" * 60,
        )

    # Kernel, scheduler, NPU

    def kernel(self, host: int, text: str) -> None:
        self.to(f"node{host}/dmesg.txt", f"[{self.stamp('%a %b %d %H:%M:%S %Y', host=host)}] {text}")

    def xid(self, host: int, bus: str, text: str) -> None:
        self.kernel(host, f"NVRM: Xid (PCI:0000:{bus}:00): {text}")

    def slurm(self, text: str) -> None:
        self.to("slurm-4711.out", text)

    def cancelled(self, why: str, host: int = 1) -> None:
        self.slurm(
            f"slurmstepd: error: *** STEP 4711.0 ON node{host} CANCELLED AT {self.stamp('%Y-%m-%dT%H:%M:%S', host=host)}{why} ***"
        )

    def plog(self, rank: int, module: str, where: str, text: str, level: str = "ERROR") -> None:
        """A line of CANN's plog, in the rank's own file."""
        self.say(
            rank,
            f"[{level}] {module}({4100 + rank},python):{self.stamp('%Y-%m-%d-%H:%M:%S.%L', rank)}.118 [{where}][{4100 + rank}]{text}",
        )

    def cann(self, rank: int, code: str, title: str, text: str) -> None:
        """A block of CANN 8.5 as torch_npu prints it."""
        self.say(
            rank,
            f"[rank{rank}]: [PID: {4100 + rank}] {self.stamp('%Y-%m-%d-%H:%M:%S.%L', rank)}.118 {title}({code}): {text}",
        )

    def npu_error(self, rank: int, text: str, code: str = "ERR02200 DIST call hccl api failed.") -> None:
        self.traceback(
            rank,
            f"RuntimeError: {text}\n[ERROR] {self.stamp('%Y-%m-%d-%H:%M:%S', rank)} (PID:{4100 + rank}, Device:{rank % self.per_host}, RankID:{rank}) {code}",
        )

    # The end

    def is_(self, verdict: str, root: Sequence[str | None], ranks: Sequence[int] | None, what: str) -> None:
        """The truth."""
        names = ", ".join("null" if name is None else f'"{name}"' for name in root)
        self.truth = {
            "verdict": f'"{verdict}"',
            "root": f"[{names}]",
            "root_ranks": "null" if ranks is None else "[" + ", ".join(map(str, ranks)) + "]",
            "world_size": str(self.ranks),
            "what_happened": f'"{what}"',
            "layout": f'"written {self.layout}"',
        }

    def write(self, directory: Path) -> None:
        for file, lines in self.files.items():
            path = directory / self.name / "job" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        (directory / self.name / "TRUTH.yaml").write_bytes(
            "".join(f"{key}: {value}\n" for key, value in self.truth.items()).encode()
        )
