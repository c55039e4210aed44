"""The causal graph: candidates are its nodes, `explained_by` its edges, each with the sentence that put it there. It
never has a circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from triage.catalog.model import Edge
from triage.diagnose.candidates import Candidate
from triage.diagnose.say import say_ranks
from triage.diagnose.scene import Scene

EMPTY = Scene((), {}, frozenset(), None, frozenset())


@dataclass
class Case:
    """The candidates of one attempt and what else the rules may look at. `spoken` are the rules that changed something."""

    candidates: Sequence[Candidate]
    scene: Scene = EMPTY
    spoken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for candidate in self.candidates:
            candidate.time(self.scene.clocks)
        self.by_id = {candidate.id: candidate for candidate in self.candidates}
        # Strong ones first: where two could explain each other, the one nearer to a beginning does.
        self.ordered = sorted(self.candidates, key=lambda c: (9 if (level := tier(c)) is None else level, c.id))
        # Only what is not a cause of its own can be explained by the general rules; there are few of those, however
        # many failures are unknown.
        self.effects = [candidate for candidate in self.ordered if candidate.signature is not None]

    def link(self, cause: Candidate, effect: Candidate, because: str) -> bool:
        """Let `cause` explain `effect`, unless it does already or would then explain itself."""
        if effect is cause or cause.id in effect.because or self._reaches(effect, cause):
            return False
        effect.explained_by.append(cause.id)
        effect.because[cause.id] = because
        return True

    def suspect(self, candidate: Candidate, ranks: Iterable[int], because: str) -> None:
        """Move the suspicion of a candidate to these ranks."""
        candidate.suspects = tuple(sorted(set(ranks)))
        candidate.why.append(because)

    def _reaches(self, start: Candidate, goal: Candidate) -> bool:
        """Is `start` already an (indirect) cause of `goal`?"""
        pending, seen = [goal], {goal.id}
        while pending:
            for cause_id in pending.pop().explained_by:
                if cause_id == start.id:
                    return True
                if cause_id in self.by_id and cause_id not in seen:
                    seen.add(cause_id)
                    pending.append(self.by_id[cause_id])
        return False


def tier(candidate: Candidate) -> int | None:
    """How far up the chain of causes a candidate can stand; None: it cannot be a root. Lower is better."""
    if candidate.tells == "outside":
        return 4
    if candidate.lowered:
        return 4
    if candidate.signature is None:
        return 2 if all(fact.kind == "exit" or fact.fields.get("truncated") for fact in candidate.facts) else 1
    if candidate.role == "cause":
        return (2 if candidate.measured else 3) if candidate.inferred else 1
    if candidate.role == "confirmation":
        return 2
    if candidate.role == "either":
        return 3 if candidate.inferred else 2
    # A symptom that follows from nothing in the files, but is a failure of this very rank and not of a peer.
    return 3 if candidate.role == "symptom" and candidate.tells == "own-failure" else None


def holds(edge: Edge, cause: Candidate, effect: Candidate) -> bool:
    """Does an edge of the catalog hold between these two, by its scope, its window and the order of time?"""
    if not _in_scope(edge.scope, cause, effect) or effect.clearly_before(cause):
        return False
    if edge.window is None:
        return True
    common = cause.begin.sure.keys() & effect.begin.possible.keys()
    return not common or any(effect.begin.possible[clock] <= cause.begin.sure[clock] + edge.window for clock in common)


def _in_scope(scope: str, cause: Candidate, effect: Candidate) -> bool:
    theirs = effect.showing
    mine = cause.showing if cause.suspects is None else cause.showing.union(cause.suspects)
    if scope == "same-rank":
        return not mine or not theirs or bool(mine & theirs)
    if scope == "other-ranks":
        return not theirs or not mine or bool(theirs - mine) or len(theirs) > 1
    if scope == "same-host":
        return not cause.hosts or not effect.hosts or bool(set(cause.hosts) & set(effect.hosts))
    if scope == "same-group":
        return not cause.groups or not effect.groups or bool(cause.groups & effect.groups)
    return True


def name(candidate: Candidate) -> str:
    """A candidate in a sentence."""
    return f"{candidate.id} ({say_ranks(candidate.ranks)})" if candidate.ranks else candidate.id
