"""Why one signature did or did not decide about a job: its clauses, and the lines that nearly match."""

from __future__ import annotations

from triage.catalog.match import describe_clause, evaluate_signature, positive_leaves
from triage.catalog.model import Signature
from triage.diagnose.candidates import Candidate
from triage.diagnose.phrases import join_names
from triage.diagnose.reason import ReasoningResult
from triage.model.diagnosis import Explanation

_MOST_NEAR_MISSES = 10


def explain_signature(signature: Signature, result: ReasoningResult) -> Explanation:
    """Return which part the signature played in the diagnosis."""
    candidate = next((one for one in result.candidates if one.signature and one.id == signature.id), None)
    match = evaluate_signature(signature, result.facts)
    return Explanation(
        signature=signature.id,
        title=signature.title,
        matched=match is not None,
        outcome=_outcome(signature, result, candidate, match is not None),
        clauses=match.clauses if match else _unmet_clauses(signature),
        evidence=tuple(candidate.facts[:20]) if candidate else (),
        near_misses=() if match else _near_misses(signature, result),
    )


def _outcome(signature: Signature, result: ReasoningResult, candidate: Candidate | None, matched: bool) -> str:
    if signature.match is None:
        return "not matched, because this entry is a guide and has no pattern"
    if candidate is None:
        stronger = [one.id for one in result.candidates if one.signature and one.id in signature.yields_to]
        if matched and stronger:
            return f"matched, but left to {join_names(stronger)}, which says more about the same lines"
        return "not matched, because no line of this job meets its clauses"
    if candidate is result.verdict.root:
        return "matched, and chosen as the root cause"
    if candidate.explained_by:
        return f"matched, and explained by {join_names(candidate.explained_by)}"
    if candidate.role in ("noise", "symptom"):
        return f"matched, but its role is {candidate.role}: it is never a root cause"
    return f"matched, but not chosen: {'; '.join(candidate.why) or 'another candidate is stronger'}"


def _unmet_clauses(signature: Signature) -> tuple[tuple[str, bool, int], ...]:
    return tuple((describe_clause(leaf), False, 0) for leaf in positive_leaves(signature.match))


def _near_misses(signature: Signature, result: ReasoningResult) -> tuple[tuple[str, str], ...]:
    """Return the place and first line of facts that hold a literal of the signature, and still do not match."""
    literals = {literal for leaf in positive_leaves(signature.match) for literal in leaf.literals}
    near = [fact for fact in result.facts if any(literal in fact.text for literal in literals)]
    return tuple(
        (f"{fact.source} at byte {fact.offset}", fact.text.split("\n", 1)[0][:300]) for fact in near[:_MOST_NEAR_MISSES]
    )
