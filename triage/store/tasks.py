"""Work that waits for a process: claimed by one, counted, given to another when that one dies, done once.

A task is `queued`, `running`, and then `done`, `failed` or `cancelled`. Who runs it proves with `beat` that it lives;
only who holds the
claim may end it, so that a process that was taken for dead ends nothing twice.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from triage.base.errors import NotFoundError
from triage.store import audit
from triage.store.connection import Connections

State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: tuple[State, ...] = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Task:
    """`progress`, `result` and `error` are what the work says of itself; times are seconds."""

    id: str
    kind: str
    payload: Mapping[str, Any]
    state: State
    attempts: int
    most: int
    created_at: float
    started_at: float | None
    ended_at: float | None
    owner: str | None
    beat_at: float | None
    cancel: bool
    actor: str
    progress: Mapping[str, Any] | None
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None

    @property
    def ended(self) -> bool:
        """Will nothing more happen to it?"""
        return self.state in ENDED


class Tasks:
    """The tasks of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def add(
        self, kind: str, payload: Mapping[str, Any], *, actor: str, most: int = 3, now: float | None = None
    ) -> Task:
        """Queue a task."""
        identifier, when = "t-" + secrets.token_hex(8), time.time() if now is None else now
        with self._db.write() as db:
            db.execute(
                "INSERT INTO task (id, kind, payload, state, most, created_at, actor) VALUES (?, ?, ?, 'queued', ?, ?, ?)",
                (identifier, kind, json.dumps(payload), most, when, actor),
            )
            audit.note(db, when, actor, f"task {kind}", identifier, {"name": payload.get("name")})
        return self.get(identifier)

    def get(self, identifier: str) -> Task:
        """One task. Raises NotFoundError."""
        row = self._db.one("SELECT * FROM task WHERE id = ?", (identifier,))
        if row is None:
            raise NotFoundError(
                f"there is no task {identifier}", hint="tasks are forgotten a while after they ended; upload it again"
            )
        return _task(row)

    def listed(self, *, state: str | None = None, limit: int = 50, before: float | None = None) -> list[Task]:
        """The newest first."""
        rows = self._db.read(
            "SELECT * FROM task WHERE (:state IS NULL OR state = :state) AND created_at < :before ORDER BY created_at DESC, id LIMIT :limit",
            {"state": state, "before": before if before is not None else 1e18, "limit": limit},
        )
        return [_task(row) for row in rows]

    def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""
        return {row["state"]: row["n"] for row in self._db.read("SELECT state, count(*) AS n FROM task GROUP BY 1")}

    def oldest_waiting(self, *, now: float | None = None) -> float | None:
        """Seconds that the oldest task has waited; None when none waits."""
        row = self._db.one("SELECT min(created_at) AS at FROM task WHERE state = 'queued'")
        return None if row is None or row["at"] is None else max(0.0, (time.time() if now is None else now) - row["at"])

    def same(self, kind: str, payload: Mapping[str, Any]) -> Task | None:
        """A task with the same payload that waits or runs."""
        row = self._db.one(
            "SELECT * FROM task WHERE state IN ('queued', 'running') AND cancel = 0 AND kind = ? AND payload = ? LIMIT 1",
            (kind, json.dumps(payload)),
        )
        return _task(row) if row is not None else None

    def claim(self, owner: str, *, now: float | None = None) -> Task | None:
        """The task that waits longest, for this owner alone; its attempt is counted."""
        when = time.time() if now is None else now
        if self._db.one("SELECT 1 FROM task WHERE state = 'queued' AND due_at <= ? LIMIT 1", (when,)) is None:
            return None  # nothing is written while nothing waits
        with self._db.write() as db:
            row = db.execute(
                "UPDATE task SET state = 'running', owner = ?, attempts = attempts + 1, started_at = ?, beat_at = ?, progress = NULL "
                "WHERE id = (SELECT id FROM task WHERE state = 'queued' AND due_at <= ? ORDER BY created_at, id LIMIT 1) RETURNING *",
                (owner, when, when, when),
            ).fetchone()
        return _task(row) if row is not None else None

    def beat(self, task: Task, progress: Mapping[str, Any] | None = None, *, now: float | None = None) -> bool:
        """Say that it is being worked on; False when it must be stopped: cancelled, or somebody else's by now."""
        said = None if progress is None else json.dumps(progress)
        with self._db.write() as db:
            row = db.execute(
                "UPDATE task SET beat_at = ?, progress = coalesce(?, progress) WHERE id = ? AND state = 'running' AND owner = ? AND attempts = ? "
                "RETURNING cancel",
                (time.time() if now is None else now, said, task.id, task.owner, task.attempts),
            ).fetchone()
        return row is not None and not row["cancel"]

    def end(
        self,
        db: sqlite3.Connection,
        task: Task,
        state: State,
        *,
        result: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        now: float | None = None,
    ) -> bool:
        """End it, inside a transaction that is open; False, and nothing is changed, when this owner does not hold it
        any more.
        """
        done = db.execute(
            "UPDATE task SET state = ?, ended_at = ?, result = ?, error = ? WHERE id = ? AND state = 'running' AND owner = ? AND attempts = ?",
            (
                *(state, time.time() if now is None else now),
                *(None if part is None else json.dumps(part) for part in (result, error)),
                *(task.id, task.owner, task.attempts),
            ),
        )
        return done.rowcount == 1

    def cancel(self, identifier: str, *, actor: str = "", now: float | None = None) -> Task:
        """Stop it: at once when it waits, as soon as its process has seen it when it runs; what has ended stays as it
        is. Raises NotFoundError.
        """
        when = time.time() if now is None else now
        with self._db.write() as db:
            db.execute(
                "UPDATE task SET state = 'cancelled', cancel = 1, ended_at = ? WHERE id = ? AND state = 'queued'",
                (when, identifier),
            )
            db.execute("UPDATE task SET cancel = 1 WHERE id = ? AND state = 'running'", (identifier,))
            audit.note(db, when, actor, "task cancel", identifier, {})
        return self.get(identifier)

    def release(self, task: Task) -> None:
        """Give it back unfinished, as if this attempt had not been: the process that had it stops."""
        with self._db.write() as db:
            db.execute(
                "UPDATE task SET state = 'queued', attempts = attempts - 1, owner = NULL, progress = NULL "
                "WHERE id = ? AND state = 'running' AND owner = ? AND attempts = ?",
                (task.id, task.owner, task.attempts),
            )

    def orphans(self, stale: float, *, now: float | None = None) -> list[str]:
        """Queue again what nobody works on any more; what was begun too often fails. The ids that were touched."""
        when = time.time() if now is None else now
        if self._db.one("SELECT 1 FROM task WHERE state = 'running' AND beat_at < ? LIMIT 1", (when - stale,)) is None:
            return []
        lost = json.dumps(
            {
                "code": "died",
                "message": "the process that worked on it died every time",
                "hint": "look at the server's log",
            }
        )
        with self._db.write() as db:
            rows = db.execute(
                "SELECT id, attempts, most, cancel FROM task WHERE state = 'running' AND beat_at < ?", (when - stale,)
            ).fetchall()
            for row in rows:
                if row["cancel"]:
                    db.execute("UPDATE task SET state = 'cancelled', ended_at = ? WHERE id = ?", (when, row["id"]))
                elif row["attempts"] >= row["most"]:
                    db.execute(
                        "UPDATE task SET state = 'failed', ended_at = ?, error = ? WHERE id = ?",
                        (when, lost, row["id"]),
                    )
                else:
                    db.execute(
                        "UPDATE task SET state = 'queued', owner = NULL, progress = NULL WHERE id = ?", (row["id"],)
                    )
        return [row["id"] for row in rows]

    def forget(self, before: float) -> int:
        """Remove tasks that ended before then; how many."""
        if self._db.one("SELECT 1 FROM task WHERE ended_at < ? LIMIT 1", (before,)) is None:
            return 0
        with self._db.write() as db:
            return db.execute("DELETE FROM task WHERE ended_at < ?", (before,)).rowcount


def _task(row: Any) -> Task:
    values: dict[str, Any] = {
        name: row[name]
        for name in Task.__dataclass_fields__
        if name not in ("payload", "progress", "result", "error", "cancel")
    }
    parts: dict[str, Any] = {
        name: None if row[name] is None else json.loads(row[name])
        for name in ("payload", "progress", "result", "error")
    }
    return Task(**values, **parts, cancel=bool(row["cancel"]))
