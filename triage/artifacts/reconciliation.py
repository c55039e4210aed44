"""What dumps of calls and stacks conclude together: where they contradict, the less certain conclusion is dropped.

A dump records which calls a rank made, and not all: Gloo records neither send and receive nor monitored_barrier. A
stack shows where a rank stands at one moment, and neither its process group nor what it called before.
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.evidence.inference import BLOCKED, HUNG
from triage.model import Evidence, FlightDetail, InferenceDetail

_OF_FEW = ("extra-collective", "rank-conditional")
"""Rules by which the ranks that wait made a call that the others never make."""


def reconcile(dumps: Sequence[Evidence], stacks: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence of all artifacts without the conclusions that the other kind of evidence refutes.

    Dumps win over stacks that allow another explanation and name other ranks that have a dump. An uncertain conclusion
    of dumps that ranks stand outside of collectives fails where the stacks show all of them in calls.
    """
    recorded = {fact.origin.rank: fact.detail.waits for fact in dumps if isinstance(fact.detail, FlightDetail)}
    certain = {fact.origin.rank for fact in dumps if _is_of(fact, "flight") and not _is_uncertain(fact)}
    blocked = {fact.origin.rank for fact in stacks if _rule(fact) == BLOCKED}
    idle = {rank for rank, waits in recorded.items() if not waits}
    refuted = [
        fact for fact in dumps if _rule(fact) in _OF_FEW and _is_uncertain(fact) and idle and idle <= blocked
    ] + [fact for fact in stacks if certain and _is_uncertain(fact) and _named_ranks(fact) & recorded.keys() - certain]
    gone = set(map(id, refuted))
    return [fact for fact in (*dumps, *stacks) if id(fact) not in gone]


def _rule(fact: Evidence) -> str:
    return fact.detail.rule if isinstance(fact.detail, InferenceDetail) else ""


def _named_ranks(fact: Evidence) -> set[int]:
    """Return all ranks that a conclusion names, not only the one that this fact of it is about."""
    return {int(rank) for rank in fact.fields.get("ranks", "").split(",") if rank}


def _is_of(fact: Evidence, kind: str) -> bool:
    return isinstance(fact.detail, InferenceDetail) and fact.detail.evidence_kind == kind


def _is_uncertain(fact: Evidence) -> bool:
    """Whether it names ranks and allows another explanation; dumps say that by their basis."""
    detail = fact.detail
    if not isinstance(detail, InferenceDetail) or detail.rule in (BLOCKED, HUNG):
        return False
    return bool(detail.uncertainty) or detail.basis == "absence"
