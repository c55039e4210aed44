"""Reasoning over sequence numbers: how far each rank had come in a process group when the watchdog spoke.

ProcessGroupNCCL (torch ≥ 2.3) prints the last work a rank enqueued and the last it completed; ProcessGroupHCCL
likewise. Numbers count within one
group. The rank in `[PG … Rank r]` is local to its group, so the writer of the line is taken. Torch 2.3 prints
uninitialised numbers:
what is beyond 2^40 is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Evidence

_GROUP = lazy_re(r"\[PG (?:ID )?(\d+)(?: PG GUID (\w+))?(?: ?\(([^)]*)\))? Rank \d+\]")
_WORK = lazy_re(r"[Ll]ast enqueued (?:[NH]CCL )?work: (-?\d+), last completed (?:[NH]CCL )?work: (-?\d+)")
SAID = "ast enqueued"  # with a large L where the watchdog of another rank asked for a dump
_ABSURD = 1 << 40


@dataclass(frozen=True, slots=True)
class Progress:
    """The furthest that one rank reported of one group. -1: nothing yet."""

    rank: int
    enqueued: int
    completed: int
    fact: Evidence


def group_of(text: str) -> tuple[str, str]:
    """What tells the process group apart (GUID and description; before torch 2.5 there is no GUID), and what it is
    called. Empty: not said.
    """
    group = _GROUP.search(text) if "[PG " in text else None
    if group is None:
        return "", ""
    return f"{group[2] or ''}({group[3] or ''})" if group[2] or group[3] else group[1], group[3] or group[2] or group[1]


def by_group(facts: Iterable[Evidence]) -> dict[str, list[Progress]]:
    """What tells a group apart (see group_of) to the progress of the ranks that reported it, ascending by rank; of
    several reports of a rank the first.
    """
    groups: dict[str, dict[int, Progress]] = {}
    for fact in facts:
        work = _WORK.search(fact.text) if SAID in fact.text else None
        if work is None or fact.origin.rank is None:
            continue
        enqueued, completed = int(work[1]), int(work[2])
        if max(abs(enqueued), abs(completed)) > _ABSURD:
            continue
        groups.setdefault(group_of(fact.text)[0], {}).setdefault(
            fact.origin.rank, Progress(fact.origin.rank, enqueued, completed, fact)
        )
    return {name: [ranks[rank] for rank in sorted(ranks)] for name, ranks in sorted(groups.items())}


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A rule's name, the ranks it names, a sentence and the fact it stands on."""

    rule: str
    ranks: frozenset[int]
    text: str
    basis: Evidence


def conclude(facts: Sequence[Evidence], everybody: frozenset[int]) -> Conclusion | None:
    """What the numbers of the first telling group say; None when they say nothing (too few ranks, no majority)."""
    for ranks in by_group(facts).values():
        if len(ranks) >= 2:
            found = _compare(group_of(ranks[0].fact.text)[1] or "the process group", ranks, everybody)
            if found is not None:
                return found
    return None


def _compare(name: str, ranks: Sequence[Progress], everybody: frozenset[int]) -> Conclusion | None:
    """One group: somebody ahead or behind the majority, or all at the same place."""
    (usual, most), *others = Counter(rank.enqueued for rank in ranks).most_common()
    if others and most * 2 > len(ranks):
        ahead = [rank for rank in ranks if rank.enqueued > usual]
        behind = [rank for rank in ranks if rank.enqueued < usual]
        if behind:
            return _odd(
                "lagging-rank",
                behind,
                f"had enqueued only work {_span(behind)} of {name} when {most} ranks were at {usual}",
            )
        return _odd(
            "extra-collective",
            ahead,
            f"had enqueued work {_span(ahead)} of {name}, one or more beyond the {usual} of {most} ranks",
        )
    if others or not everybody <= {rank.rank for rank in ranks}:
        return None
    completed = {rank.completed for rank in ranks}
    if all(rank.enqueued == rank.completed for rank in ranks):
        return _odd(
            "outside-collectives",
            ranks,
            f"had completed everything they enqueued in {name} ({usual}): they hang outside of collectives",
        )
    if len(completed) == 1:
        return _odd(
            "stuck-in-collective",
            ranks,
            f"all wait in work {usual} of {name} and had completed {completed.pop()}: nobody is missing, the transfer itself hangs",
        )
    return None


def _odd(rule: str, ranks: Sequence[Progress], text: str) -> Conclusion:
    return Conclusion(rule, frozenset(rank.rank for rank in ranks), text, ranks[0].fact)


def _span(ranks: Sequence[Progress]) -> str:
    low, high = min(rank.enqueued for rank in ranks), max(rank.enqueued for rank in ranks)
    return str(low) if low == high else f"{low}-{high}"
