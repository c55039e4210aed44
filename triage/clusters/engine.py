"""The rules as the store asks for them: findings to fingerprints, and which known fingerprint says the same."""

from __future__ import annotations

from collections.abc import Sequence

from triage.clusters.assign import Clusters, Known
from triage.clusters.fingerprint import fingerprint
from triage.clusters.rules import rules
from triage.model import Finding, Fingerprint


class ByRules:
    """Tells unknown failures apart by `rules.toml`."""

    @property
    def version(self) -> int:
        return rules().version

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        """That of the first fact that says what happened, else of the first; None for a finding without facts or with a signature."""
        if finding.signature is not None or finding.cluster is None or not finding.evidence:
            return None
        prints = [fingerprint(fact) for fact in finding.evidence]
        return next((found for found in prints if found.anchored), prints[0])

    def join(self, new: Fingerprint, known: Sequence[Fingerprint]) -> tuple[Fingerprint, str] | None:
        """The nearest known one that says the same in fewer or in more words, and why."""
        by_key = {found.key: found for found in known}
        # Each known one stands for itself: the answer is which of them, not which group.
        given = Clusters(Known.of(key, found) for key, found in sorted(by_key.items())).assign(new)
        return (by_key[given.cluster], given.why[0]) if given.how == "nested" else None
