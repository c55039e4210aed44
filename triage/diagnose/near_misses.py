"""Name the signatures that an unknown failure looks like a new wording of. It stays unknown."""

from __future__ import annotations

from collections.abc import Sequence

from triage.catalog.model import Signature
from triage.diagnose.candidates import Candidate
from triage.diagnose.reason import ReasoningResult

MOST_CANDIDATES = 20  # unknown failures of a job that are compared, the root cause first
MOST_TEXTS = 3  # different texts of one failure
_WITHOUT_MESSAGE = frozenset(("exit", "inference", "core"))


def name_near_misses(result: ReasoningResult, signatures: Sequence[Signature]) -> None:
    """Add the near misses to the reasons of the unknown failures. Without such a failure this costs nothing."""
    unknown = [candidate for candidate in result.candidates if candidate.signature is None]
    if not unknown:
        return
    from triage.catalog.near_misses import describe_near_misses, find_index

    index = find_index(signatures)
    unknown.sort(key=lambda candidate: candidate is not result.verdict.root)
    for candidate in unknown[:MOST_CANDIDATES]:
        misses = next(filter(None, map(index.find, _list_texts(candidate))), ())
        if misses:
            candidate.why.append(describe_near_misses(misses))
            candidate.similar = tuple(miss.signature.id for miss in misses)


def _list_texts(candidate: Candidate) -> list[str]:
    texts = (fact.text for fact in candidate.facts if fact.kind not in _WITHOUT_MESSAGE)
    return list(dict.fromkeys(texts))[:MOST_TEXTS]
