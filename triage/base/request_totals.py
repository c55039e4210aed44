"""What all requests of this process to object stores and servers cost so far, for who asked a worker to read there."""

from __future__ import annotations

import functools
import os
import threading
import uuid

from triage.model.diagnosis import RemoteCost

_LOCK = threading.Lock()
_TOTALS = [RemoteCost()]


def add_cost(cost: RemoteCost) -> None:
    """Add what was requested or received."""
    with _LOCK:
        _TOTALS[0] = _TOTALS[0].plus(cost)


def total_cost() -> RemoteCost:
    """Return the cost of all requests of this process."""
    return _TOTALS[0]


def process_name() -> str:
    """Return a name that no other process has, on any machine."""
    return _name_process(os.getpid())


@functools.cache
def _name_process(_pid: int) -> str:
    return uuid.uuid4().hex
