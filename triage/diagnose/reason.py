"""From facts to the diagnosis: match, reason across ranks, choose the root, and keep why.

STAGES in order: settle who wrote what, drop what was handled or superseded, match the catalog, infer from the ranks together,
match again with what was inferred, explain, decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.match import Match, Matcher
from triage.catalog.model import Catalog, Signature
from triage.diagnose import candidates, causes, facts, rules, unknown
from triage.diagnose.candidates import Candidate
from triage.diagnose.outcome import Outcome, outcome
from triage.model import Evidence
from triage.ranks.identity import JobMap
from triage.ranks.last import Word


@dataclass(frozen=True, slots=True)
class Result:
    """What reasoning gives: all facts, the candidates with their reasons, the decision and how the job ended."""

    facts: tuple[Evidence, ...]
    candidates: tuple[Candidate, ...]
    verdict: causes.Verdict
    outcome: Outcome
    matches: dict[str, Match]
    suspects: tuple[int, ...] = ()
    suspicion: str = ""
    left_out: tuple[tuple[Evidence, str], ...] = ()


def diagnose(evidence: Sequence[Evidence], words: Sequence[tuple[str, Word]], job: JobMap, catalog: Catalog) -> Result:
    """Reason over the evidence of one job."""
    settled = facts.settle(evidence, job)
    ended = outcome(settled, words, job)
    live = [fact for fact in settled if not ended.is_over(fact)]
    over = tuple(fact for fact in settled if ended.is_over(fact))
    matcher = Matcher(catalog)
    signatures = {signature.id: signature for signature in catalog.signatures}
    matches = matcher.evaluate(live)
    given = [fact for fact in live if fact.kind == "inference" and fact.fields.get("ground") != "silence"]
    inferred = [] if given else _infer(live, matches, signatures, job, ended)
    if inferred:
        live = [*live, *inferred]
        matches = matcher.evaluate(live)
    known = candidates.known(signatures, matches, live)
    covered = {index for signature_id, match in matches.items() if signatures[signature_id].role != "noise" for index in match.indices}
    all_of_them = [candidate for candidate in known if candidate.role != "noise"]
    all_of_them += candidates.unknown(unknown.group(live, covered))
    causes.explain(all_of_them)
    verdict = causes.decide(all_of_them)
    suspects = tuple(sorted({fact.origin.rank for fact in (given or inferred) if fact.origin.rank is not None}))
    noise = [candidate for candidate in known if candidate.role == "noise"]
    return Result(
        tuple(live),
        (*all_of_them, *noise),
        verdict,
        ended,
        matches,
        suspects,
        next((fact.text for fact in (given or inferred)), ""),
        tuple((fact, ended.why_over(fact)) for fact in over),
    )


def _infer(
    live: Sequence[Evidence], matches: Mapping[str, Match], signatures: Mapping[str, Signature], job: JobMap, ended: Outcome
) -> list[Evidence]:
    """The rules across ranks are asked only when no line of the files states a cause."""
    found = candidates.known(signatures, matches, live)
    covered = {index for match in matches.values() for index in match.indices}
    stated = [candidate for candidate in found if candidate.role == "cause" and candidate.tells != "outside" and not candidate.inferred]
    if stated or unknown.group(live, covered):
        return []
    failed = {rank for candidate in found if candidate.role in ("either", "confirmation") for rank in candidate.shown_by}
    return rules.infer(
        rules.Scene(
            live,
            _by_what_they_tell(matches, signatures),
            frozenset(job.ranks),
            job.world_size(),
            frozenset(failed),
            frozenset(ended.finished),
            job.one_host(),
        )
    )


def _by_what_they_tell(matches: Mapping[str, Match], signatures: Mapping[str, Signature]) -> dict[str, list[int]]:
    told: dict[str, list[int]] = {}
    for name, match in matches.items():
        told.setdefault(signatures[name].tells or "", []).extend(match.indices)
    return told
