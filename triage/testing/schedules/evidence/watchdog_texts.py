"""Texts of ProcessGroupNCCL's watchdog by version of torch (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).

Two numbers of ranks are easily mixed up: `[Rank 2]` and `[PG … Rank 2]` count within the group, `[rank10]:` is global.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.testing.schedules.model import Call, Group

Version = tuple[int, int]
# Line numbers: the timeout, the numbers, "Some NCCL operations", "To avoid", the end of the watchdog.
_LINES: Mapping[Version, tuple[int, int, int, int, int]] = {
    (2, 1): (474, 0, 488, 494, 915),
    (2, 2): (523, 0, 537, 543, 1182),
    (2, 3): (563, 1537, 577, 583, 1414),
    (2, 4): (607, 1664, 621, 627, 1515),
    (2, 5): (616, 1785, 630, 636, 1595),
    (2, 6): (632, 2268, 684, 690, 1895),
    (2, 7): (632, 2268, 684, 690, 1902),
    (2, 8): (685, 2241, 739, 745, 1858),
    (2, 9): (688, 2247, 742, 748, 1890),
    (2, 11): (688, 2252, 742, 748, 1901),
    (2, 13): (691, 2260, 745, 751, 1913),
}
VERSIONS = tuple(_LINES)
_OP_TYPES = {
    "all_reduce": "ALLREDUCE",
    "all_reduce_barrier": "ALLREDUCE",
    "broadcast": "BROADCAST",
    "reduce": "REDUCE",
    "all_gather": "ALLGATHER",
    "_all_gather_base": "_ALLGATHER_BASE",
    "_reduce_scatter_base": "_REDUCE_SCATTER_BASE",
    "all_to_all": "ALLTOALL_BASE",
    "send": "SEND",
    "recv": "RECV",
    "coalesced": "COALESCED",
}
_CORRUPTED = (
    "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU "
    "operations might run on corrupted/incomplete data."
)
_ADVICE = (
    "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks, the order of "
    "collectives is not same for all ranks or the scheduled collective, for some reason, didn't run. Additionally, "
    "this can be caused by GIL deadlock or other reasons such as network errors or bugs in the communications library "
    "(e.g. NCCL), etc. "
)


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """One group on one rank: `place` among the groups of the rank, `own` rank within it, and its numbers.

    `started` is -1 without TORCH_NCCL_ENABLE_TIMING; `started_type` is the type of that call.
    """

    group: Group
    place: int
    own: int
    enqueued: int
    completed: int
    started: int = -1
    started_type: str = ""

    def prefix(self, version: Version) -> str:
        """Return the group as the lines of a version name it."""
        group = self.group
        if version < (2, 4):
            return f"[PG {group.name} Rank {self.own}]"
        is_described = group.description != "undefined"
        if version < (2, 5):
            return f"[PG {group.name} {f'({group.description}) ' if is_described else ''}Rank {self.own}]"
        description = f"({group.description})" if is_described else ""
        return f"[PG ID {self.place} PG GUID {group.name}{description} Rank {self.own}]"


def op_type(call: Call) -> str:
    """Return the name of an operation in c10d's OpType."""
    return _OP_TYPES[call.operation]


def work_text(version: Version, call: Call, sequence: int, group: Group, timeout: float) -> str:
    """Return the description of a call. A batch of sends and receives has no elements: 0, before 2.5 an unsigned -1."""
    no_elements = 0 if version >= (2, 5) else 2**64 - 1
    numel_in = no_elements if call.operation == "coalesced" else call.numel
    out = numel_in
    if call.operation in ("all_gather", "_all_gather_base"):
        out = call.numel * len(group.ranks)
    elif call.operation == "_reduce_scatter_base":
        out = call.numel // len(group.ranks)
    return (
        f"WorkNCCL(SeqNum={sequence}, OpType={op_type(call)}, NumelIn={numel_in}, NumelOut={out}, "
        f"Timeout(ms)={int(timeout * 1000)})"
    )


def timeout_lines(
    version: Version, status: GroupStatus, work: str, sequence: int, milliseconds: int,
    frames: Sequence[tuple[str, str, int]] = (),
) -> list[tuple[int, str]]:  # fmt: skip
    """Return (line of the source, text) of what a rank prints when the watchdog of a group sees a timeout.

    `frames` of the call, innermost first, if the Flight Recorder is on.
    """
    caught, numbers, some, avoid, end = _LINES[version]
    message = (
        f"[Rank {status.own}] Watchdog caught collective operation timeout: {work} ran for {milliseconds} milliseconds "
        "before timing out."
    )
    ranked = f"[Rank {status.own}] " if version >= (2, 3) else ""
    prefix = status.prefix(version) if version >= (2, 3) else f"[Rank {status.own}]"
    thread = "Process group watchdog" if version >= (2, 3) else "NCCL watchdog"
    lines = [(caught, message), *_number_lines(version, status, sequence, numbers)]
    if version >= (2, 6):
        lines.append((caught + 38, _stack_text(version, frames)))
    lines += [
        (some, f"{ranked}{_CORRUPTED}"),
        (avoid, f"{ranked}To avoid data inconsistency, we are taking the entire process down."),
        (end, f"{prefix} {thread} thread terminated with exception: {message}"),
    ]
    return lines


def _number_lines(version: Version, status: GroupStatus, sequence: int, line: int) -> list[tuple[int, str]]:
    prefix = status.prefix(version)
    if version < (2, 3):
        return []
    if version >= (2, 6):
        text = (
            f"{prefix}  failure detected by watchdog at work sequence id: {sequence} PG status: last enqueued work: "
            f"{status.enqueued}, {_started(version, status)}last completed work: {status.completed}"
        )
        return [(line, text)]
    numbers = f"{sequence}, last enqueued NCCL work: {status.enqueued}, last completed NCCL work: {status.completed}."
    timeout = (line + 45, f"{prefix} Timeout at NCCL work: {numbers}")
    if version == (2, 3):
        return [(line, timeout[1])]
    return [
        (line, f"{prefix} Exception (either an error or timeout) detected by watchdog at work: {numbers}"),
        timeout,
    ]


def _started(version: Version, status: GroupStatus) -> str:
    """Return what torch 2.13 says in addition."""
    if version < (2, 13):
        return ""
    name = f" ({status.started_type})" if status.started_type else ""
    return f"last started work: {status.started}{name}, "


def _stack_text(version: Version, frames: Sequence[tuple[str, str, int]]) -> str:
    """Return the stack of the call, or why there is none."""
    if frames:
        lines = [f"#{number} {name} from {file}:{line}" for number, (name, file, line) in enumerate(frames)]
        return "\n".join(("Stack trace of the failed collective: ", *lines, ""))
    variable = "TORCH_FR_BUFFER_SIZE" if version >= (2, 9) else "TORCH_NCCL_TRACE_BUFFER_SIZE"
    return (
        "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can "
        f"enable it by setting {variable} to a non-zero value."
    )


def signal_lines(version: Version, status: GroupStatus, sender: int | None) -> list[tuple[int, str]]:
    """Return what the monitor of the default group prints: a rank timed out, this one (None) or another."""
    prefix = status.prefix(version)
    line = {4: 1395, 5: 1476, 6: 1684, 7: 1684}.get(version[1], 1771)
    observed = [] if sender is None else [
        (line, f"{prefix} Observed flight recorder dump signal from another rank via TCPStore.")
    ]  # fmt: skip
    first = [] if sender is not None or version < (2, 6) else [
        (line + 360, f"{prefix} First PG on this rank to signal dumping.")
    ]  # fmt: skip
    origin = "this local rank" if sender is None else f" rank {sender}"
    received = (
        f"{prefix} Received a dump signal due to a collective timeout from {origin} and we will try our best to dump "
        f"the debug info. Last enqueued NCCL work: {status.enqueued}, last completed NCCL work: {status.completed}."
        f"{_ADVICE}"
    )
    preparing = f"{prefix} ProcessGroupNCCL preparing to dump debug info."
    return [*observed, *first, (line + 62, received), (line - 148, preparing)]


def desync_report(own: int, call: Call, sequence: int, latest: Mapping[int, tuple[int, str, bool]], size: int) -> str:
    """Return the report of TORCH_NCCL_DESYNC_DEBUG (TraceUtils.h).

    `latest`: by rank in the group the number of the last call that it started, its type, and whether it ended.
    """
    report = [f"\n\t - [{own}] Timeout at collective: {op_type(call)}, #{sequence}"]
    missing = [rank for rank in range(size) if rank not in latest]
    if missing:
        report.append(
            f"\t - To our best knowledge, ranks [{_ranks(missing)}] are the lagging ranks that caused this timeout. "
            "They never joined any collectives"
        )
    if latest:
        report += _lagging(latest) + _snapshot(latest)
    return "\n".join(report)


def _lagging(latest: Mapping[int, tuple[int, str, bool]]) -> list[str]:
    least = min(number for number, _, _ in latest.values())
    began = [rank for rank, (number, _, is_done) in sorted(latest.items()) if number == least and not is_done]
    ended = [rank for rank, (number, _, is_done) in sorted(latest.items()) if number == least and is_done]
    lines = ["\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:"]
    if began:
        lines.append(f"\t   - [{_ranks(began)}] joined but didn't finish collective #{least} (count from 1)")
    if ended:
        lines.append(
            f"\t     [{_ranks(ended)}] finished collective #{least}, but didn't join collective #{least + 1} "
            "(count from 1)"
        )
    return lines


def _snapshot(latest: Mapping[int, tuple[int, str, bool]]) -> list[str]:
    lines = ["\t - Snapshot of ranks' latest states:"]
    for number in sorted({number for number, _, _ in latest.values()}):
        for is_done, verb in ((False, "started"), (True, "finished")):
            by_type: dict[str, list[int]] = {}
            for rank, (own, name, has_ended) in sorted(latest.items()):
                if own == number and has_ended == is_done:
                    by_type.setdefault(name, []).append(rank)
            if by_type:
                lines.append(f"\t   #{number} {verb} ranks:")
                lines += [f"\t     [{_ranks(ranks)}] {verb} {name}" for name, ranks in by_type.items()]
    return lines


def _ranks(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
