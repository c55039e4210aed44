"""The rules as the engine of the store: fingerprints of findings, and the cluster of a new fingerprint."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triage.clusters.assign import Clusters, KnownKey
from triage.clusters.fingerprint import fingerprint
from triage.clusters.model import Assignment
from triage.clusters.rules import load_rules
from triage.model.diagnosis import Finding, Fingerprint


class RuleEngine:
    """Clusters unknown failures by the rules in `rules.toml`."""

    @property
    def version(self) -> int:
        """Version of the rules."""
        return load_rules().version

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        """Return that of the first anchored fact, else of the first fact; None without facts or with a signature."""
        if finding.signature is not None or finding.cluster is None or not finding.evidence:
            return None
        prints = [fingerprint(fact) for fact in finding.evidence]
        return next((each for each in prints if each.anchored), prints[0])

    def place(
        self, new: Fingerprint, known: Sequence[tuple[str, Fingerprint]], apart: Collection[frozenset[str]]
    ) -> Assignment:
        """Return the cluster of a new fingerprint, and the clusters that it shows to be the same.

        `known` are (cluster, fingerprint), `apart` pairs of keys that people keep apart.
        """
        return Clusters((KnownKey.of(cluster, each) for cluster, each in known), apart).assign(new)
