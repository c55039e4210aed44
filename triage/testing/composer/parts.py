"""Pieces that many stories share: what training jobs print while they start, train, fail and notice failed peers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from triage.testing.composer.model import Exit, Line, Stream, World, Writer

Frame = tuple[str, int, str]
"""File, line and function, outermost first."""


def record(world: World, rank: int, at: float, message: str, level: str = "INFO", stream: Stream = "stdout") -> Line:
    """Return a record of the program's logger in the log style of the world."""
    writer = Writer("rank", rank)
    forms = {
        "bare": message if level == "INFO" else f"{level}: {message}",
        "stamped": f"{world.stamp(at, '%Y-%m-%d %H:%M:%S,%L')} {level} trainer: {message}",
        "ranked": f"{world.stamp(at, '%Y-%m-%d %H:%M:%S,%L')} [rank {rank}] {level} trainer: {message}",
        "loguru": (
            f"{world.stamp(at, '%Y-%m-%d %H:%M:%S.%L')} | {level:<8} | trainer.loop:train:88 | rank {rank} | {message}"
        ),
        "pid": f"[{world.stamp(at, '%Y-%m-%d %H:%M:%S')}] [{world.pids[rank]}] {level} {message}",
    }
    return Line(at, writer, forms[world.log_style], stream)


def pod_mark(node: int) -> str:
    """Return what stands for the name of the pod of a node until a layout has drawn it."""
    return f"<pod {node}>"


def start(world: World, rng: random.Random, until: float = 8.0) -> list[Line]:
    """Return what each rank prints while it starts; with NCCL, some jobs have its INFO lines with ranks and devices."""
    lines = [record(world, rank, 1.0 + rng.uniform(0, 1), world.introduce(rank)) for rank in world.ranks]
    if world.backend == "nccl" and rng.random() < 0.5:
        lines += [nccl_init(world, rank, rng.uniform(3, until)) for rank in world.ranks]
    return lines


def nccl_init(world: World, rank: int, at: float) -> Line:
    """Return NCCL's line about a communicator's member, which joins host, pid, rank and device."""
    local, pid, host = world.local(rank), world.pids[rank], world.host(rank).partition(".")[0]
    bus = f"{int(world.bus(rank).split(':')[1], 16) << 12:x}"
    text = (
        f"{host}:{pid}:{pid + 211} [{local}] NCCL INFO ncclCommInitRank comm 0x55d0c8{rank:04x}e0 rank {rank} nranks "
        f"{world.size} cudaDev {local} nvmlDev {local} busId {bus} commId 0x8f3c2a77d1e0b945 - Init COMPLETE"
    )
    return Line(at, Writer("rank", rank), text, "stdout")


def steps(
    world: World, rng: random.Random, first: float, count: int, *, ranks: Iterable[int] | None = None, number: int = 1
) -> list[Line]:
    """Return `count` training steps of each rank, one a second from `first`, the first with this number."""
    chosen = list(world.ranks if ranks is None else ranks)
    return [
        record(
            world, rank, first + index + rng.uniform(0, 0.3),
            f"step {number + index} loss {6 / (number + index + 1) ** 0.3 + rng.uniform(0, 0.02):.4f} lr 3.0e-04",
        )
        for index in range(count)
        for rank in chosen
    ]  # fmt: skip


def finish(world: World, at: float) -> list[Line]:
    """Return the last record of each rank of a job that ends well."""
    return [record(world, rank, at + rank / 1000, "training finished, 0 errors") for rank in world.ranks]


def tag(world: World, rank: int) -> str:
    """Return the prefix of c10d's excepthook, which torch has since 2.2."""
    return f"[rank{rank}]: " if tuple(map(int, world.torch.split(".")[:2])) >= (2, 2) else ""


def traceback(
    world: World,
    rank: int,
    at: float,
    error: str,
    frames: Sequence[Frame] = (),
    *,
    is_cause: bool = False,
    tagged: bool = True,
) -> Line:
    """Return an uncaught exception; `error` is like `ValueError: why`, also with several lines.

    `tagged`: after the process group was made, so that newer torch tells the rank.
    """  # fmt: skip
    prefix = tag(world, rank) if tagged else ""
    script = world.script
    shown = frames or ((script, 212, "<module>"), (script, 187, "main"), (script, 141, "train_step"))
    body = ["Traceback (most recent call last):"]
    for file, number, function in shown:
        body += [f'  File "{file}", line {number}, in {function}', f"    {function.strip('<>')}_call(batch)"]
    text = "\n".join(prefix + part for part in [*body, *error.split("\n")])
    return Line(at, Writer("rank", rank), text, is_cause=is_cause, says_rank=bool(prefix))


def kernel(world: World, node: int, at: float, text: str, *, is_cause: bool = False, says_host: bool = False) -> Line:
    """Return a line of the kernel of a node; the layout of the kernel's log gives time and host."""
    return Line(at, Writer("kernel", node), text, is_cause=is_cause, says_host=says_host)


def echoes(
    world: World, rng: random.Random, failed: Iterable[int], at: float, *, share: float = 1.0
) -> tuple[list[Line], list[Exit]]:
    """Return what the other ranks print when these ranks are gone, and how they end: a consequence, never the cause.

    With Gloo the connection closes and an exception follows at once. With NCCL the remote error or the watchdog's
    abort follows. `share`: of the other ranks that many get to print it before the launcher stops them.
    """
    gone = set(failed)
    others = [rank for rank in world.ranks if rank not in gone and rng.random() < share]
    lines, exits = [], []
    for rank in others:
        moment = at + rng.uniform(0.4, 2.0)
        lines.append(_echo(world, rng, rank, min(gone), moment))
        exits.append(Exit(rank, 1, moment + 0.3))
    return lines, sorted(exits, key=lambda end: end.at)


def _echo(world: World, rng: random.Random, rank: int, peer: int, at: float) -> Line:
    if world.backend == "gloo":
        error = (
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
            f"[10.0.{world.node(peer)}.{10 + world.node(peer)}]:{rng.randrange(2000, 60000)}"
        )
        return traceback(world, rank, at, error)
    if world.backend == "hccl":
        error = (
            "RuntimeError: [ERROR] HCCL error in: build/CMakeFiles/torch_npu/torch_npu/csrc/distributed/"
            "ProcessGroupHCCL.cpp:64\nEI0006: Getting socket times out. Reason: Remote Rank did not send the data in "
            "time."
        )
        return traceback(world, rank, at, error)
    error = (
        f"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2251, "
        f"remote process exited or there was a network error, NCCL version {world.nccl}\n"
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
        "Last error:\n"
        f"socketProgressOpt: Call to recv from {world.host(peer)}<{rng.randrange(30000, 60000)}> failed : "
        "Connection reset by peer"
    )  # fmt: skip
    return traceback(world, rank, at, error)


def watchdog(
    world: World,
    rank: int,
    at: float,
    sequence: int,
    *,
    operation: str = "ALLREDUCE",
    seconds: int = 600,
    numel: int = 524288,
    is_cause: bool = False,
) -> Line:
    """Return the timeout of ProcessGroupNCCL's watchdog, which names its rank."""  # fmt: skip
    moment = world.stamp(at, "%m%d %H:%M:%S").removeprefix("0")
    text = (
        f"[rank{rank}]:[E{moment}.{rank:09d} ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn={numel}, NumelOut={numel}, "
        f"Timeout(ms)={seconds * 1000}) ran for {seconds * 1000 + 63} milliseconds before timing out."
    )
    return Line(at, Writer("rank", rank), text, is_cause=is_cause, says_rank=True)
