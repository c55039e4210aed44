"""The stacks of all ranks compared: groups with the same stack, the usual one and the others, and what follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from triage.base.rank_ranges import format_ranks
from triage.stacks.live.kernel import SPECIFIC_KINDS
from triage.stacks.live.model import KERNEL_TOOLS, PYTHON_TOOLS, Process, State, format_state
from triage.stacks.live.states import HELPERS, STUCK, WAITING, combine_states

STARTUP_S = 120
"""A process may import modules for this long after its start; the real time depends on the file system."""
_UNSPECIFIC = ("idle", "running", "unknown", "backward")


@dataclass(frozen=True, slots=True)
class ComparedProcess:
    """One process of the job and where it stands; `key` is equal for processes at the same place."""

    label: str
    rank: int | None
    process: Process
    state: State
    key: tuple[str, ...]
    has_moved: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Processes with the same stack; `key` has the innermost frame first."""

    members: tuple[ComparedProcess, ...]
    key: tuple[str, ...]
    state: State
    is_usual: bool = False


@dataclass(frozen=True, slots=True)
class StackInference:
    """What follows from all stacks together: the name of a rule that signatures match, and the ranks that it names."""

    rule: str
    ranks: tuple[int, ...]
    text: str


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


def compare_stacks(dumps: Sequence[DumpState]) -> StackComparison:
    """Compare all dumps. Several dumps of one process become one member; if they differ, the process has moved."""
    by_label: dict[str, list[DumpState]] = defaultdict(list)
    # Sorting is stable: dumps of one file stay in the order of the file.
    for dump in sorted(_with_ranks(dumps), key=lambda dump: (dump.process.source, dump.process.pid or 0)):
        by_label[format_label(dump.process)].append(dump)
    members = [_merge_dumps(label, each) for label, each in by_label.items()]
    helpers = [member for member in members if member.state.kind in HELPERS and member.rank is None]
    ranks = sorted((member for member in members if member not in helpers), key=_order)
    notes = [
        f"{member.label} moved between two dumps, so it is slow, not stuck" for member in ranks if member.has_moved
    ]
    starting = [member for member in ranks if _is_starting(member)]
    if starting:
        notes.append(
            f"{_name_members(starting)} still imported modules when the stacks were taken, "
            "so they do not show which rank delays the others; take them again after the start"
        )
    return StackComparison(
        tuple(_group(ranks)),
        tuple(sorted(helpers, key=_order)),
        () if starting else tuple(infer_from_ranks(ranks)),
        tuple(notes),
    )


def _name_members(members: Sequence[ComparedProcess]) -> str:
    ranks = [member.rank for member in members if member.rank is not None]
    return format_ranks(ranks) if ranks else f"{len(members)} processes" if len(members) > 1 else members[0].label


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
    """Return `rank 3`; without a rank `pid 123`, with its host where one is known."""
    if process.rank is not None:
        return f"rank {process.rank}"
    where = f" on {process.host}" if process.host else ""
    return f"pid {process.pid}{where}" if process.pid is not None else process.source


def _merge_dumps(label: str, dumps: Sequence[DumpState]) -> ComparedProcess:
    """The most specific dump of a process, completed by the others.

    A dump with Python frames says more than one without, and the kernel adds the file or the device.
    """
    stacks = _newest([dump for dump in dumps if dump.process.tool not in KERNEL_TOOLS])
    kernel = [dump for dump in dumps if dump.process.tool in KERNEL_TOOLS]
    candidates = stacks or kernel
    process, state, key = max(candidates, key=_specificity)
    if not state.place:
        state = replace(state, place=next((each.state.place for each in candidates if each.state.place), ""))
    if process.tool not in PYTHON_TOOLS:  # ranks are compared by the frames that most of their dumps have
        key = next((each.key for each in candidates if each.process.tool in PYTHON_TOOLS and each.key), key)
    has_moved = len({each.key for each in candidates if each.key and each.process.tool == process.tool}) > 1
    if stacks and kernel:
        state = combine_states(
            state, max(kernel, key=lambda each: (bool(each.state.remark), each.process.source)).state
        )
    age = next((each.process.age for each in reversed(dumps) if each.process.age is not None), None)
    return ComparedProcess(label, process.rank, replace(process, age=age), state, key or (state.phrase,), has_moved)


def _specificity(dump: DumpState) -> tuple[bool, bool, bool, str]:
    process, state, key = dump
    return state.kind not in _UNSPECIFIC, bool(key), process.tool in PYTHON_TOOLS, process.source


def _newest(dumps: Sequence[DumpState]) -> list[DumpState]:
    """The last two dumps of each log and tool: they show whether the process still moves at the end."""
    by_source: dict[tuple[str, str], list[DumpState]] = defaultdict(list)
    for dump in dumps:
        by_source[dump.process.source, dump.process.tool].append(dump)
    return [dump for each in by_source.values() for dump in each[-2:]]


def _order(member: ComparedProcess) -> tuple[bool, int, str]:
    return (member.rank is None, member.rank or 0, member.label)


def _group(members: Sequence[ComparedProcess]) -> list[Group]:
    """The members by where they stand, largest group first; it is the usual one if it is larger than the next."""
    by_key: dict[tuple[str, ...], list[ComparedProcess]] = defaultdict(list)
    for member in members:
        by_key[_comparison_key(member)].append(member)
    ordered = sorted(by_key.items(), key=lambda item: (-len(item[1]), _order(item[1][0])))
    most = len(ordered[0][1]) if ordered else 0
    has_usual = len(ordered) == 1 or (most > 1 and len(ordered[1][1]) < most)
    return [
        Group(tuple(each), tuple(reversed(key)), each[0].state, has_usual and position == 0)
        for position, (key, each) in enumerate(ordered)
    ]


def _comparison_key(member: ComparedProcess) -> tuple[str, ...]:
    """The frames that are compared: not those within an import, which change by the millisecond."""
    if member.state.kind != "import":
        return member.key
    place = next((index for index, frame in enumerate(member.key) if "(<frozen importlib" in frame), len(member.key))
    return member.key[:place] or member.key


def infer_from_ranks(members: Sequence[ComparedProcess]) -> list[StackInference]:
    """Return what follows from the states of the ranks.

    Neither a single dump (except for threads that hold each other's locks) nor a thread that sleeps blames a rank.
    """
    states = {member.rank: member.state for member in members if member.rank is not None and not member.has_moved}
    waiting = {rank: state for rank, state in states.items() if state.kind in WAITING}
    unspecific = {
        member.rank
        for member in members
        if member.process.tool in KERNEL_TOOLS and member.state.kind not in SPECIFIC_KINDS
    }
    absent = {rank: state for rank, state in states.items() if state.kind not in WAITING and rank not in unspecific}
    deadlocked = {rank: state for rank, state in states.items() if state.op == "cycle"}
    if deadlocked and (len(states) < 2 or not waiting):
        return [StackInference("thread-deadlock", tuple(sorted(deadlocked)), _describe(deadlocked))]
    if len(states) < 2:
        return []
    if not waiting:
        return _infer_from_places(members)
    inferences = [_infer_blocked(waiting, absent)]
    if absent and len(absent) <= max(1, len(waiting)):
        return [*_infer_absent(absent, waiting), *inferences]
    return inferences if absent else [*_infer_divergent(waiting), *inferences]


def _infer_blocked(waiting: Mapping[int, State], absent: Collection[int]) -> StackInference:
    rest = f"; {format_ranks(absent)} {_is(absent)} not" if absent else ""
    return StackInference("blocked-in-collective", tuple(sorted(waiting)), f"{_describe(waiting)}{rest}")


_CAUSES = {"dataloader": "blocked-in-dataloader", "deadlock": "thread-deadlock", "exit": "left-early"}


def _infer_absent(absent: Mapping[int, State], waiting: Mapping[int, State]) -> list[StackInference]:
    """Why ranks are absent, where their stack shows it; else that they are absent."""
    by_rule: dict[str, dict[int, State]] = defaultdict(dict)
    for rank, state in absent.items():
        by_rule[_CAUSES.get(state.kind, "never-joined")][rank] = state
    return [
        StackInference(rule, tuple(sorted(states)), f"{_describe(states)}, while {_describe(waiting)}")
        for rule, states in sorted(by_rule.items())
    ]


def _infer_divergent(waiting: Mapping[int, State]) -> list[StackInference]:
    """All ranks wait, but a few in another call: they took another way through the program."""
    by_call: dict[tuple[str, str], dict[int, State]] = defaultdict(dict)
    for rank, state in waiting.items():
        by_call[(state.op, state.place)][rank] = state
    (_, usual), *others = sorted(by_call.items(), key=lambda item: -len(item[1]))
    has_p2p = any(state.op.endswith(("send", "recv")) for state in waiting.values())
    if not others or len(usual) * 2 <= len(waiting) or has_p2p:
        return []
    odd = {rank: state for _, states in others for rank, state in states.items()}
    text = f"all ranks wait, but {_describe(odd)}, while {_describe(usual)}"
    return [StackInference("divergent-call", tuple(sorted(odd)), text)]


def _infer_from_places(members: Sequence[ComparedProcess]) -> list[StackInference]:
    """Ranks that are stuck elsewhere while most ranks stand at one line: a device's collectives are on no stack."""
    ranked = [member for member in members if member.rank is not None]
    (usual, *_) = _group(ranked)
    odd = {m.rank: m.state for m in ranked if _comparison_key(m) != usual.key[::-1] and m.rank is not None}
    if not usual.is_usual or not odd or len(odd) * 2 >= len(ranked) or usual.state.kind in STUCK:
        return []
    if not all(state.kind in STUCK for state in odd.values()):
        return []
    return _infer_absent(odd, {m.rank: m.state for m in usual.members if m.rank is not None})


def _describe(states: Mapping[int, State]) -> str:
    """`ranks 0-1, 3 are in all_reduce at train.py:25`, each state once."""
    by_state: dict[str, list[int]] = defaultdict(list)
    for rank, state in sorted(states.items()):
        # Descriptors and times differ between ranks: they are only shown for a single rank.
        by_state[format_state(state if len(states) == 1 else replace(state, remark=""))].append(rank)
    return " and ".join(f"{format_ranks(ranks)} {_is(ranks)} {state}" for state, ranks in by_state.items())


def _is(ranks: Collection[int]) -> str:
    return "is" if len(ranks) == 1 else "are"
