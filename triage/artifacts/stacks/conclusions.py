"""What follows from the stacks of all ranks together: which rank stands elsewhere, and what all of them do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triage.artifacts.stacks.members import (
    ComparedProcess,
    be,
    describe_members,
    group_members,
    name_callers,
    name_members,
    ranks_of,
)
from triage.base.rank_ranges import format_ranks
from triage.evidence.inference import BLOCKED, HUNG, may_end_early
from triage.stacks.live.kernel import SPECIFIC_KINDS
from triage.stacks.live.model import KERNEL_TOOLS, PYTHON_TOOLS
from triage.stacks.live.states import STUCK, WAITING

_CAUSES = {"dataloader": "blocked-in-dataloader", "deadlock": "thread-deadlock", "exit": "left-early"}
_PLAIN = ("idle", "running", "backward")
"""States of a process whose stack ends in a line of the program."""
_ONE_MOMENT = "one dump does not show whether a rank is stuck or only slow; a second one a minute later does"
_MAY_WAIT = "without native frames, a line of the program may wait for the device, as `loss.item()` does"
_MAY_BE_ONE = "these dumps have the same main thread: of processes forked from one, or of one process that moved"
_OTHER_GROUPS = "stacks do not show process groups, and calls of different groups may wait at the same time"
_NO_LINES = "native frames do not show whether most ranks are in one call"
_NO_PEER = "the stacks do not name the peer, which may be the one that left out its half"
_Members = Sequence[ComparedProcess]


@dataclass(frozen=True, slots=True)
class StackInference:
    """What follows from all stacks together: the name of a rule that signatures match, and the ranks that it names.

    `waiting` are ranks that wait for those. `uncertainty` says which other explanation the stacks allow.
    """

    rule: str
    ranks: tuple[int, ...]
    text: str
    waiting: tuple[int, ...] = ()
    uncertainty: str = ""


def infer_from_members(
    members: _Members, missing: Sequence[int] = (), has_timeout: bool = False
) -> list[StackInference]:
    """Return what follows from the states of the processes; `missing` are ranks of the job without a stack.

    A thread that sleeps in the kernel blames no rank, and a single dump only where threads hold each other's locks. If
    no rule says why the job hangs, the inference HUNG says where each rank stands. `has_timeout`: it hangs for sure.
    """
    members = name_callers(members)
    split = _Split([member for member in members if not member.has_moved])
    if not split.members:
        return []
    reasons = [
        replace(each, uncertainty=each.uncertainty or split.doubt(has_timeout))
        for each in _find_reasons(split)
        if not (missing and each.rule == "p2p-mismatch")  # one of them may be the peer
    ]
    blocked = [_infer_blocked(split)] if len(split.members) > 1 and ranks_of(split.waiting) else []
    is_doubtful = any(member.is_doubtful for member in members)
    if not is_doubtful and reasons:
        return [*reasons, *blocked]
    return [_describe_hang(members, split, missing), *blocked]


class _Split:
    """The processes by what their stacks show of the others' collective: `waiting` in it, or `outside` of it.

    `unclear`: a dump of Python frames shows a line of the program, which may wait for the device. A process without
    any frame, as at its end, counts only if no other one is elsewhere.
    """

    def __init__(self, members: _Members) -> None:
        self.members = members
        self.waiting = [member for member in members if member.state.kind in WAITING]
        elsewhere = [member for member in members if member not in self.waiting and not _is_unspecific(member)]
        elsewhere = [member for member in elsewhere if not _is_without_frames(member)] or elsewhere
        self.unclear = [member for member in elsewhere if member.state.kind in _PLAIN and _is_python(member)]
        self.outside = [member for member in elsewhere if member not in self.unclear]

    def calls(self) -> dict[tuple[str, str, str], list[ComparedProcess]]:
        """Return the waiting processes by operation, line and caller."""
        calls: dict[tuple[str, str, str], list[ComparedProcess]] = defaultdict(list)
        for member in self.waiting:
            calls[member.state.op, member.state.place, member.caller].append(member)
        return calls

    def shows_call(self) -> bool:
        """Whether all that wait are in one call that the stacks name: the wait for a device does not name it."""
        return len({(op, place) for op, place, _ in self.calls()}) == 1 and self.waiting[0].state.kind != "device-sync"

    def doubt(self, has_timeout: bool) -> str:
        """Return why the processes outside may only be slow; empty where they are stuck."""
        is_deadlock = bool(self.outside) and all(member.state.op == "cycle" for member in self.outside)
        is_still = bool(self.outside) and all(member.is_still for member in self.outside)
        return "" if has_timeout or is_deadlock or is_still else _ONE_MOMENT


def _is_python(member: ComparedProcess) -> bool:
    return member.process.tool in PYTHON_TOOLS


def _is_unspecific(member: ComparedProcess) -> bool:
    return member.process.tool in KERNEL_TOOLS and member.state.kind not in SPECIFIC_KINDS


def _is_without_frames(member: ComparedProcess) -> bool:
    return _is_python(member) and member.key == (member.state.phrase,)


def _find_reasons(split: _Split) -> list[StackInference]:
    deadlocked = [member for member in split.members if member.state.op == "cycle"]
    if deadlocked and (len(split.members) < 2 or not split.waiting):
        return [StackInference("thread-deadlock", ranks_of(deadlocked), describe_members(deadlocked))]
    if len(split.members) < 2:
        return []
    if not split.waiting:
        return _infer_from_places(split.members)
    waiting = [*split.waiting, *split.unclear]
    if split.outside:
        return _infer_outside(split.outside, waiting) if len(split.outside) <= len(waiting) else []
    if split.unclear:
        is_clear = split.shows_call() and len(split.unclear) <= len(split.waiting)
        reasons = _infer_outside(split.unclear, split.waiting) if is_clear else []
        return [replace(each, uncertainty=_MAY_WAIT) for each in reasons]
    return _infer_divergent(split)


def _infer_blocked(split: _Split) -> StackInference:
    others = [*split.outside, *split.unclear]
    rest = f"; {name_members(others)} {be(others)} not" if others else ""
    return StackInference(BLOCKED, ranks_of(split.waiting), f"{describe_members(split.waiting)}{rest}")


def _infer_outside(outside: _Members, waiting: _Members) -> list[StackInference]:
    """Why ranks are not with the others, where their stack shows it; else that they are not."""
    by_rule: dict[str, list[ComparedProcess]] = defaultdict(list)
    for member in outside:
        by_rule[_CAUSES.get(member.state.kind, "never-joined")].append(member)
    return [
        StackInference(rule, ranks_of(each), f"{describe_members(each)}, while {describe_members(waiting)}")
        for rule, each in sorted(by_rule.items())
    ]


def _infer_divergent(split: _Split) -> list[StackInference]:
    """All ranks wait, but a few in another call: perhaps they took another way through the program.

    Some stacks do not show the call: the wait for a device, native frames alone.
    """
    if not all(map(_names_call, split.waiting)):
        return []
    if any(map(_is_p2p, split.waiting)):
        return _infer_unmatched(split)
    (_, usual), *others = sorted(split.calls().items(), key=lambda item: -len(item[1]))
    if not others:
        return _infer_second_call(split.waiting)
    if len(usual) * 2 <= len(split.waiting):
        return _infer_halves(usual, others[0][1]) if len(others) == 1 and len(others[0][1]) == len(usual) else []
    odd = [member for _, each in others for member in each]
    text = f"all ranks wait, but {describe_members(odd)}, while {describe_members(usual)}"
    if not usual[0].state.place and usual[0].state.kind != "rendezvous":
        return [StackInference("divergent-call", (), text, uncertainty=f"{_NO_LINES}; {_OTHER_GROUPS}")]
    return [_infer_odd_call(odd, text)]


def _infer_halves(one: _Members, other: _Members) -> list[StackInference]:
    """Half of the ranks wait in one operation, half in another, and both need all ranks: nobody is the odd one."""
    ops = [one[0].state.op, other[0].state.op]
    if ops[0] == ops[1] or any(map(may_end_early, ops)):
        return []
    text = f"all ranks wait, but {describe_members(one)}, while {describe_members(other)}"
    return [StackInference("divergent-call", (), text, uncertainty=f"either half may be wrong; {_OTHER_GROUPS}")]


def _infer_second_call(waiting: _Members) -> list[StackInference]:
    """All ranks wait in one call, but few of them in a second one too, by another thread."""
    odd = [member for member in waiting if member.state.beside]
    if not odd or len(odd) * 2 >= len(waiting):
        return []
    calls = " and ".join(sorted({member.state.beside for member in odd}))
    text = f"{describe_members(waiting)}, but another thread of {name_members(odd)} is in {calls}"
    return [StackInference("divergent-call", ranks_of(odd), text, uncertainty=_OTHER_GROUPS)]


def _infer_unmatched(split: _Split) -> list[StackInference]:
    """Some ranks send, or some receive, and all others are in one collective: nobody is in the other half."""
    pending = [member for member in split.waiting if _is_p2p(member)]
    others = [member for member in split.waiting if not _is_p2p(member)]
    halves = {half for member in pending for half in ("send", "recv") if half in member.state.op}
    places = {(member.state.op, member.state.place) for member in others}
    if len(halves) != 1 or len(places) != 1 or len(pending) > len(others):
        return []
    text = f"all ranks wait, but {describe_members(pending)}, while {describe_members(others)}"
    text += f": no rank is in the other half of {'this transfer' if len(pending) == 1 else 'these transfers'}"
    return [StackInference("p2p-mismatch", ranks_of(pending), text, uncertainty=_NO_PEER)]


def _infer_odd_call(odd: _Members, text: str) -> StackInference:
    """Blame the odd ranks, or nobody where the others may have passed their call, and one of those may have left it
    out: then the calls do not match, and the stacks show as little of the one as of the other.
    """
    if ops := sorted({member.state.op for member in odd if may_end_early(member.state.op)}):
        uncertainty = f"the others may have passed {ops[0]}, and one of them may have left it out"
        return StackInference("divergent-call", (), text, uncertainty=uncertainty)
    return StackInference("divergent-call", ranks_of(odd), text, uncertainty=_OTHER_GROUPS)


def _names_call(member: ComparedProcess) -> bool:
    state = member.state
    return state.kind == "rendezvous" or (state.kind != "device-sync" and bool(state.op or state.place))


def _is_p2p(member: ComparedProcess) -> bool:
    return "send" in member.state.op or "recv" in member.state.op


def _infer_from_places(members: _Members) -> list[StackInference]:
    """Ranks that are stuck elsewhere while most ranks stand at one line: a device's collectives are on no stack."""
    usual, odd = group_members(members)[0], _find_odd(members)
    if not odd or len(odd) * 2 >= len(members) or usual.state.kind in STUCK:
        return []
    is_clear = all(member.state.kind in STUCK or member.state.kind == "evaluation" for member in odd)
    return _infer_outside(odd, usual.members) if is_clear else []


def _find_odd(members: _Members) -> list[ComparedProcess]:
    """Return the processes that are not where most of them stand; none where no place has most."""
    usual = group_members(members)[0]
    return [member for member in members if member not in usual.members] if usual.is_usual else []


def _describe_hang(members: _Members, split: _Split, missing: Sequence[int]) -> StackInference:
    """Say where each process stands; the ranks it names are those for which the others may wait."""
    moving = [member for member in members if member.has_moved]
    waiting = [*split.waiting, *split.unclear]
    few = [member for member in split.outside if split.waiting or member.state.kind in STUCK]
    few = few or (split.unclear if split.waiting and split.shows_call() else []) or moving
    few = few or ([] if split.waiting or split.outside else _find_odd(members))
    few = few if len(few) * 2 <= len(members) or len(members) == 1 else []
    rest = [member for member in members if member not in few]
    parts = [f"{describe_members(few)}, while {describe_members(rest)}" if few and rest else describe_members(members)]
    parts += [f"{name_members(moving)} moved between two dumps"] if moving else []
    parts += [_explain_waits(split)] if len(members) > 1 and len(split.waiting) == len(members) else []
    parts += [_MAY_BE_ONE] if any(member.is_doubtful for member in members) else []
    parts += [f"no stack of {format_ranks(missing)} is among the files"] if missing else []
    suspects = ranks_of(few) if rest else ()
    suspects = suspects or (tuple(missing) if len(missing) <= len(waiting) == len(members) else ())
    return StackInference(HUNG, suspects, "; ".join(parts), ranks_of(split.waiting))


def _explain_waits(split: _Split) -> str:
    """What it means that all processes with a stack wait."""
    if any(map(_is_p2p, split.waiting)):
        return "a send or receive waits for its peer, so the stacks alone show no rank at fault"
    if len(split.calls()) > 1:
        return "they wait in different calls, so the stacks alone show no rank at fault"
    return "all wait in the same call: a rank without a stack, the network or a device holds it up"
