"""What the store asks of whoever tells unknown failures apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from triage.model import Finding, Fingerprint


class Engine(Protocol):
    """`fingerprint` says what a failure is, `join` whether a new fingerprint belongs to one of those known under its guard."""

    @property
    def version(self) -> int:
        """Raised when the same failure gets another key."""

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        """The fingerprint of an unknown failure; None for one that shall not be remembered as a cluster."""

    def join(self, new: Fingerprint, known: Sequence[Fingerprint]) -> tuple[Fingerprint, str] | None:
        """The known one that `new` is another wording of, and why; None when it is new."""
