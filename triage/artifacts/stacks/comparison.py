"""The dumps of a job → its processes, the groups that stand at the same place, and what follows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from triage.artifacts.stacks.conclusions import StackInference, infer_from_members
from triage.artifacts.stacks.members import ComparedProcess, Group, group_members, name_members, order_of
from triage.base.lazy_re import lazy_re
from triage.stacks.live.combined_states import add_native_state, combine_states
from triage.stacks.live.model import KERNEL_TOOLS, PYTHON_TOOLS, Process, State
from triage.stacks.live.states import HELPERS, WAITING

STARTUP_S = 120
"""A process may import modules for this long after its start; the real time depends on the file system."""
_COMPLETED = ("idle", "running", "unknown", "backward", "evaluation", "data", "lock-call")
"""States by the program's own functions, below which native frames show more."""
_MOST_PLACES = 2
_NUMBER = lazy_re(r"\d+")
_UNSPECIFIC = ("idle", "running", "unknown", "backward")


@dataclass(frozen=True, slots=True)
class StackComparison:
    """The groups, largest first; helper processes, which are no ranks; what follows; and notes on its limits."""

    groups: tuple[Group, ...] = ()
    helpers: tuple[ComparedProcess, ...] = ()
    inferences: tuple[StackInference, ...] = ()
    notes: tuple[str, ...] = ()


class DumpState(NamedTuple):
    """One dump of a process, its state, and the key that is equal for processes at the same place."""

    process: Process
    state: State
    key: tuple[str, ...]


def compare_stacks(
    dumps: Sequence[DumpState], expected: Collection[int] = (), has_timeout: bool = False
) -> StackComparison:
    """Compare all dumps. Several dumps of one process become one member; if they differ, the process has moved.

    `expected` are ranks that the job is known to have; `has_timeout`: its files show that it waited too long.
    """
    by_label: dict[str, list[DumpState]] = defaultdict(list)
    # Sorting is stable: dumps of one file stay in the order of the file.
    for dump in sorted(_with_ranks(dumps), key=lambda dump: (dump.process.source, dump.process.pid or 0)):
        by_label[format_label(dump.process)].append(dump)
    members = [member for label, each in by_label.items() for member in _find_members(label, each)]
    helpers = [member for member in members if member.state.kind in HELPERS and member.rank is None]
    ranks = sorted((_with_workers(member, helpers) for member in members if member not in helpers), key=order_of)
    notes = [
        f"{member.label} moved between two dumps, so it is slow, not stuck" for member in ranks if member.has_moved
    ]
    starting = [member for member in ranks if _is_starting(member)]
    if starting:
        notes.append(
            f"{name_members(starting)} still imported modules when the stacks were taken, "
            "so they do not show which rank delays the others; take them again after the start"
        )
    if helpers and not ranks:
        notes.append(f"the stacks are only of helpers ({name_members(helpers)}), not of a rank")
    return StackComparison(
        tuple(group_members(ranks)),
        tuple(sorted(helpers, key=order_of)),
        () if starting else tuple(infer_from_members(ranks, _missing_ranks(ranks, expected), has_timeout)),
        tuple(notes),
    )


def _with_workers(member: ComparedProcess, helpers: Sequence[ComparedProcess]) -> ComparedProcess:
    """Add to a process that waits for its data loader where the workers in its dump stand."""
    if member.state.kind != "dataloader":
        return member
    own = [one for one in helpers if one.state.kind == "worker" and one.process.source == member.process.source]
    places = list(dict.fromkeys(one.state.remark for one in own if one.state.remark))[:_MOST_PLACES]
    if not places:
        return member
    remark = f"{'its worker is' if len(own) == 1 else 'its workers are'} {' and '.join(places)}"
    return replace(member, state=replace(member.state, remark=remark))


def _missing_ranks(members: Sequence[ComparedProcess], expected: Collection[int]) -> list[int]:
    """Return the ranks without a stack, if few: those that are expected, and numbers below the highest rank with one.

    Processes without a rank may be any of them; a single stack was taken on purpose.
    """
    dumped = {member.rank for member in members if member.rank is not None}
    if len(dumped) < 2 or len(dumped) < len(members) or max(dumped) >= 2 * len(dumped):
        return []
    missing = sorted(({*range(max(dumped))} | {*expected}) - dumped)
    return missing if len(missing) <= len(dumped) else []


def _is_starting(member: ComparedProcess) -> bool:
    """Whether a young process imports modules; an old one is stuck in an import."""
    return member.state.kind == "import" and member.process.age is not None and member.process.age < STARTUP_S


def _with_ranks(dumps: Sequence[DumpState]) -> list[DumpState]:
    """The dumps; one without a rank gets that of another dump of the same process."""
    ranks_of: dict[tuple[str | None, int], set[int]] = defaultdict(set)
    for process, _, _ in dumps:
        if process.rank is not None and process.pid is not None:
            ranks_of[process.host, process.pid].add(process.rank)
    out = []
    for process, state, key in dumps:
        ranks = ranks_of.get((process.host, process.pid), set()) if process.pid is not None else set()
        if process.rank is None and len(ranks) == 1 and state.kind not in HELPERS:
            process = replace(process, rank=next(iter(ranks)))
        out.append(DumpState(process, state, key))
    return out


def format_label(process: Process) -> str:
    """Return `rank 3`; without a rank `pid 123 on node1`, or else what names its main thread or the file."""
    if process.rank is not None:
        return f"rank {process.rank}"
    where = f" on {process.host}" if process.host else ""
    if process.pid is not None:
        return f"pid {process.pid}{where}"
    return f"the process of {process.main}{where}" if process.main else process.source


def _find_members(label: str, dumps: Sequence[DumpState]) -> list[ComparedProcess]:
    """Return the processes of dumps with one label: several, if only the main thread names them and some wait.

    Processes that were forked from one have the same main thread, and one of them may hold up the others.
    """
    process = dumps[0].process
    are_named = process.rank is not None or process.pid is not None or not process.main
    is_still = len({dump.key for dump in dumps}) < 2 or not any(dump.state.kind in WAITING for dump in dumps)
    if are_named or is_still:
        return [_merge_dumps(label, dumps)]
    single = [_merge_dumps(f"process {number} of {len(dumps)}", [dump]) for number, dump in enumerate(dumps, 1)]
    return [replace(member, is_doubtful=True) for member in single]


def _merge_dumps(label: str, dumps: Sequence[DumpState]) -> ComparedProcess:
    """The most specific dump of a process, completed by the others.

    Python frames say where the program is, native ones what it does there, the kernel adds the file or the device.
    """
    stacks = _newest([dump for dump in dumps if dump.process.tool not in KERNEL_TOOLS])
    kernel = [dump for dump in dumps if dump.process.tool in KERNEL_TOOLS]
    candidates = stacks or kernel
    process, state, key = max(candidates, key=_specificity)
    state = _add_native_dump(state, candidates, bool(kernel))
    if process.tool not in PYTHON_TOOLS:  # ranks are compared by the frames that most of their dumps have
        key = next((each.key for each in candidates if each.process.tool in PYTHON_TOOLS and each.key), key)
    has_moved = len({each.key for each in candidates if each.key and each.process.tool == process.tool}) > 1
    if stacks and kernel:
        state = combine_states(
            state, max(kernel, key=lambda each: (bool(each.state.remark), each.process.source)).state
        )
    by_log = Counter((each.process.source, each.process.tool, each.key) for each in stacks)
    is_still = not has_moved and (max(by_log.values(), default=0) > 1 or _has_series(stacks))
    age = next((each.process.age for each in reversed(dumps) if each.process.age is not None), None)
    return ComparedProcess(
        label, process.rank, replace(process, age=age), state, key or (state.phrase,), has_moved, is_still
    )


def _has_series(stacks: Sequence[DumpState]) -> bool:
    """Whether files whose names differ only in numbers (`t0/rank2.txt`, `t1/rank2.txt`) show one process at one place.

    Files of one number in their names may be copies of each other.
    """
    sources: dict[tuple[str, int | None, str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for process, _, key in stacks:
        if process.pid is not None or process.main:
            series = _NUMBER.sub("0", process.source), process.pid, process.main, process.tool, key
            sources[series].add(process.source)
    return any(len(each) > 1 for each in sources.values())


def _add_native_dump(state: State, dumps: Sequence[DumpState], has_kernel: bool) -> State:
    """Add what dumps of native frames show to the state by dumps of Python frames; the kernel's would say it better."""
    python = [dump for dump in dumps if dump.process.tool in PYTHON_TOOLS]
    native = [dump for dump in dumps if dump.process.tool not in PYTHON_TOOLS]
    if not python or not native:
        return state
    program, below = max(python, key=_specificity).state, max(native, key=_specificity).state
    if below.op == "cycle" or (below.kind not in _UNSPECIFIC and program.kind in _COMPLETED and not has_kernel):
        return add_native_state(program, below)
    return program if program.place else replace(state, place=program.place)


def _specificity(dump: DumpState) -> tuple[bool, bool, bool, bool, str]:
    process, state, key = dump
    return state.op == "cycle", state.kind not in _UNSPECIFIC, bool(key), process.tool in PYTHON_TOOLS, process.source


def _newest(dumps: Sequence[DumpState]) -> list[DumpState]:
    """The last two dumps of each log and tool: they show whether the process still moves at the end.

    Where a log has dumps of a restarted process, those of the process before it do not count.
    """
    by_source: dict[tuple[str, str], list[DumpState]] = defaultdict(list)
    for dump in dumps:
        by_source[dump.process.source, dump.process.tool].append(dump)
    return [
        dump
        for each in by_source.values()
        for dump in each[-2:]
        if (dump.process.pid, dump.process.main) == (each[-1].process.pid, each[-1].process.main)
    ]
