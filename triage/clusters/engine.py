"""The rules as the store asks for them: findings to fingerprints, and which known fingerprint says the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triage.clusters.assign import Clusters, Known
from triage.clusters.fingerprint import fingerprint
from triage.clusters.model import Assignment
from triage.clusters.rules import rules
from triage.model.diagnosis import Finding, Fingerprint


class ByRules:
    """Tells unknown failures apart by `rules.toml`."""

    @property
    def version(self) -> int:
        return rules().version

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        """That of the first fact that says what happened, else of the first; None for a finding without facts or with a
        signature.
        """
        if finding.signature is not None or finding.cluster is None or not finding.evidence:
            return None
        prints = [fingerprint(fact) for fact in finding.evidence]
        return next((found for found in prints if found.anchored), prints[0])

    def place(
        self, new: Fingerprint, known: Sequence[tuple[str, Fingerprint]], apart: Collection[frozenset[str]]
    ) -> Assignment:
        """Where a new fingerprint belongs among those of the clusters, and which clusters it shows to be one."""
        return Clusters((Known.of(cluster, found) for cluster, found in known), apart).assign(new)
