"""How fresh what a page shows is: the last ingest, the catalog, asked for at most every few seconds."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from triage.service.state import Service

SECONDS = 5.0
_lock = threading.Lock()
_kept: dict[str, tuple[float, Freshness]] = {}


@dataclass(frozen=True, slots=True)
class Freshness:
    """`ingested_at` is when the last diagnosis was stored (0: never)."""

    ingested_at: float
    incidents: int
    catalog: str
    signatures: int


def freshness(service: Service) -> Freshness:
    """The same answer for a few seconds."""
    key = str(service.store.connections.path)
    now = time.monotonic()
    with _lock:
        found = _kept.get(key)
    if found is not None and now - found[0] < SECONDS:
        return found[1]
    latest, count = service.store.search.latest()
    known = service.catalog()
    fresh = Freshness(latest, count, known.version, len(known.signatures))
    with _lock:
        _kept[key] = now, fresh
    return fresh


def forget() -> Any:
    """What was just stored shall show at once."""
    with _lock:
        _kept.clear()
