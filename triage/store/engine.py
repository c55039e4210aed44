"""What the store asks of whoever tells unknown failures apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from triage.clusters.model import Assignment
from triage.model.diagnosis import Finding, Fingerprint


class Engine(Protocol):
    """`fingerprint` says what a failure is, `place` whether a new fingerprint belongs to a cluster that is known under
    its guard.
    """

    @property
    def version(self) -> int:
        """Raised when the same failure gets another key."""

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        """The fingerprint of an unknown failure; None for one that shall not be remembered as a cluster."""

    def place(
        self, new: Fingerprint, known: Sequence[tuple[str, Fingerprint]], apart: Collection[frozenset[str]]
    ) -> Assignment:
        """Its cluster among the known ones (cluster, fingerprint) when the answer says `nested`, and those that it
        shows to be the same.

        `apart` are pairs of keys of which a person said that they are not one.
        """
