"""What began it: which candidate explains which, and which of the unexplained ones we would act on.

Every choice leaves a sentence, for the chosen one and for those that lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.model import Edge
from triage.diagnose.candidates import Candidate
from triage.diagnose.rules import say_ranks

# Stamps closer than this do not order events: torch ≥ 2.4 stamps are whole seconds, and so are torchelastic's.
RESOLUTION = 2.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The chosen root (None: nothing failed, or only symptoms), the other independent roots, and the confidence in the choice."""

    root: Candidate | None
    others: tuple[Candidate, ...]
    confidence: float


def explain(candidates: Sequence[Candidate]) -> None:
    """Fill in `explained_by` along the catalog's edges and the general rules, without ever closing a circle.

    Strong candidates go first: where two could explain each other, the one nearer to a beginning does.
    """
    by_id = {candidate.id: candidate for candidate in candidates}
    ordered = sorted(candidates, key=lambda c: (9 if (level := tier(c)) is None else level, c.id))
    for cause in ordered:
        for edge in cause.signature.leads_to if cause.signature else ():
            effect = by_id.get(edge.signature)
            if effect is not None and _may_add(cause, effect, by_id) and _in_scope(edge, cause, effect):
                effect.explained_by.append(cause.id)
    for cause in ordered:
        for effect in ordered:
            if _may_add(cause, effect, by_id) and _general(cause, effect):
                effect.explained_by.append(cause.id)


def _may_add(cause: Candidate, effect: Candidate, by_id: Mapping[str, Candidate]) -> bool:
    return effect is not cause and cause.id not in effect.explained_by and not _reaches(effect, cause, by_id)


def _in_scope(edge: Edge, cause: Candidate, effect: Candidate) -> bool:
    mine, theirs = set(cause.shown_by) | set(cause.ranks), set(effect.shown_by)
    if edge.scope == "same-rank":
        return not mine or not theirs or bool(mine & theirs)
    if edge.scope == "other-ranks":
        return not theirs or not mine or bool(theirs - mine) or len(theirs) > 1
    if edge.scope == "same-host":
        return not cause.hosts or not effect.hosts or bool(set(cause.hosts) & set(effect.hosts))
    return True


def _general(cause: Candidate, effect: Candidate) -> bool:
    """Rules that hold for any failure: a failed rank leaves symptoms everywhere, and what it said explains how it ended."""
    if cause.role not in ("cause", "either") or (effect.role == "cause" and effect.tells != "outside"):
        return False
    if cause.tells == "outside":
        return effect.role == "symptom" and not _before(effect, cause)
    if cause.signature is None and all(fact.kind == "exit" for fact in cause.facts):
        return effect.role == "symptom"
    if effect.role == "symptom" or effect.tells == "outside":
        return cause.role == "cause" or cause.tells == "ending" or effect.role == "symptom"
    if effect.tells == "ending" and cause.tells != "ending":
        return bool(set(cause.shown_by) & set(effect.shown_by)) or not effect.shown_by
    return False


def _before(one: Candidate, other: Candidate) -> bool:
    return one.first_time is not None and other.first_time is not None and one.first_time < other.first_time - RESOLUTION


def _reaches(start: Candidate, goal: Candidate, by_id: Mapping[str, Candidate]) -> bool:
    """Is `start` already an (indirect) cause of `goal`?"""
    pending, seen = [goal], {goal.id}
    while pending:
        for cause_id in pending.pop().explained_by:
            if cause_id == start.id:
                return True
            if cause_id in by_id and cause_id not in seen:
                seen.add(cause_id)
                pending.append(by_id[cause_id])
    return False


def decide(candidates: Sequence[Candidate]) -> Verdict:
    """The root among the unexplained candidates: best tier first, then clearly earlier, then what explains most, then by name."""
    open_ones = [candidate for candidate in candidates if not candidate.explained_by and tier(candidate) is not None]
    if not open_ones:
        return Verdict(None, (), 0.0)
    effects = {candidate.id: sum(candidate.id in other.explained_by for other in candidates) for candidate in candidates}
    best = min(tier(candidate) or 0 for candidate in open_ones)
    level = [candidate for candidate in open_ones if (tier(candidate) or 0) == best]
    times = [candidate.first_time for candidate in level if candidate.first_time is not None]
    earliest = min(times, default=None)
    root = min(level, key=lambda c: (_late(c, earliest), -effects[c.id], -_weight(c), c.id))
    others = tuple(candidate for candidate in open_ones if candidate is not root)
    for other in others:
        other.why.append(_why_lost(root, other, earliest))
    return Verdict(root, others, confidence(root, others))


def tier(candidate: Candidate) -> int | None:
    """How far up the chain of causes a candidate can stand; None: it cannot be a root. Lower is better."""
    if candidate.tells == "outside":
        return 4
    if candidate.signature is None:
        return 2 if all(fact.kind == "exit" or fact.fields.get("truncated") for fact in candidate.facts) else 1
    if candidate.role == "cause":
        return (2 if candidate.measured else 3) if candidate.inferred else 1
    if candidate.role == "confirmation":
        return 2
    if candidate.role == "either":
        return 2
    # A symptom that follows from nothing in the files, but is a failure of this very rank and not of a peer.
    return 3 if candidate.role == "symptom" and candidate.tells == "own-failure" else None


def _late(candidate: Candidate, earliest: float | None) -> bool:
    return earliest is not None and candidate.first_time is not None and candidate.first_time > earliest + RESOLUTION


def _weight(candidate: Candidate) -> int:
    """Specific before general: a known signature before an unknown failure, a cause before an ending."""
    return (2 if candidate.signature else 0) + (1 if candidate.role == "cause" else 0)


def _why_lost(root: Candidate, other: Candidate, earliest: float | None) -> str:
    if (tier(other) or 0) > (tier(root) or 0):
        return f"also stands unexplained, but {root.id} is stronger evidence of a beginning"
    if _late(other, earliest):
        return f"began {other.first_time - earliest:.0f} s after {root.id}" if other.first_time and earliest else "began later"
    return f"stands beside {root.id} with nothing in the files that puts one before the other"


def confidence(root: Candidate, others: Sequence[Candidate]) -> float:
    """How sure: by the kind of evidence, less for rivals that stand as strong and for unplaced ranks."""
    base = {1: 0.9, 2: 0.65, 3: 0.55, 4: 0.6}[tier(root) or 1]
    if root.signature is None:
        base -= 0.1
    if root.inferred:
        root.why.append("concluded from the ranks together, no line states it")
    rivals = [other for other in others if tier(other) == tier(root)]
    base -= 0.15 * min(2, len(rivals))
    if not root.ranks:
        base -= 0.05
    elif len(root.shown_by) > 1 and root.suspects is None:
        root.why.append(
            f"{say_ranks(root.shown_by)} show it: {'all at once, a program or configuration error rather than a bad rank' if len(root.shown_by) > 2 else 'more than one rank'}"
        )
    return round(max(0.1, min(0.95, base)), 2)
