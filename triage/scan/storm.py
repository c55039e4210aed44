"""What the slices of a storm hold again and again, so that most of each need only be searched for everything else.

Searching for all literals is slow where many of them stand; searching windows of those that do not stand there is fast.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from triage.scan.interface import Gate

# So many slices must have held the same literals before a gate for the others is built; that takes as long as some
# hundred slices.
_OFTEN = 128
_MOST_GATES = 4
_MOST_KINDS = 4096


class Storm:
    """`known` are the usual literals and a gate for all others. Shared between the threads of a scan."""

    def __init__(self) -> None:
        self.known: tuple[frozenset[int], Gate] | None = None
        self._seen: Counter[frozenset[int]] = Counter()
        self._built = 0
        self._lock = threading.Lock()

    def learn(self, literals: frozenset[int], build: Callable[[frozenset[int]], Gate]) -> None:
        """A slice held these literals, and `known` was of no help. `build` gives a gate for all but those given to it."""
        with self._lock:
            if len(self._seen) >= _MOST_KINDS:
                self._seen.clear()
            self._seen[literals] += 1
            if self._seen[literals] != _OFTEN or self._built == _MOST_GATES:
                return
            self._built += 1
        self.known = (literals, build(literals))
