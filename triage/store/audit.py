"""The audit log: who did what to which subject. An action can be undone by the state that its entry saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from triage.base.errors import NotFoundError, OptionError
from triage.model.store import AuditEntry
from triage.store.interface import Connections, Transaction

TWO_SIDED = ("assign", "link", "merge", "reject", "split")  # their details name a second cluster


def write_entry(
    db: Transaction,
    when: float,
    actor: str,
    action: str,
    subject: str,
    details: Mapping[str, object],
    undo: Mapping[str, object] | None = None,
) -> int:
    """Write an entry within an open transaction; return its number."""
    (number,) = db.execute(
        "INSERT INTO audit (at, actor, action, subject, details, undo) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        (
            when,
            actor,
            action,
            subject,
            json.dumps(details, ensure_ascii=False),
            None if undo is None else json.dumps(undo),
        ),
    ).fetchone()
    return int(number)


def machine_user() -> str:
    """Return the user of this machine, who acts where nobody else is named."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


class Audit:
    """The audit log of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def list_entries(
        self, *, subject: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[AuditEntry]:
        """Return the entries, the newest first; `before` is the number of the last entry of the page before.

        `subject` is the id of an incident or a cluster. For a cluster, actions on another one that created, moved or
        merged it are included.
        """
        clauses = ["id < ?"]
        arguments: list[Any] = [before if before is not None else 1 << 62]
        if subject is not None:
            clauses.append(f"(subject = ? OR action IN {TWO_SIDED} AND instr(details, ?) > 0)")
            arguments += [subject, json.dumps(subject)]
        rows = self._db.read(
            f"SELECT * FROM audit WHERE {' AND '.join(clauses)} ORDER BY id DESC LIMIT ?", (*arguments, limit)
        )
        return [_entry(row) for row in rows]

    def write_entry(self, when: float, actor: str, action: str, subject: str, details: Mapping[str, object]) -> int:
        """Write an entry that cannot be undone; return its number."""
        with self._db.write() as db:
            return write_entry(db, when, actor, action, subject, details)


def get_undoable(db: Transaction, number: int) -> tuple[AuditEntry, dict[str, Any]]:
    """Return the entry and the state it saved. Raises OptionError with the reason when it cannot be undone."""
    row = db.execute("SELECT * FROM audit WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise NotFoundError(
            f"the audit log has no entry {number}", hint="`triage clusters log` shows the entries with their numbers"
        )
    entry = _entry(row)
    if entry.undone_by is not None:
        raise OptionError(
            f"entry {number} was already undone by entry {entry.undone_by}",
            hint="`triage clusters log` shows later entries",
        )
    if row["undo"] is None:
        raise OptionError(
            f"entry {number} ({entry.action}) cannot be undone", hint="`triage clusters log` shows the entries that can"
        )
    state: dict[str, Any] = json.loads(row["undo"])
    _check_dependents(db, number, state)
    return entry, state


def _check_dependents(db: Transaction, number: int, state: Mapping[str, Any]) -> None:
    """Raise OptionError when a later action depends on the clusters of this one."""
    touched = set(state["clusters"]) | set(state["made"])
    for later in db.execute(
        "SELECT * FROM audit WHERE id > ? AND undo IS NOT NULL AND undone_by IS NULL ORDER BY id DESC", (number,)
    ):
        other = json.loads(later["undo"])
        if touched & (set(other["clusters"]) | set(other["made"])):
            raise OptionError(
                f"entry {later['id']} ({later['action']} {later['subject']}) depends on entry {number}",
                hint=f"undo entry {later['id']} first",
            )


def _entry(row: Any) -> AuditEntry:
    return AuditEntry(
        row["id"], row["at"], row["actor"], row["action"], row["subject"], json.loads(row["details"]), row["undone_by"]
    )
