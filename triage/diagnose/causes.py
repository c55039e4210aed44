"""What began it: which of the candidates that nothing explains we would act on. Every choice leaves a sentence, also
for those that lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.diagnose.candidates import Candidate
from triage.diagnose.graph import EMPTY, tier
from triage.diagnose.say import say_ranks
from triage.diagnose.scene import LONG, Scene


@dataclass(frozen=True, slots=True)
class Verdict:
    """The chosen root (None: nothing failed, or only symptoms), the other independent roots, and the confidence in the
    choice.
    """

    root: Candidate | None
    others: tuple[Candidate, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Contest:
    """Those that stand unexplained, of how many findings each is an explanation, what the ranks did last, and which of
    them are
    known to have ended badly."""

    candidates: Sequence[Candidate]
    effects: Counter[str]
    scene: Scene
    ended: frozenset[int] = frozenset()


def stated_first(contest: Contest, one: Candidate) -> float:
    """A line that states a cause comes before what may or may not be one, that before a conclusion, that before a stop
    from outside.
    """
    return tier(one) or 0


def earlier_first(contest: Contest, one: Candidate) -> float:
    """What surely began later than another of the same strength did not begin it."""
    level = tier(one)
    return any(tier(other) == level and other.clearly_before(one) for other in contest.candidates)


def explains_most(contest: Contest, one: Candidate) -> float:
    """What explains more of the other findings comes first."""
    return -contest.effects[one.id]


def stopped_first(contest: Contest, one: Candidate) -> float:
    """Where lines carry no time: ranks that report their steps, and went on long after the others had raised, did not
    begin it.
    """
    level = tier(one)
    return any(tier(other) == level and _stopped(contest.scene, other, one) for other in contest.candidates)


def _stopped(scene: Scene, one: Candidate, other: Candidate) -> bool:
    """Did all ranks of the first write their last line long before those of the other, without waiting for them in a
    collective?
    """
    mine, theirs = set(one.ranks), set(other.ranks)
    if not mine or not theirs or mine & theirs or not mine | theirs <= scene.last_step.keys() & scene.last_time.keys():
        return False
    if any(fact.fields.get("op") for fact in one.facts):
        return False
    last, first = (scene.last_time[rank] for rank in mine), min(scene.last_time[rank] for rank in theirs)
    return all(clock == first[0] and when < first[1] - LONG for clock, when in last)


def ended_first(contest: Contest, one: Candidate) -> float:
    """What a process said that the launcher saw fail comes before what nobody in particular said."""
    return bool(contest.ended) and not one.ranks


def specific_first(contest: Contest, one: Candidate) -> float:
    """A known failure comes before an unknown one, a cause before an ending."""
    return -((2 if one.signature else 0) + (1 if one.role == "cause" else 0))


def first_observed(contest: Contest, one: Candidate) -> float:
    """Where nothing else decides: the one that torchelastic saw first. Its clock has whole seconds, so this is weak."""
    return -any(fact.fields.get("first") == "yes" for fact in one.facts)


CHOOSING: tuple[Callable[[Contest, Candidate], float], ...] = (
    stated_first,
    earlier_first,
    explains_most,
    stopped_first,
    ended_first,
    specific_first,
    first_observed,
)


def decide(
    candidates: Sequence[Candidate], without: frozenset[str] = frozenset(), scene: Scene = EMPTY
) -> tuple[Candidate | None, tuple[Candidate, ...]]:
    """The root among the unexplained candidates and the others, in order; every loser is told why."""
    open_ones = [candidate for candidate in candidates if not candidate.explained_by and tier(candidate) is not None]
    effects = Counter(name for candidate in candidates for name in candidate.explained_by)
    contest = Contest(_strongest(open_ones), effects, scene, _ended(scene))
    rules = [rule for rule in CHOOSING if rule.__name__.replace("_", "-") not in without]
    keys = {candidate.id: tuple(rule(contest, candidate) for rule in rules) for candidate in open_ones}
    ordered = sorted(open_ones, key=lambda candidate: (*keys[candidate.id], candidate.id))
    if not ordered:
        return None, ()
    root, *others = ordered
    for other in others:
        other.why.append(_why_lost(root, other, effects, scene))
    return root, tuple(others)


def _ended(scene: Scene) -> frozenset[int]:
    """Ranks whose processes are known to have ended badly, and not because the launcher stopped them."""
    return frozenset(
        fact.origin.rank
        for fact in scene.exits
        if fact.origin.rank is not None
        and fact.fields.get("exitcode", "0") not in ("0", "")
        and fact.fields.get("by") != "agent"
    )


def _strongest(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Of thousands of unknown failures only the first of each level and clock need to be compared in time."""
    if len(candidates) <= 64:
        return candidates
    first: dict[tuple[int | None, str], Candidate] = {}
    for one in candidates:
        for clock, when in one.begin.sure.items():
            key = (tier(one), clock)
            if key not in first or when < first[key].begin.sure[clock]:
                first[key] = one
    return list({one.id: one for one in first.values()}.values())


def _why_lost(root: Candidate, other: Candidate, effects: Counter[str], scene: Scene) -> str:
    if (tier(other) or 0) > (tier(root) or 0):
        return other.lowered or f"also stands unexplained, but {root.id} is stronger evidence of a beginning"
    if root.clearly_before(other):
        common = root.began.keys() & other.began.keys()
        return (
            f"began {min(other.began[clock] - root.began[clock] for clock in common):.0f} s after {root.id}"
            if common
            else "began later"
        )
    if effects[other.id] < effects[root.id]:
        more = f"{effects[root.id]} finding{'s' if effects[root.id] != 1 else ''}"
        return f"stands beside {root.id}, which explains more ({more}, this one {effects[other.id]})"
    if _stopped(scene, root, other):
        return f"{say_ranks(other.ranks)} went on for more than {LONG:.0f} s after the last line of {say_ranks(root.ranks)}"
    return f"stands beside {root.id} with nothing in the files that puts one before the other"
