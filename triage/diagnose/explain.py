"""Why one signature did or did not decide about a job: its clauses over the facts, and the lines that came near."""

from __future__ import annotations

from triage.catalog.match import positive_leaves
from triage.catalog.model import Signature
from triage.diagnose.reason import Result
from triage.model.diagnosis import Explanation

_NEAR = 10
_NOT = "not matched, because no line of this job meets its clauses"


def explanation(signature: Signature, result: Result) -> Explanation:
    """The part that `signature` played."""
    from triage.catalog.match import evaluate

    candidate = next(
        (
            candidate
            for candidate in result.candidates
            if candidate.signature and candidate.signature.id == signature.id
        ),
        None,
    )
    match = evaluate(signature, result.facts)
    return Explanation(
        signature=signature.id,
        title=signature.title,
        matched=match is not None,
        outcome=_outcome(signature, result, match is not None),
        clauses=match.clauses if match else _unmet(signature, result),
        evidence=tuple(candidate.facts[:20]) if candidate else (),
        near_misses=() if match else _near(signature, result),
    )


def _outcome(signature: Signature, result: Result, matched: bool) -> str:
    candidate = next(
        (
            candidate
            for candidate in result.candidates
            if candidate.signature and candidate.signature.id == signature.id
        ),
        None,
    )
    if signature.match is None:
        return "not matched, because this entry is a guide: it leaves no text to match"
    if candidate is None:
        more = matched and [
            other.signature.id
            for other in result.candidates
            if other.signature and other.signature.id in signature.yields_to
        ]
        return f"matched, and left to {', '.join(more)}, which says more of the same lines" if more else _NOT
    if candidate is result.verdict.root:
        return "matched, and chosen as the root cause"
    if candidate.explained_by:
        return "matched, and explained by " + ", ".join(candidate.explained_by)
    if candidate.role in ("noise", "symptom"):
        return f"matched, but its role is {candidate.role}: it never begins a failure"
    return "matched, and lost: " + ("; ".join(candidate.why) or "another candidate is stronger")


def _unmet(signature: Signature, result: Result) -> tuple[tuple[str, bool, int], ...]:
    from triage.catalog.match import describe

    return tuple((describe(leaf), False, 0) for leaf in positive_leaves(signature.match))


def _near(signature: Signature, result: Result) -> tuple[tuple[str, str], ...]:
    """Facts that hold a literal of the signature, and still did not match."""
    literals = {literal for leaf in positive_leaves(signature.match) for literal in leaf.literals}
    near = []
    for fact in result.facts:
        if any(literal in fact.text for literal in literals):
            near.append((f"{fact.source} at byte {fact.offset}", fact.text.split("\n", 1)[0][:300]))
    return tuple(near[:_NEAR])
