"""The task queue of the service: a task is claimed by one process, counted, requeued if that dies, and ended once.

A task is `queued`, `running`, and then `done`, `failed` or `cancelled`. Its process sends heartbeats with `beat`. Only
the owner of the claim may end a task, so that a process that was taken for dead ends nothing twice.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from triage.base.errors import NotFoundError
from triage.store import audit
from triage.store.interface import Connections, Transaction

State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: tuple[State, ...] = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Task:
    """A task. `progress`, `result` and `error` come from its process; times are seconds."""

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
        """Whether the task has ended."""
        return self.state in ENDED


class Tasks:
    """The tasks of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def add(
        self, kind: str, payload: Mapping[str, Any], *, actor: str, most: int = 3, now: float | None = None
    ) -> Task:
        """Queue a task and return it."""
        identifier, when = "t-" + secrets.token_hex(8), time.time() if now is None else now
        with self._db.write() as db:
            db.execute(
                "INSERT INTO task (id, kind, payload, state, most, created_at, actor) "
                "VALUES (?, ?, ?, 'queued', ?, ?, ?)",
                (identifier, kind, json.dumps(payload), most, when, actor),
            )
            audit.write_entry(db, when, actor, f"task {kind}", identifier, {"name": payload.get("name")})
        return self.get(identifier)

    def get(self, identifier: str) -> Task:
        """Return a task. Raises NotFoundError."""
        row = self._db.read_one("SELECT * FROM task WHERE id = ?", (identifier,))
        if row is None:
            hint = "ended tasks are deleted after a while; upload the job again"
            raise NotFoundError(f"there is no task {identifier}", hint=hint)
        return _task(row)

    def list_tasks(self, *, state: str | None = None, limit: int = 50, before: float | None = None) -> list[Task]:
        """Return the tasks, the newest first."""
        rows = self._db.read(
            "SELECT * FROM task WHERE (CAST(:state AS TEXT) IS NULL OR state = :state) AND created_at < :before "
            "ORDER BY created_at DESC, id LIMIT :limit",
            {"state": state, "before": before if before is not None else 1e18, "limit": limit},
        )
        return [_task(row) for row in rows]

    def counts(self) -> dict[str, int]:
        """Return how many tasks are in each state."""
        return {row["state"]: row["n"] for row in self._db.read("SELECT state, count(*) AS n FROM task GROUP BY 1")}

    def longest_wait(self, *, now: float | None = None) -> float | None:
        """Return how many seconds the oldest queued task has waited; None when none waits."""
        row = self._db.read_one("SELECT min(created_at) AS at FROM task WHERE state = 'queued'")
        return None if row is None or row["at"] is None else max(0.0, (time.time() if now is None else now) - row["at"])

    def find_same(self, kind: str, payload: Mapping[str, Any]) -> Task | None:
        """Return a queued or running task with the same payload, or None."""
        row = self._db.read_one(
            "SELECT * FROM task WHERE state IN ('queued', 'running') AND cancel = 0 AND kind = ? AND payload = ? "
            "LIMIT 1",
            (kind, json.dumps(payload)),
        )
        return _task(row) if row is not None else None

    def claim(self, owner: str, *, now: float | None = None) -> Task | None:
        """Claim the task that waits longest and count the attempt; None when none is due."""
        when = time.time() if now is None else now
        if self._db.read_one("SELECT 1 FROM task WHERE state = 'queued' AND due_at <= ? LIMIT 1", (when,)) is None:
            return None  # no write transaction while no task waits
        with self._db.write(serial=False) as db:
            row = db.execute(
                "UPDATE task SET state = 'running', owner = ?, attempts = attempts + 1, started_at = ?, beat_at = "
                "?, progress = NULL WHERE id = (SELECT id FROM task WHERE state = 'queued' AND due_at <= ? "
                f"ORDER BY created_at, id LIMIT 1 {self._db.dialect.skip_locked}) RETURNING *",
                (owner, when, when, when),
            ).fetchone()
        return _task(row) if row is not None else None

    def beat(self, task: Task, progress: Mapping[str, Any] | None = None, *, now: float | None = None) -> bool:
        """Send a heartbeat; return False when the task must stop: it is cancelled or has another owner."""
        progress_json = None if progress is None else json.dumps(progress)
        with self._db.write(serial=False) as db:
            row = db.execute(
                "UPDATE task SET beat_at = ?, progress = coalesce(?, progress) WHERE id = ? AND state = 'running' "
                "AND owner = ? AND attempts = ? RETURNING cancel",
                (time.time() if now is None else now, progress_json, task.id, task.owner, task.attempts),
            ).fetchone()
        return row is not None and not row["cancel"]

    def end(
        self,
        db: Transaction,
        task: Task,
        state: State,
        *,
        result: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        now: float | None = None,
    ) -> bool:
        """End a task, within an open transaction; return False, without a change, when this owner has lost it."""
        done = db.execute(
            "UPDATE task SET state = ?, ended_at = ?, result = ?, error = ? WHERE id = ? AND state = 'running' "
            "AND owner = ? AND attempts = ?",
            (
                *(state, time.time() if now is None else now),
                *(None if part is None else json.dumps(part) for part in (result, error)),
                *(task.id, task.owner, task.attempts),
            ),
        )
        return done.rowcount == 1

    def cancel(self, identifier: str, *, actor: str = "", now: float | None = None) -> Task:
        """Cancel a task: at once when it waits, at the next heartbeat when it runs. Raises NotFoundError."""
        when = time.time() if now is None else now
        with self._db.write() as db:
            db.execute(
                "UPDATE task SET state = 'cancelled', cancel = 1, ended_at = ? WHERE id = ? AND state = 'queued'",
                (when, identifier),
            )
            db.execute("UPDATE task SET cancel = 1 WHERE id = ? AND state = 'running'", (identifier,))
            audit.write_entry(db, when, actor, "task cancel", identifier, {})
        return self.get(identifier)

    def release(self, task: Task) -> None:
        """Queue a task again without counting this attempt, because its process stops."""
        self._db.execute(
            "UPDATE task SET state = 'queued', attempts = attempts - 1, owner = NULL, progress = NULL "
            "WHERE id = ? AND state = 'running' AND owner = ? AND attempts = ?",
            (task.id, task.owner, task.attempts),
            serial=False,
        )

    def wait(self, seconds: float) -> None:
        """Return when a task may wait for a worker, at the latest after so many seconds."""
        self._db.wait_for_change("task", seconds)

    def requeue_orphans(self, stale: float, *, now: float | None = None) -> list[str]:
        """Queue tasks again whose process is gone; after too many attempts they fail. Returns their ids.

        A heartbeat of the future is from a clock that was wrong: its process is gone too, or sends another one soon.
        """
        when = time.time() if now is None else now
        silent = "state = 'running' AND (beat_at < ? OR beat_at > ?)"
        limits = (when - stale, when + stale)
        if self._db.read_one(f"SELECT 1 FROM task WHERE {silent} LIMIT 1", limits) is None:
            return []
        message = "the process that worked on the task died in every attempt"
        lost = json.dumps({"code": "died", "message": message, "hint": "read the server's log"})
        with self._db.write() as db:
            rows = db.execute(f"SELECT id, attempts, most, cancel FROM task WHERE {silent}", limits).fetchall()
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

    def delete_ended(self, before: float) -> int:
        """Delete tasks that ended before a time; return how many."""
        if self._db.read_one("SELECT 1 FROM task WHERE ended_at < ? LIMIT 1", (before,)) is None:
            return 0
        return self._db.execute("DELETE FROM task WHERE ended_at < ?", (before,))


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
