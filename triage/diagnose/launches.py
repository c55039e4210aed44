"""What NCCL logged of the calls that each rank enqueued, as progress of ranks in communicators.

Ranks of a communicator are compared at the first number at which their calls differ, else at the first call that not
all of them made. Where all lines of a rank were read, its calls are counted; else NCCL's own number is taken, if it
grew by one from call to call on each rank. NCCL counts sends and receives too, so beside those only counted calls
compare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from triage.base.lazy_dataclass import dataclass
from triage.diagnose.context import RuleContext
from triage.diagnose.progress import Group, GroupProgress, OpenCall, Progress
from triage.model import Evidence, LaunchedCall, LaunchesDetail

_DATA_TYPES = (
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8e4m3",
    "float8e5m2",
)  # fmt: skip
_SHORT = 18  # characters of a communicator's name in a sentence


@dataclass(frozen=True, slots=True)
class _Member:
    """One rank in a communicator: its calls by number, and the number of its last one (-1: none)."""

    fact: Evidence
    calls: Mapping[int, LaunchedCall]
    last: int


def read_launches(context: RuleContext) -> Progress:
    """Return the calls of communicators in which ranks differ: in what they called, or in how far they came."""
    entries: list[GroupProgress] = []
    whole: dict[Group, frozenset[int]] = {}
    for name, facts in sorted(_by_communicator(context).items()):
        members = _count(facts)
        size = max(_detail(fact).size for fact in facts.values())
        if len(members) < 2:
            continue
        group = Group(name, f"{name[:_SHORT]} ({size} ranks)")
        entries += _compare(group, members)
        if len(members) == size:
            whole[group] = frozenset(members)
    entries.sort(key=lambda entry: entry.rank)
    by_rank: dict[int, list[GroupProgress]] = defaultdict(list)
    for entry in entries:
        by_rank[entry.rank].append(entry)
    return Progress(entries, by_rank=dict(by_rank), members=whole)


def _detail(fact: Evidence) -> LaunchesDetail:
    if not isinstance(fact.detail, LaunchesDetail):
        raise TypeError(f"not the calls of a process: {fact.kind}")
    return fact.detail


def _by_communicator(context: RuleContext) -> dict[str, dict[int, Evidence]]:
    """Return the name of each communicator to the facts of its ranks.

    One without a name is that of all ranks, where each rank has only one of this size.
    """
    named: dict[str, dict[int, Evidence]] = defaultdict(dict)
    of_all: dict[int, list[Evidence]] = defaultdict(list)
    for fact in context.facts:
        rank = fact.origin.rank
        if rank is None or not isinstance(fact.detail, LaunchesDetail):
            continue
        if fact.detail.communicator:
            named[fact.detail.communicator][rank] = fact
        elif fact.detail.size == len(context.all_ranks):
            of_all[rank].append(fact)
    if of_all and all(len(facts) == 1 for facts in of_all.values()):
        named["of all ranks"] = {rank: facts[0] for rank, facts in of_all.items()}
    return named


def _count(facts: Mapping[int, Evidence]) -> dict[int, _Member]:
    """Return the members with their collectives numbered; empty if the numbers of ranks do not compare."""
    details = {rank: _detail(fact) for rank, fact in facts.items()}
    if all(detail.total is not None for detail in details.values()):
        starts = {rank: (detail.total or 0) - len(detail.calls) for rank, detail in details.items()}
    elif all(map(_grows_by_one, details.values())):
        starts = {rank: detail.calls[0].number for rank, detail in details.items()}
    else:
        return {}
    return {rank: _number(facts[rank], start) for rank, start in starts.items()}


def _grows_by_one(detail: LaunchesDetail) -> bool:
    numbers = [call.number for call in detail.calls]
    is_steady = len(numbers) > 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]
    return is_steady and not detail.has_transfers


def _number(fact: Evidence, start: int) -> _Member:
    calls = _detail(fact).calls
    return _Member(fact, dict(enumerate(calls, start)), start + len(calls) - 1)


def _compare(group: Group, members: Mapping[int, _Member]) -> list[GroupProgress]:
    """Return the progress of all members, where they differ."""
    lowest, highest = min(one.last for one in members.values()), max(one.last for one in members.values())
    begin = max(min(one.calls, default=one.last + 1) for one in members.values())
    for number in range(begin, lowest + 1):
        if len({_content(one.calls[number]) for one in members.values()}) > 1:
            return [_make_entry(rank, group, one, number, is_open=True) for rank, one in members.items()]
    if lowest == highest:
        return []
    return [_make_entry(rank, group, one, lowest + 1, is_open=one.last > lowest) for rank, one in members.items()]


def _make_entry(rank: int, group: Group, member: _Member, number: int, *, is_open: bool) -> GroupProgress:
    call, own = _open_call(number, member) if is_open else None, _detail(member.fact).member
    return GroupProgress(rank, group, member.fact, own if own >= 0 else None, member.last, call=call)


def _content(call: LaunchedCall) -> tuple[str, int, int]:
    """What all members must agree on: every operation of NCCL has one size on all ranks."""
    return call.operation, call.count, call.data_type


def _open_call(number: int, member: _Member) -> OpenCall:
    call = member.calls.get(number)
    if call is None:
        return OpenCall(number, has_timed_out=False)
    is_known = 0 <= call.data_type < len(_DATA_TYPES)
    data_type = _DATA_TYPES[call.data_type] if is_known else str(call.data_type)
    return OpenCall(number, call.operation, (str(call.count),), has_timed_out=False, data_type=data_type)
