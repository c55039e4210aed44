"""What all requests of this process to object stores and servers cost so far, for who asked a worker to read there."""

from __future__ import annotations

import functools
import os
import threading
import uuid
from typing import NamedTuple


class RequestTotals(NamedTuple):
    """Requests, those of them that repeated a failed one, and bytes received."""

    requests: int = 0
    retries: int = 0
    bytes: int = 0

    def plus(self, other: RequestTotals) -> RequestTotals:
        """Return both together."""
        return RequestTotals(self.requests + other.requests, self.retries + other.retries, self.bytes + other.bytes)

    def since(self, before: RequestTotals) -> RequestTotals:
        """Return what came after an earlier moment."""
        return RequestTotals(self.requests - before.requests, self.retries - before.retries, self.bytes - before.bytes)


_LOCK = threading.Lock()
_TOTALS = [RequestTotals()]


def add_cost(cost: RequestTotals) -> None:
    """Add what was requested or received."""
    with _LOCK:
        _TOTALS[0] = _TOTALS[0].plus(cost)


def total_cost() -> RequestTotals:
    """Return the cost of all requests of this process."""
    return _TOTALS[0]


def process_name() -> str:
    """Return a name that no other process has, on any machine."""
    return _name_process(os.getpid())


@functools.cache
def _name_process(_pid: int) -> str:
    return uuid.uuid4().hex
