"""Limit repeated warnings: the first ones of each code in full, the rest as a count."""

from __future__ import annotations

from collections import Counter

from triage.model.evidence import Warning
from triage.sources.interface import Warn


class WarningLimiter:
    """Passes warnings to `warn`, at most `limit_per_code` of one code; `close` reports how many more there were."""

    def __init__(self, warn: Warn, limit_per_code: int = 20, source_name: str | None = None) -> None:
        self._warn = warn
        self._limit_per_code = limit_per_code
        self._source_name = source_name
        self._counts: Counter[str] = Counter()

    def add(self, code: str, source: str | None, message: str) -> None:
        """Warn about `source`."""
        self._counts[code] += 1
        if self._counts[code] <= self._limit_per_code:
            self._warn(Warning(code, source, message))

    def close(self) -> None:
        """Report how many warnings of each code were left out."""
        for code, count in sorted(self._counts.items()):
            if count > self._limit_per_code:
                self._warn(Warning(code, self._source_name, f"and {count - self._limit_per_code:,} more like this"))
        self._counts.clear()
