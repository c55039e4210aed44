"""Inferences from sequence numbers: how far each rank was in a process group when its watchdog printed it.

ProcessGroupNCCL (torch ≥ 2.3) prints the last work a rank enqueued and the last it completed; ProcessGroupHCCL
likewise. Numbers count within one group. The rank in `[PG … Rank r]` is local to its group, so the writer of the line
is taken. Torch 2.3 prints uninitialised numbers: what is beyond 2^40 is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_range
from triage.model.evidence import Evidence

_GROUP = lazy_re(r"\[PG (?:ID )?(\d+)(?: PG GUID (\w+))?(?: ?\(([^)]*)\))? Rank \d+\]")
_WORK = lazy_re(r"[Ll]ast enqueued (?:[NH]CCL )?work: (-?\d+), last completed (?:[NH]CCL )?work: (-?\d+)")
_NO_DESCRIPTION = "undefined"
PROGRESS_HINT = "ast enqueued"  # with a large L where the watchdog of another rank asked for a dump
_LARGEST = 1 << 40
_PAIR = 2
# Numbers of one group that are so many times apart are rather those of two groups, which the lines do not name.
_OTHER_GROUP_FACTOR = 3


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """How far one rank was in one process group, as work numbers. -1: nothing yet."""

    rank: int
    enqueued: int
    completed: int
    fact: Evidence


def group_of(text: str) -> tuple[str, str]:
    """Return a line's process group: key (GUID, before torch 2.5 the number, and description) and name, or empty."""
    group = _GROUP.search(text) if "[PG " in text else None
    if group is None:
        return "", ""
    number, description = group[2] or group[1], group[3] if group[3] != _NO_DESCRIPTION else ""
    return f"{number}({description})" if description else number, description or number


def progress_by_group(facts: Iterable[Evidence]) -> dict[str, list[GroupProgress]]:
    """Return key of the group (see group_of) to the first progress that each rank reported, ascending by rank."""
    groups: dict[str, dict[int, GroupProgress]] = {}
    for fact in facts:
        work = _WORK.search(fact.text) if PROGRESS_HINT in fact.text else None
        rank = fact.origin.rank
        if work is None or rank is None:
            continue
        enqueued, completed = int(work[1]), int(work[2])
        if max(abs(enqueued), abs(completed)) > _LARGEST:
            continue
        ranks = groups.setdefault(group_of(fact.text)[0], {})
        ranks.setdefault(rank, GroupProgress(rank, enqueued, completed, fact))
    return {name: [ranks[rank] for rank in sorted(ranks)] for name, ranks in sorted(groups.items())}


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the numbers of a group say: a rule's name, the ranks it names, a sentence without them, and its evidence."""

    rule: str
    ranks: frozenset[int]
    text: str
    evidence: Evidence


def compare_progress(facts: Sequence[Evidence], all_ranks: frozenset[int]) -> Conclusion | None:
    """Return what the first group with a conclusion says; None where none has (too few ranks, no majority).

    A group without pending work says that the hang is outside of collectives only if no group has pending work.
    """
    groups = progress_by_group(facts)
    has_pending = any(rank.enqueued != rank.completed for ranks in groups.values() for rank in ranks)
    for ranks in groups.values():
        if len(ranks) >= 2:
            name = group_of(ranks[0].fact.text)[1] or "the process group"
            conclusion = _compare_group(name, ranks, all_ranks)
            if conclusion is not None and not (has_pending and conclusion.rule == "outside-collectives"):
                return conclusion
    return None


def compare_waits(waits: Sequence[GroupProgress], all_ranks: frozenset[int]) -> Conclusion | None:
    """Return who waits in another collective than most, by numbers in lines that name no process group.

    Every rank must wait: where one does not, the others wait for that one.
    """
    if {wait.rank for wait in waits} != all_ranks or len({wait.enqueued for wait in waits}) < 2:
        return None
    conclusion = _compare_group("a process group without a name", waits, all_ranks)
    if conclusion is None:
        return None
    (usual, most), *others = Counter(wait.enqueued for wait in waits).most_common()
    if all(max(usual, number) < _OTHER_GROUP_FACTOR * min(usual, number) for number, _ in others):
        return conclusion
    odd = [wait for wait in waits if wait.rank in conclusion.ranks]
    if len(odd) == len(waits):
        return _conclude("divergent-call", odd, f"wait in collectives {_list(odd)}, perhaps of two process groups")
    text = f"waits in collective {_span(odd)}" if len(odd) == 1 else f"wait in collectives {_span(odd)}"
    text += f" while {most} ranks wait in {usual}, perhaps of another process group"
    return _conclude("divergent-call", odd, text)


def _compare_group(name: str, ranks: Sequence[GroupProgress], all_ranks: frozenset[int]) -> Conclusion | None:
    """Return who is ahead of or behind the majority, or where all are at the same place."""
    (usual, most), *others = Counter(rank.enqueued for rank in ranks).most_common()
    if others and most * 2 > len(ranks):
        behind = [rank for rank in ranks if rank.enqueued < usual]
        if behind:
            text = f"enqueued only work {_span(behind)} of {name}; {most} ranks reached {usual}"
            return _conclude("lagging-rank", behind, text)
        ahead = [rank for rank in ranks if rank.enqueued > usual]
        text = f"enqueued work {_span(ahead)} of {name}; {most} ranks went only to {usual}"
        return _conclude("extra-collective", ahead, text)
    if others and all_ranks == {rank.rank for rank in ranks} and len(ranks) == _PAIR:
        text = f"enqueued work {_list(ranks)} of {name}; two ranks have no majority, so either may be wrong"
        return _conclude("lagging-rank", ranks, text)
    if others or not all_ranks <= {rank.rank for rank in ranks}:
        return None
    completed = {rank.completed for rank in ranks}
    if all(rank.enqueued == rank.completed for rank in ranks):
        text = f"completed all work enqueued in {name} ({usual}), so they hang outside of collectives"
        return _conclude("outside-collectives", ranks, text)
    if len(completed) == 1:
        text = f"all wait in work {usual} of {name} after completing {completed.pop()}: the transfer itself hangs"
        return _conclude("stuck-in-collective", ranks, text)
    return None


def _conclude(rule: str, ranks: Sequence[GroupProgress], text: str) -> Conclusion:
    return Conclusion(rule, frozenset(rank.rank for rank in ranks), text, ranks[0].fact)


def _list(ranks: Sequence[GroupProgress]) -> str:
    return " and ".join(str(rank.enqueued) for rank in ranks)


def _span(ranks: Sequence[GroupProgress]) -> str:
    return format_range(min(rank.enqueued for rank in ranks), max(rank.enqueued for rank in ranks))
