"""Warnings without a flood: the first of a kind are told in full, the rest are counted."""

from __future__ import annotations

from collections import Counter

from triage.model import evidence as evidence_model
from triage.sources.interface import Warn


class Notes:
    """Passes warnings on to `warn`, at most `each` of one code; `close` tells how many more there were."""

    def __init__(self, warn: Warn, each: int = 20, about: str | None = None) -> None:
        self._warn = warn
        self._each = each
        self._about = about
        self._seen: Counter[str] = Counter()

    def add(self, code: str, source: str | None, message: str) -> None:
        """Warn about `source`."""
        self._seen[code] += 1
        if self._seen[code] <= self._each:
            self._warn(evidence_model.Warning(code, source, message))

    def close(self) -> None:
        """Tell what was held back."""
        for code, count in sorted(self._seen.items()):
            if count > self._each:
                self._warn(evidence_model.Warning(code, self._about, f"and {count - self._each:,} more like this"))
        self._seen.clear()
