"""A made-up failed job: hosts with clocks, ranks, the lines of NCCL, HCCL, kernel and scheduler, and its truth."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

START = 1_772_600_400  # 2026-03-04 05:00:00 UTC
PG = "PG ID 0 PG GUID 0(default_pg)"
TIMEOUT = 600_000


class Incident:
    """One job.

    `layout`: perrank (out/rank3.log), srun (slurm-4711.out with labels), nodes (node1.log, `[rank3]:` where torch
    writes it). `skew`: for each host, the seconds by which its clock is ahead.
    """

    def __init__(
        self, name: str, ranks: int, *, hosts: int = 1, layout: str = "perrank", skew: Sequence[float] = ()
    ) -> None:
        self.name = name
        self.ranks = ranks
        self.per_host = ranks // hosts
        self.layout = layout
        self.skew = [*skew, *[0.0] * (hosts - len(skew))]
        self.rng = random.Random(name)
        self.now = START + self.rng.randrange(86_400) * 1.0
        self.files: dict[str, list[str]] = {}
        self.truth: dict[str, str] = {}

    def host(self, rank: int) -> str:
        """Return the name of the host of a rank."""
        return f"node{rank // self.per_host + 1}"

    def advance_clock(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def timestamp(self, form: str, rank: int = 0, host: int | None = None) -> str:
        """Return the time on the host of a rank, or on a host by number; `%L` are milliseconds."""
        when = self.now + self.skew[rank // self.per_host if host is None else host - 1]
        return time.strftime(form.replace("%L", f"{when % 1:.3f}"[2:5]), time.gmtime(when))

    def add_lines(self, file: str, *texts: str) -> None:
        """Append lines to a file."""
        self.files.setdefault(file, []).extend(line for text in texts for line in text.split("\n"))

    def add_rank_lines(self, rank: int, *texts: str) -> None:
        """Append lines of a rank, with the prefix that the layout puts before them."""
        file, prefix = {
            "perrank": (f"out/rank{rank}.log", ""),
            "srun": ("slurm-4711.out", f"{rank:>{len(str(self.ranks - 1))}}: "),
            "nodes": (f"{self.host(rank)}.log", ""),
        }[self.layout]
        self.add_lines(file, *(prefix + line for text in texts for line in text.split("\n")))

    def log_record(self, rank: int, text: str) -> None:
        """Append a record of the program's logger."""
        self.add_rank_lines(rank, f"{self.timestamp('%Y-%m-%d %H:%M:%S,%L', rank)} [rank{rank}] INFO trainer: {text}")

    def log_steps(self, first: int, last: int, ranks: Iterable[int] | None = None) -> None:
        """Log training steps on some ranks, by default on all."""
        for step in range(first, last + 1):
            self.advance_clock(1.5)
            for rank in self.all_ranks() if ranks is None else ranks:
                self.log_record(
                    rank, f"step {step} loss {9 / (1 + step) ** 0.3:.4f} tokens/s {self.rng.randrange(9000, 9900)}"
                )

    def all_ranks(self, *excluded: int) -> list[int]:
        """Return all ranks except the excluded ones."""
        return [rank for rank in range(self.ranks) if rank not in excluded]

    # NCCL and torch

    def log_nccl(self, rank: int, text: str) -> None:
        """Append a line of NCCL, with pid and device of the rank."""
        device = rank % self.per_host
        self.add_rank_lines(rank, f"{self.host(rank)}:{4100 + rank}:{4300 + rank} [{device}] {text}")

    def log_nccl_init(self, buses: Sequence[str] = ("1b", "3d", "4f", "5e", "9b", "bb", "cb", "dc")) -> None:
        """NCCL logs which GPU each rank uses."""
        for rank in self.all_ranks():
            device = rank % self.per_host
            self.log_nccl(rank, f"NCCL INFO Bootstrap : Using eth0:10.0.0.{rank // self.per_host + 1}<0>")
            self.log_nccl(
                rank,
                f"NCCL INFO ncclCommInitRankConfig comm 0x55d{rank:x}0 rank {rank} nranks {self.ranks} cudaDev "
                f"{device} nvmlDev {device} "
                f"busId {buses[device]}000 commId 0x9c1 - Init COMPLETE",
            )
        self.advance_clock(2)

    def log_c10(self, rank: int, where: str, text: str, level: str = "E") -> None:
        """A line of torch's C++ loggers (torch 2.5 and later)."""
        stamp = self.timestamp("%m%d %H:%M:%S", rank)
        self.add_rank_lines(rank, f"[rank{rank}]:[{level}{stamp}.{self.rng.randrange(10**9):09d} {where}] {text}")

    def log_timeout(
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
        """The watchdog reports a timeout, without the progress of the rank."""
        head = f"[{pg} Rank {rank if local is None else local}]"
        work = f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)={TIMEOUT})"
        self.log_c10(
            rank,
            "ProcessGroupNCCL.cpp:632",
            f"{head} Watchdog caught collective operation timeout: {work} ran for {ran} milliseconds before timing "
            "out.",
        )

    def log_progress(self, rank: int, enqueued: int, completed: int, *, pg: str = PG) -> None:
        """The watchdog's counters of enqueued and completed work."""
        self.log_c10(
            rank,
            "ProcessGroupNCCL.cpp:2271",
            f"[{pg} Rank {rank}]  failure detected by watchdog at work sequence id: {completed + 1} PG status: last "
            f"enqueued work: {enqueued}, "
            f"last completed work: {completed}",
        )

    def log_taken_down(self, rank: int) -> None:
        """The watchdog's last lines before it ends the process."""
        self.log_c10(
            rank,
            "ProcessGroupNCCL.cpp:681",
            f"[{PG} Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA "
            "kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        )
        self.log_c10(
            rank,
            "ProcessGroupNCCL.cpp:695",
            f"[{PG} Rank {rank}] To avoid data inconsistency, we are taking the entire process down.",
        )

    def log_store_lost(self, rank: int) -> None:
        """c10d lost the connection to the store."""
        self.log_c10(
            rank,
            "TCPStore.cpp:125",
            f"[c10d] recvValue failed on SocketImpl(fd=66, addr=[{self.host(rank)}]:{37000 + rank}, "
            "remote=[node1]:29500): Connection reset by peer",
            "W",
        )

    def log_remote_error(self, rank: int) -> None:
        """NCCL lost a peer, with the traceback that follows."""
        self.log_nccl(
            rank,
            "NCCL WARN socketProgress: Connection closed by remote peer "
            f"{self.host((rank + 1) % self.ranks)}<{40000 + rank}>",
        )
        self.log_traceback(
            rank,
            "torch.distributed.DistBackendError: NCCL error in: "
            "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2027, remote process exited or there was a network "
            "error, NCCL version 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote "
            "process exiting prematurely.",
        )

    def log_retry_exceeded(self, rank: int, peer: int, device: str = "mlx5_4") -> None:
        """InfiniBand retries are exhausted; in the form of NCCL 2.28."""
        stamp = self.timestamp("[%Y-%m-%d %H:%M:%S]", rank)
        self.add_rank_lines(
            rank,
            f"{stamp} {self.host(rank)}:{4100 + rank}:{4300 + rank} [{rank % self.per_host}] "
            "transport/net_ib/p2p.cc:688 NCCL WARN NET/IB: Got completion from peer "
            f"10.0.0.{peer // self.per_host + 1}<{51000 + peer}> with status=IBV_WC_RETRY_EXC_ERR(12) "
            f"opcode=IBV_WC_SEND(0) vendor_err=129 (Send) hca {device}",
        )

    def log_traceback(self, rank: int, error: str, *, line: int = 88, tagged: bool = True) -> None:
        """A Python traceback, with or without the prefix of torch."""
        tag = f"[rank{rank}]: " if tagged else ""
        frames = [
            "Traceback (most recent call last):",
            f'  File "/workspace/train.py", line {line}, in train',
            "    loss.backward()",
        ]
        self.add_rank_lines(rank, *(tag + text for text in [*frames, *error.split("\n")]))

    def log_failure_table(self, exits: dict[int, int], host: int = 1, to: str = "launcher.log") -> None:
        """Append torchelastic's failure table of one node, the first observed failure first."""
        names = {-9: "SIGKILL", -11: "SIGSEGV", -7: "SIGBUS", -6: "SIGABRT", -15: "SIGTERM"}
        entries = [
            [
                f"[{number}]:",
                f"  time      : {self.timestamp('%Y-%m-%d_%H:%M:%S', host=host)}",
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
        self.add_lines(
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

    # kernel, scheduler, NPU

    def log_kernel(self, host: int, text: str) -> None:
        """A line in a host's kernel log."""
        self.add_lines(f"node{host}/dmesg.txt", f"[{self.timestamp('%a %b %d %H:%M:%S %Y', host=host)}] {text}")

    def log_xid(self, host: int, bus: str, text: str) -> None:
        """An Xid of the NVIDIA driver."""
        self.log_kernel(host, f"NVRM: Xid (PCI:0000:{bus}:00): {text}")

    def log_slurm(self, text: str) -> None:
        """A line in Slurm's output file."""
        self.add_lines("slurm-4711.out", text)

    def log_cancelled(self, reason: str, host: int = 1) -> None:
        """slurmstepd cancels the step."""
        self.log_slurm(
            f"slurmstepd: error: *** STEP 4711.0 ON node{host} CANCELLED AT "
            f"{self.timestamp('%Y-%m-%dT%H:%M:%S', host=host)}{reason} ***"
        )

    def log_plog(self, rank: int, module: str, where: str, text: str, level: str = "ERROR") -> None:
        """A line of CANN's plog, in the rank's own file."""
        self.add_rank_lines(
            rank,
            f"[{level}] {module}({4100 + rank},python):{self.timestamp('%Y-%m-%d-%H:%M:%S.%L', rank)}.118 "
            f"[{where}][{4100 + rank}]{text}",
        )

    def log_cann(self, rank: int, code: str, title: str, text: str) -> None:
        """A block of CANN 8.5 as torch_npu prints it."""
        self.add_rank_lines(
            rank,
            f"[rank{rank}]: [PID: {4100 + rank}] {self.timestamp('%Y-%m-%d-%H:%M:%S.%L', rank)}.118 {title}({code}): "
            f"{text}",
        )

    def log_npu_error(self, rank: int, text: str, code: str = "ERR02200 DIST call hccl api failed.") -> None:
        """A traceback that ends with torch_npu's error line."""
        self.log_traceback(
            rank,
            f"RuntimeError: {text}\n[ERROR] {self.timestamp('%Y-%m-%d-%H:%M:%S', rank)} (PID:{4100 + rank}, "
            f"Device:{rank % self.per_host}, RankID:{rank}) {code}",
        )

    # truth and output

    def set_truth(
        self, verdict: str, root: Sequence[str | None], ranks: Sequence[int] | None, what_happened: str
    ) -> None:
        """Set the content of TRUTH.yaml."""
        names = ", ".join("null" if name is None else f'"{name}"' for name in root)
        self.truth = {
            "verdict": f'"{verdict}"',
            "root": f"[{names}]",
            "root_ranks": "null" if ranks is None else "[" + ", ".join(map(str, ranks)) + "]",
            "world_size": str(self.ranks),
            "what_happened": f'"{what_happened}"',
            "layout": f'"written {self.layout}"',
        }

    def write(self, directory: Path) -> None:
        """Write the files and TRUTH.yaml below the directory."""
        for file, lines in self.files.items():
            path = directory / self.name / "job" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        (directory / self.name / "TRUTH.yaml").write_bytes(
            "".join(f"{key}: {value}\n" for key, value in self.truth.items()).encode()
        )
