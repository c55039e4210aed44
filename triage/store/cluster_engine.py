"""The interface of the engine that clusters unknown failures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from triage.clusters.model import Assignment
from triage.model.diagnosis import Finding, Fingerprint


class ClusterEngine(Protocol):
    """Computes fingerprints and places them in clusters."""

    @property
    def version(self) -> int:
        """The version of the rules; a new one may give the same failure another key."""

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        """Return the fingerprint of an unknown failure; None for one that gets no cluster."""

    def place(
        self,
        new: Fingerprint,
        known: Sequence[tuple[str, Fingerprint]],
        apart: Collection[frozenset[str]],
        moved: Mapping[str, str],
    ) -> Assignment:
        """Return the cluster of a new fingerprint among `known` (cluster, fingerprint) pairs with the same guard.

        The cluster counts when the result is `nested`, `reworded` or `taught`; `joins` are clusters that it shows to be
        the same.
        `apart` are pairs of keys that a person separated, `moved` has by key the person who put it into its cluster.
        """
