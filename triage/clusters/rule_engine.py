"""The rules as the engine of the store: fingerprints of findings, and the cluster of a new fingerprint."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from triage.clusters.assign import Clusters
from triage.clusters.fingerprint import fingerprint
from triage.clusters.known_key import KnownKey, read_words
from triage.clusters.model import Assignment
from triage.clusters.rules import load_rules
from triage.model.diagnosis import Finding, Fingerprint
from triage.model.evidence import Evidence


class RuleEngine:
    """Clusters unknown failures by the rules in `rules.toml`."""

    @property
    def version(self) -> int:
        """Version of the rules."""
        return load_rules().version

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        """Return that of the fact that says most, else of the first fact; None without facts or with a signature."""
        if finding.signature is not None or finding.cluster is None or not finding.evidence:
            return None
        prints = [fingerprint(fact) for fact in finding.evidence]
        return max(zip(finding.evidence, prints, strict=True), key=_weigh)[1]

    def place(
        self,
        new: Fingerprint,
        known: Sequence[tuple[str, Fingerprint]],
        apart: Collection[frozenset[str]],
        moved: Mapping[str, str],
    ) -> Assignment:
        """Return the cluster of a new fingerprint, and the clusters that it shows to be the same.

        `known` are (cluster, fingerprint), `apart` pairs of keys that people keep apart, `moved` has by key who put it
        into its cluster.
        """
        terms = KnownKey.of("", new).terms
        decided = frozenset[str]().union(*apart)
        taught = {cluster for cluster, each in known if each.key in moved} if moved else set[str]()
        # Keys without a common word can neither be joined nor be near; those about which people decided always count.
        near = (
            KnownKey.of(cluster, each)
            for cluster, each in known
            if (each.anchored and not terms.isdisjoint(read_words(each.headline)))
            or each.key in decided
            or cluster in taught
            or each.key == new.key
        )
        return Clusters(near, apart, moved=moved).assign(new)


def _weigh(pair: tuple[Evidence, Fingerprint]) -> tuple[bool, bool, bool]:
    """Say how much a fact says: an anchor, then a crash point, then more than the last lines of a writer."""
    fact, print_ = pair
    return print_.anchored, bool(fact.fields.get("crash_point")), fact.kind != "ending"
