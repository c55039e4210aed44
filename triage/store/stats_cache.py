"""Cache statistics over very many incidents: while nothing changes, and longer if they are expensive.

A value that costs less than CHEAP seconds of processor time, or of a database server's time, is never older than the
store. A more expensive one may be as old as TIMES its cost, at most OLDEST; while one thread computes it again, the
others get the old one.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from triage.store.interface import Connections
from triage.store.service_data import ServiceData

CHEAP = 0.05
TIMES = 50
OLDEST = 30.0
MOST = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _CachedValue:
    value: Any
    generation: int
    at: float
    cost: float


class StatsCache:
    """The cached values of one store, for all threads."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._service_data = ServiceData(connections)
        self._values: OrderedDict[Hashable, _CachedValue] = OrderedDict()
        self._computing: set[Hashable] = set()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of `make`, or its cached value."""
        generation, now = self._service_data.get_generation(), time.monotonic()
        with self._lock:
            old = self._values.get(key)
            if old is not None and (old.generation == generation or self._may_be_old(old, now, key in self._computing)):
                self._values.move_to_end(key)
                value: T = old.value
                return value
            self._computing.add(key)
        began = self._connections.spent_seconds()
        try:
            result = make()
        finally:
            with self._lock:
                self._computing.discard(key)
        with self._lock:
            self._values[key] = _CachedValue(result, generation, now, self._connections.spent_seconds() - began)
            while len(self._values) > MOST:
                self._values.popitem(last=False)
        return result

    def late_since(self, key: Hashable) -> float | None:
        """Return the time (seconds) of a cached value that lacks later changes; None if it is current."""
        generation, now = self._service_data.get_generation(), time.monotonic()
        with self._lock:
            old = self._values.get(key)
        return None if old is None or old.generation == generation else time.time() - (now - old.at)

    @staticmethod
    def _may_be_old(old: _CachedValue, now: float, is_computing: bool) -> bool:
        age = now - old.at
        return old.cost >= CHEAP and age < (2 * OLDEST if is_computing else min(OLDEST, TIMES * old.cost))
