"""Rules about what follows from what in any job: the catalog's edges, and how symptoms, ends and stops from outside
hang together.
"""

from __future__ import annotations

from triage.diagnose.candidates import Candidate
from triage.diagnose.graph import Case, holds, name

# So many reasons are kept for one finding: enough, when thousands of failures are unknown.
_MANY = 64
# A failure so soon after a stop from outside, in seconds, is the stop's doing.
_SOON = 120.0


def catalog_edges(case: Case) -> None:
    """What the signatures themselves say: this leads to that, on these ranks, within this time."""
    for cause in case.ordered:
        for edge in cause.signature.leads_to if cause.signature else ():
            effect = case.by_id.get(edge.signature)
            if effect is not None and holds(edge, cause, effect):
                case.link(cause, effect, f"{name(cause)} leads to it, as the catalog says ({edge.scope})")


def stopped_before(case: Case) -> None:
    """What fails within two minutes after the job was stopped from outside, and not before, fails because of that."""
    for stop in case.ordered:
        if stop.tells != "outside":
            continue
        for effect in case.candidates:
            if effect.role in ("cause", "either") and effect.tells != "outside" and _soon_after(stop, effect):
                case.link(stop, effect, f"it began only after the job was stopped from outside ({stop.id})")


def own_words(case: Case) -> None:
    """What a rank said explains how it ended, and why it did not come."""
    for cause in case.ordered:
        if cause.role not in ("cause", "either") or cause.tells in ("outside", "ending") or cause.inferred:
            continue
        if cause.signature is None and all(fact.kind == "exit" for fact in cause.facts):
            continue
        mine = set(cause.ranks) | set(cause.shown_by)
        for effect in case.effects:
            if (
                effect.tells == "ending"
                and effect.role != "cause"
                and (mine & set(effect.shown_by) or not effect.shown_by)
            ):
                case.link(cause, effect, f"what {name(cause)} said before says more than how the process ended")
            elif effect.inferred and mine & set(effect.ranks):
                case.link(cause, effect, f"{name(cause)} says why it did not come")


def symptoms_follow(case: Case) -> None:
    """A failed rank leaves symptoms everywhere: what can begin a failure explains all that only follows from one."""
    for effect in case.effects:
        if effect.role == "symptom":
            for cause in case.ordered:
                if len(effect.explained_by) >= _MANY:
                    break
                begins = cause.role in ("cause", "either") or cause.tells == "outside"
                if begins and not (cause.tells == "outside" and effect.clearly_before(cause)):
                    case.link(cause, effect, f"it only follows from other failures, and {name(cause)} can begin one")


def outside_after(case: Case) -> None:
    """What stops a job from outside is a cause only if nothing inside had failed before."""
    for effect in case.effects:
        if effect.tells == "outside":
            for cause in case.ordered:
                if len(effect.explained_by) >= _MANY:
                    break
                inside = cause.tells != "outside" and (cause.role == "cause" or cause.tells == "ending")
                exits = cause.signature is None and all(fact.kind == "exit" for fact in cause.facts)
                if inside and not exits and not effect.clearly_before(cause):
                    case.link(cause, effect, f"the job was stopped when {name(cause)} had failed already")


def _soon_after(stop: Candidate, effect: Candidate) -> bool:
    if not stop.clearly_before(effect):
        return False
    common = stop.began.keys() & effect.began.keys()
    return all(effect.began[clock] - stop.began[clock] < _SOON for clock in common)
