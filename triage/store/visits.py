"""When people last looked at the list of causes, so that they can list what is new since then."""

from __future__ import annotations

import time

from triage.store.interface import Connections

PAUSE = 1800.0  # seconds without a look after which the next look begins a new visit
PRECISION = 60.0  # seconds between two writes of one visit


class Visits:
    """The visits of signed-in people."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def last(self, person: str, *, now: float | None = None) -> float | None:
        """Return when the visit before this one ended; None at the first visit."""
        when = time.time() if now is None else now
        row = self._db.read_one("SELECT seen_at, previous_at FROM visit WHERE person = ?", (person,))
        if row is None:
            return None
        return float(row["seen_at"]) if when - row["seen_at"] >= PAUSE else row["previous_at"]

    def record(self, person: str, *, now: float | None = None) -> float | None:
        """Note a look at the list; return when the visit before this one ended. A read-only store remembers nothing."""
        when = time.time() if now is None else now
        previous = self.last(person, now=when)
        row = self._db.read_one("SELECT seen_at FROM visit WHERE person = ?", (person,))
        if self._db.writable and (row is None or when - row["seen_at"] >= PRECISION):
            self._db.execute(
                "INSERT INTO visit (person, seen_at, previous_at) VALUES (?, ?, ?) ON CONFLICT (person) DO UPDATE SET "
                "seen_at = excluded.seen_at, previous_at = excluded.previous_at",
                (person, when, previous),
                serial=False,
            )
        return previous
