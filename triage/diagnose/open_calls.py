"""From the progress of ranks to the calls in which they wait: who is in each, who passed it, and who is missing.

Only the first open call of a rank counts: what it enqueued later stands behind that one. A member that waits elsewhere
joins the two calls to a chain. Sentences name the call of ranks that wait, and the place of those that do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from itertools import pairwise

from triage.base.lazy_dataclass import dataclass
from triage.diagnose.context import RuleContext
from triage.diagnose.npu_progress import read_npu_progress
from triage.diagnose.progress import Group, GroupProgress, Progress, read_progress
from triage.model import Evidence, ExceptionDetail, StackDetail

_PAIR = 2
_A_COLLECTIVE = "a collective"
_WAITING = frozenset(("collective", "rendezvous", "device-sync"))
_MOST_STACKS = 3

CallKey = tuple[str, int, int]
"""Key of the group, number (-1: none), and the rank whose transfer it is (-1: a collective)."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call in which ranks wait. `waiting`: rank to its progress; `passed`: members that are past it.

    Of the members that are not in it, `elsewhere` maps those that wait in other calls to these, `behind` those
    that wait in nothing to the last work that they enqueued, and of the `silent` no line says anything. `is_whole`:
    all members are known.
    """

    key: CallKey
    group: Group
    waiting: Mapping[int, GroupProgress]
    passed: frozenset[int] = frozenset()
    elsewhere: Mapping[int, tuple[CallKey, ...]] | None = None
    behind: Mapping[int, int] | None = None
    silent: frozenset[int] = frozenset()
    is_whole: bool = True

    @property
    def seq(self) -> int | None:
        """The number of the call in its group, if lines state it."""
        return self.key[1] if self.key[1] >= 0 else None

    @property
    def is_transfer(self) -> bool:
        """Whether it is a transfer between two ranks."""
        return self.key[2] >= 0

    @property
    def first(self) -> GroupProgress:
        """The progress of the lowest rank that waits in it."""
        return self.waiting[min(self.waiting)]

    def __str__(self) -> str:
        return f"{self.first.call} of {self.group.label}"


def read_job_progress(context: RuleContext) -> Progress:
    """Return how far each rank of the job came."""
    progress = read_progress(context.facts)
    return progress if progress.entries else read_npu_progress(context)


def find_job_calls(context: RuleContext) -> list[Call]:
    """Return the calls in which ranks of the job wait, those of the lowest ranks first."""
    return list(find_calls(context.once(read_job_progress), context.all_ranks).values())


def find_calls(progress: Progress, all_ranks: frozenset[int]) -> dict[CallKey, Call]:
    """Return the calls in which ranks wait, by key, those of the lowest ranks first."""
    keys = _key_first_calls(progress)
    waiting: dict[CallKey, dict[int, GroupProgress]] = defaultdict(dict)
    for rank, own in keys.items():
        for key, entry in own.items():
            waiting[key][rank] = entry
    members = find_members(progress, all_ranks)
    places = {rank: tuple(own) for rank, own in keys.items()}
    calls = (_make_call(key, ranks, progress, places, *members[_group_in(ranks)]) for key, ranks in waiting.items())
    return {call.key: call for call in calls}


def _group_in(ranks: Mapping[int, GroupProgress]) -> Group:
    return next(iter(ranks.values())).group


def _key_first_calls(progress: Progress) -> dict[int, dict[CallKey, GroupProgress]]:
    """Return rank to its first open calls by key. Coalesced calls are collectives where all have one number."""
    entries = [entry for rank in sorted(progress.first_open) for entry in progress.first_open[rank]]
    numbers: dict[Group, set[tuple[str, int | None]]] = defaultdict(set)
    for entry in entries:
        if entry.call is not None:
            numbers[entry.group].add((entry.call.op, entry.call.seq))
    keys: dict[int, dict[CallKey, GroupProgress]] = defaultdict(dict)
    for entry in entries:
        call = entry.call
        if call is not None:
            is_transfer = call.is_transfer and (call.op != "COALESCED" or len(numbers[entry.group]) > 1)
            number = -1 if call.seq is None else call.seq
            keys[entry.rank][entry.group.key, number, entry.rank if is_transfer else -1] = entry
    return keys


def _make_call(
    key: CallKey,
    waiting: Mapping[int, GroupProgress],
    progress: Progress,
    keys: Mapping[int, tuple[CallKey, ...]],
    members: frozenset[int],
    is_whole: bool,
) -> Call:
    group = _group_in(waiting)
    if key[2] >= 0:
        return _make_transfer(key, group, waiting, keys, members, is_whole)
    passed, elsewhere = set[int](), dict[int, tuple[CallKey, ...]]()
    behind, silent = dict[int, int](), set[int]()
    entries = progress.by_group[group]
    for rank in members.difference(waiting):
        entry, others = entries.get(rank), keys.get(rank, ())
        if _is_past(key, entry, others):
            passed.add(rank)
        elif others:
            elsewhere[rank] = others
        elif entry is None or entry.enqueued is None:
            silent.add(rank)
        elif entry.enqueued < key[1]:
            behind[rank] = entry.enqueued
    return Call(key, group, waiting, frozenset(passed), elsewhere, behind, frozenset(silent), is_whole)


def _is_past(key: CallKey, entry: GroupProgress | None, others: tuple[CallKey, ...]) -> bool:
    """Whether a member is past a call: it waits in a later one of the group, or had completed this one."""
    same = [other for other in others if other[0] == key[0] and other[2] < 0]
    if same:
        return same[0][1] > key[1] >= 0
    return entry is not None and entry.completed is not None and entry.completed >= key[1] >= 0


def _make_transfer(
    key: CallKey,
    group: Group,
    waiting: Mapping[int, GroupProgress],
    keys: Mapping[int, tuple[CallKey, ...]],
    members: frozenset[int],
    is_whole: bool,
) -> Call:
    """Return a transfer: its partner is stated or the other one of two, else it may be any member of the group."""
    partner = next(iter(waiting.values())).partner
    others = members.difference(waiting) if partner is None else frozenset((partner,))
    if not is_whole and partner is None:
        return Call(key, group, waiting, is_whole=False)
    elsewhere = {rank: keys[rank] for rank in sorted(others) if rank in keys}
    silent = others - keys.keys() if len(others) == 1 else frozenset[int]()
    return Call(key, group, waiting, elsewhere=elsewhere, silent=silent, is_whole=len(others) == 1)


def find_members(progress: Progress, all_ranks: frozenset[int]) -> dict[Group, tuple[frozenset[int], bool]]:
    """Return group to its members, as far as lines show them, and whether these are all.

    Of a regular mesh, the ranks of a group are equally far apart, and groups of one name are equally large.
    """
    members: dict[Group, tuple[frozenset[int], bool]] = {}
    by_name: dict[str, list[tuple[Group, dict[int, int]]]] = defaultdict(list)
    for group, entries in progress.by_group.items():
        if group in progress.members:
            members[group] = progress.members[group], True
            continue
        shown = _shown_members(entries) & all_ranks
        is_whole = group.is_default or len(all_ranks) == _PAIR or shown >= all_ranks
        members[group] = (all_ranks if is_whole else shown, is_whole)
        if not is_whole and group.name:
            by_name[group.name].append((group, _local_ranks(entries)))
    for groups in by_name.values():
        steps = {step for _, ranks in groups if (step := _step_between(ranks))}
        size = max((max(ranks, default=-1) for _, ranks in groups), default=-1) + 1
        if len(groups) < 2 or len(steps) != 1 or size < 2:
            continue
        (step,) = steps
        for group, ranks in groups:
            inferred = {rank + (i - local) * step for local, rank in ranks.items() for i in range(size)}
            if len(inferred) == size and inferred <= all_ranks:
                members[group] = frozenset(inferred), True
    return members


def _shown_members(entries: Mapping[int, GroupProgress]) -> frozenset[int]:
    """Return the ranks with lines of a group, and those before a rank that has its own number in the group."""
    own = max((rank for rank, entry in entries.items() if entry.local_rank == rank), default=-1)
    return frozenset(entries).union(range(own + 1))


def _local_ranks(entries: Mapping[int, GroupProgress]) -> dict[int, int]:
    return {entry.local_rank: rank for rank, entry in entries.items() if entry.local_rank is not None}


def _step_between(ranks: Mapping[int, int]) -> int:
    """Return how far apart neighbours in a group are; 0 where its ranks do not show it, or not equally."""
    ordered = sorted(ranks.items())
    steps = set()
    for (local, rank), (next_local, next_rank) in pairwise(ordered):
        step, rest = divmod(next_rank - rank, next_local - local)
        steps.add(0 if rest else step)
    return steps.pop() if len(steps) == 1 else 0


def name_wait(context: RuleContext, waiting: Set[int]) -> str:
    """Return the one call in which all these ranks wait, as `ALLREDUCE #40 of the default group`; else `a collective`.

    Without numbers of watchdogs, it is the line of the program in their stacks and exceptions, if all that show one
    show the same.
    """
    calls = [call for call in context.once(find_job_calls) if not call.waiting.keys().isdisjoint(waiting)]
    if calls:
        ops = {entry.call.op for entry in calls[0].waiting.values() if entry.call}
        is_one = len(calls) == len(ops) == 1 and calls[0].waiting.keys() >= waiting and calls[0].seq is not None
        return str(calls[0]) if is_one else _A_COLLECTIVE
    places = {place for fact in context.facts if fact.origin.rank in waiting and (place := _find_call_line(fact))}
    return places.pop() if len(places) == 1 else _A_COLLECTIVE


def _find_call_line(fact: Evidence) -> str:
    """Return `all_reduce in evaluate at train.py:31` for a stack or an exception in a collective, else nothing."""
    op = function = place = ""
    if isinstance(fact.detail, StackDetail) and fact.detail.state in _WAITING:
        op, place = fact.detail.op, fact.detail.place
        end = f" ({place})"
        function = next((frame.removesuffix(end) for frame in reversed(fact.detail.key) if frame.endswith(end)), "")
    elif isinstance(fact.detail, ExceptionDetail) and (op := fact.fields.get("op", "")):
        function = fact.fields.get("function", "")
        place = f"{fact.fields['file'].rsplit('/', 1)[-1]}:{fact.fields['line']}"
    if not op or not place:
        return ""
    return f"{op} in {function} at {place}" if function not in ("", "<module>") else f"{op} at {place}"


def describe_stacks(context: RuleContext, ranks: Set[int]) -> str:
    """Return a clause with what the stacks of ranks outside of collectives show, or nothing."""
    states: dict[int, str] = {}
    for fact in context.facts:
        detail, rank = fact.detail, fact.origin.rank
        if isinstance(detail, StackDetail) and rank in ranks and rank is not None and detail.state not in _WAITING:
            states[rank] = f"{detail.phrase} at {detail.place}" if detail.place else detail.phrase
    shown = [f"by its stack, rank {rank} is {state}" for rank, state in sorted(states.items())[:_MOST_STACKS]]
    return "".join(f"; {each}" for each in shown)
