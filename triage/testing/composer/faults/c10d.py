"""Texts of torch.distributed in the wording of the drawn version: log prefixes, tracebacks, and the watchdog's report.

Sources: ProcessGroupNCCL.cpp, ProcessGroupGloo.cpp, socket.cpp, distributed_c10d.py of torch 2.1, 2.4, 2.6 and 2.9.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from triage.testing.composer.model import Line, World, Writer
from triage.testing.composer.parts import start, tag

Call = tuple[str, int, str, str]
"""File, line, function and source text of a frame, outermost first."""

_SOURCE_LINES = {
    "caught": (474, 523, 563, 607, 632, 685),
    "desync": (477, 526, 566, 610, 1937, 1937),
    "failure": (0, 0, 1537, 1664, 2271, 2252),
    "stack": (0, 0, 0, 0, 670, 732),
    "first": (0, 0, 0, 0, 2106, 2584),
    "dump": (0, 0, 0, 0, 1746, 1870),
    "some": (488, 537, 577, 621, 684, 746),
    "down": (494, 543, 583, 627, 698, 760),
    "ended": (915, 1182, 1414, 1515, 1895, 2068),
}
_ARGUMENTS = {"all_reduce": "flat", "broadcast": "flat, src=0", "batch_isend_irecv": "ops"}
_SOME = (
    "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU "
    "operations might run on corrupted/incomplete data."
)
_DUMP = (
    "and we will try our best to dump the debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: "
    "{completed}.This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks, "
    "the order of collectives is not same for all ranks or the scheduled collective, for some reason, didn't run. "
    "Additionally, this can be caused by GIL deadlock or other reasons such as network errors or bugs in the "
    "communications library (e.g. NCCL), etc. "
)


def version(world: World) -> tuple[int, int]:
    """Return the major and minor version of torch."""
    major, minor = world.torch.split(".")[:2]
    return int(major), int(minor)


def by_version(world: World, texts: Sequence[str | int]) -> str:
    """Return the text for torch up to 2.3, 2.4 and 2.5, 2.6 to 2.8, or later."""
    return str(texts[sum(version(world) >= first for first in ((2, 4), (2, 6), (2, 9)))])


def glog(world: World, at: float, level: str, where: str, rank: int | None = None) -> str:
    """Return the prefix of c10's logger; `rank` is None before the process group exists."""
    if version(world) < (2, 2):
        return f"[{level} {where}] "
    owner = "" if rank is None else f"[rank{rank}]:"
    fraction = f"{(world.pids[rank or 0] * 7919 + int(at * 1e6)) % 10**9:09d}"
    moment = "" if version(world) < (2, 4) else f"{world.stamp(at, '%m%d %H:%M:%S').lstrip('0')}.{fraction}"
    return f"{owner}[{level}{moment} {where}] "


def torch_file(world: World, name: str) -> str:
    """Return the path of an installed file of torch."""
    root = ("/opt/conda", "/usr/local", "/venv/main")[world.pids[0] % 3]
    return f"{root}/lib/python{world.python}/site-packages/torch/{name}"


def collective_calls(world: World, function: str, code: str, caller: str = "train_step") -> list[Call]:
    """Return the frames from the script to a collective of torch.distributed."""
    number = int(by_version(world, (2050, 2288, 2810, 3047)))
    wrapper = int(by_version(world, (47, 79, 83, 81)))
    logger = (torch_file(world, "distributed/c10d_logger.py"), wrapper, "wrapper", "return func(*args, **kwargs)")
    return [
        (world.script, 212, "<module>", "main()"),
        (world.script, 187, "main", f"{caller}(model, batch)"),
        (world.script, 141, caller, f"dist.{function}({_ARGUMENTS.get(function, '')})"),
        *([logger] if function in ("all_reduce", "broadcast", "barrier") else []),
        (torch_file(world, "distributed/distributed_c10d.py"), number, function, code),
    ]


def uncaught(
    world: World,
    rank: int,
    at: float,
    error: str,
    calls: Sequence[Call],
    *,
    is_cause: bool = False,
    tagged: bool = True,
) -> Line:
    """Return an uncaught exception with these frames. `tagged`: the process group exists, so newer torch adds the rank.
    """  # fmt: skip
    prefix = tag(world, rank) if tagged else ""
    body = ["Traceback (most recent call last):"]
    for file, number, function, code in calls:
        body += [f'  File "{file}", line {number}, in {function}', f"    {code}"]
    text = "\n".join(prefix + part for part in [*body, *error.split("\n")])
    return Line(at, Writer("rank", rank), text, is_cause=is_cause, says_rank=bool(prefix))


def watchdog_report(
    world: World,
    rank: int,
    at: float,
    sequence: int,
    *,
    operation: str = "ALLREDUCE",
    numel: int = 524288,
    seconds: int = 600,
    enqueued: int | None = None,
    is_cause: bool = True,
    group: tuple[int, str] = (0, "default_pg"),
    ran: float = 0.0,
    desync: str = "",
) -> Line:
    """Return all that the watchdog of a rank writes from the timeout to the abort; all of it names the rank.

    `group`: number and name of a group of all ranks. `ran`: seconds that it ran, if not `seconds`. `desync`: a report.
    """  # fmt: skip
    duration = int((ran or seconds) * 1000) + 12 + rank * 7
    caught = (
        f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={sequence}, OpType={operation}, "
        f"NumelIn={numel}, NumelOut={numel}, Timeout(ms)={seconds * 1000}) ran for {duration} "
        "milliseconds before timing out."
    )
    prefix = _group(world, rank, *group)
    ended = f"{prefix} {_ended(world)} watchdog thread terminated with exception: {caught}"
    lines = [
        ("caught", caught),
        *_compared(world, rank, prefix, desync),
        *_details(world, prefix, sequence, sequence if enqueued is None else enqueued),
        ("some", f"[Rank {rank}] {_SOME}" if version(world) >= (2, 2) else _SOME),
        ("down", _down(world, rank)),
        ("ended", ended),
    ]
    text = "\n".join(_own(world, rank, at + i * 3.1e-5, kind) + message for i, (kind, message) in enumerate(lines))
    return Line(at, Writer("rank", rank), text + _terminate(world, ended), is_cause=is_cause, says_rank=True)


def _terminate(world: World, what: str) -> str:
    error = "c10::DistBackendError" if version(world) >= (2, 2) else "std::runtime_error"
    return f"\nterminate called after throwing an instance of '{error}'\n  what():  {what}"


def _compared(world: World, rank: int, group: str, report: str) -> list[tuple[str, str]]:
    """Return the report of TORCH_NCCL_DESYNC_DEBUG, if it is on; torch since 2.6 puts only the rank before it."""
    return (
        [("desync", f"{by_version(world, (group, group, f'Rank {rank}', f'Rank {rank}'))} {report}")] if report else []
    )


def dump_signal(world: World, rank: int, at: float, source: int, completed: int) -> list[Line]:
    """Return what a rank without a pending collective writes when another rank timed out; torch before 2.9: nothing."""
    if version(world) < (2, 9):
        return []
    text = _DUMP.format(enqueued=completed, completed=completed)
    group = _group(world, rank)
    lines = (
        f"{group} Observed flight recorder dump signal from another rank via TCPStore.",
        f"{group} Received a dump signal due to a collective timeout from  rank {source} {text}",
    )
    shown = "\n".join(_own(world, rank, at, "dump") + line for line in lines)
    return [Line(at, Writer("rank", rank), shown, says_rank=True)]


def start_of(world: World, rng: random.Random, ranks: Sequence[int]) -> list[Line]:
    """Return what these ranks print while they start, and nothing of the others."""
    return [line for line in start(world, rng) if line.writer.number in ranks]


def _own(world: World, rank: int, at: float, kind: str) -> str:
    column = sum(version(world) >= first for first in ((2, 2), (2, 3), (2, 4), (2, 6), (2, 9)))
    return glog(world, at, "E", f"ProcessGroupNCCL.cpp:{_SOURCE_LINES[kind][column]}", rank)


def _group(world: World, rank: int, number: int = 0, name: str = "default_pg") -> str:
    first = "[" if version(world) < (2, 3) else f"[PG {number} "
    shown = f"({name})" if name else ""
    newer = f"[PG ID {number} PG GUID {number}{shown} "
    return by_version(world, (first, f"[PG {number} {shown or '(undefined)'} ", newer, newer)) + f"Rank {rank}]"


def _ended(world: World) -> str:
    return "NCCL" if version(world) < (2, 3) else "Process group"


def _down(world: World, rank: int) -> str:
    text = "To avoid data inconsistency, we are taking the entire process down."
    return f"[Rank {rank}] {text}" if version(world) >= (2, 2) else text


def _details(world: World, group: str, sequence: int, last: int) -> list[tuple[str, str]]:
    done = sequence - 1
    if version(world) < (2, 3):
        return []
    if version(world) < (2, 4):
        text = f"Timeout at NCCL work: {sequence}, last enqueued NCCL work: {last}, last completed NCCL work: {done}."
        return [("failure", f"{group} {text}")]
    if version(world) < (2, 6):
        text = f"detected by watchdog at work: {sequence}, last enqueued NCCL work: {last}, last completed NCCL work: "
        return [("failure", f"{group} Exception (either an error or timeout) {text}{done}.")]
    buffer = by_version(world, ("", "", "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"))
    state = f"PG status: last enqueued work: {last}, last completed work: {done}"
    missing = "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can "
    local = f"{group} Received a dump signal due to a collective timeout from this local rank "
    return [
        ("failure", f"{group}  failure detected by watchdog at work sequence id: {sequence} {state}"),
        ("stack", f"{missing}enable it by setting {buffer} to a non-zero value."),
        ("first", f"{group} First PG on this rank to signal dumping."),
        ("dump", local + _DUMP.format(enqueued=last, completed=done)),
    ]
