"""Sums over very many incidents cost much: they are told again while nothing has changed, and if they cost much for a
while after that.

What takes less than CHEAP seconds of a processor is never older than the store. What takes more may be as old as TIMES
its cost, at most
OLDEST; while one thread sums again, the others are told what was found before.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from triage.store.beside import Beside
from triage.store.connection import Connections

CHEAP = 0.05
TIMES = 50
OLDEST = 30.0
MOST = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Told:
    value: Any
    generation: int
    at: float
    cost: float


class Sparing:
    """Kept sums of one store, for all threads."""

    def __init__(self, connections: Connections) -> None:
        self._beside = Beside(connections)
        self._told: OrderedDict[Hashable, _Told] = OrderedDict()
        self._summing: set[Hashable] = set()
        self._lock = threading.Lock()

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, or what it gave."""
        generation, now = self._beside.generation(), time.monotonic()
        with self._lock:
            old = self._told.get(key)
            if old is not None and (old.generation == generation or self._may_be_old(old, now, key in self._summing)):
                self._told.move_to_end(key)
                value: T = old.value
                return value
            self._summing.add(key)
        began = time.thread_time()
        try:
            found = make()
        finally:
            with self._lock:
                self._summing.discard(key)
        with self._lock:
            self._told[key] = _Told(found, generation, now, time.thread_time() - began)
            while len(self._told) > MOST:
                self._told.popitem(last=False)
        return found

    @staticmethod
    def _may_be_old(old: _Told, now: float, summing: bool) -> bool:
        age = now - old.at
        return old.cost >= CHEAP and age < (2 * OLDEST if summing else min(OLDEST, TIMES * old.cost))
