"""Learn which literals the slices of a storm repeat, so that most of a slice is searched for the other literals only.

Searching for all literals is slow where many of them occur; searching for windows of absent literals is fast.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from triage.scan.interface import LiteralMatcher

# A matcher for the other literals is built once so many slices had the same ones; building takes as long as some
# hundred slices.
_MIN_SLICES = 128
_MAX_MATCHERS = 4
_MAX_KINDS = 4096


class Storm:
    """The literals that slices of a storm repeat; shared between the threads of a scan.

    `fast_path` has the usual literals and a matcher for all others, once both are known.
    """

    def __init__(self) -> None:
        self.fast_path: tuple[frozenset[int], LiteralMatcher] | None = None
        self._slice_counts: Counter[frozenset[int]] = Counter()
        self._matcher_count = 0
        self._lock = threading.Lock()

    def record_slice(self, literals: frozenset[int], build: Callable[[frozenset[int]], LiteralMatcher]) -> None:
        """Count a slice with these literals for which `fast_path` was of no use.

        `build` returns a matcher for all literals but those that it gets.
        """
        with self._lock:
            if len(self._slice_counts) >= _MAX_KINDS:
                self._slice_counts.clear()
            self._slice_counts[literals] += 1
            if self._slice_counts[literals] != _MIN_SLICES or self._matcher_count == _MAX_MATCHERS:
                return
            self._matcher_count += 1
        self.fast_path = (literals, build(literals))
