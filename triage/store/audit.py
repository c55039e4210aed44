"""Who did what to what, in the order it was done; a move can be taken back by what it kept of the state before."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from triage.base.errors import NotFoundError, OptionError
from triage.model.store import Entry
from triage.store.connection import Connections

TWO_SIDED = ("assign", "link", "merge", "reject", "split")  # what their details name is a cluster too


def note(
    db: sqlite3.Connection,
    when: float,
    actor: str,
    action: str,
    subject: str,
    details: Mapping[str, object],
    undo: Mapping[str, object] | None = None,
) -> int:
    """Write an entry inside a transaction that is open; its number."""
    done = db.execute(
        "INSERT INTO audit (at, actor, action, subject, details, undo) VALUES (?, ?, ?, ?, ?, ?)",
        (
            when,
            actor,
            action,
            subject,
            json.dumps(details, ensure_ascii=False),
            None if undo is None else json.dumps(undo),
        ),
    )
    assert done.lastrowid is not None
    return done.lastrowid


class Audit:
    """The audit log of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def listed(self, *, subject: str | None = None, limit: int = 100, before: int | None = None) -> list[Entry]:
        """The newest entries first; `before` is an entry's number to go on from.

        `subject` is the id of an incident, or of a cluster: then what was done to another and made, moved or took this
        one counts as well.
        """
        clauses, arguments = ["id < ?"], [before if before is not None else 1 << 62]
        where: list[Any] = list(arguments)
        if subject is not None:
            clauses.append(f"(subject = ? OR action IN {TWO_SIDED} AND instr(details, ?))")
            where += [subject, json.dumps(subject)]
        rows = self._db.read(
            f"SELECT * FROM audit WHERE {' AND '.join(clauses)} ORDER BY id DESC LIMIT ?", (*where, limit)
        )
        return [_entry(row) for row in rows]

    def note(self, when: float, actor: str, action: str, subject: str, details: Mapping[str, object]) -> int:
        """Write an entry that cannot be taken back; its number."""
        with self._db.write() as db:
            return note(db, when, actor, action, subject, details)


def undoable(db: sqlite3.Connection, number: int) -> tuple[Entry, dict[str, Any]]:
    """The entry and what it kept of the state before. Raises OptionError when it cannot be taken back, with the reason."""
    row = db.execute("SELECT * FROM audit WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise NotFoundError(
            f"the audit log has no entry {number}", hint="`triage clusters log` shows the entries with their numbers"
        )
    entry = _entry(row)
    if entry.undone_by is not None:
        raise OptionError(
            f"entry {number} was taken back by entry {entry.undone_by}",
            hint="`triage clusters log` shows what was done since",
        )
    if row["undo"] is None:
        raise OptionError(
            f"entry {number} ({entry.action}) cannot be taken back", hint="`triage clusters log` shows those that can"
        )
    state: dict[str, Any] = json.loads(row["undo"])
    touched = set(state["clusters"]) | set(state["made"])
    for later in db.execute(
        "SELECT * FROM audit WHERE id > ? AND undo IS NOT NULL AND undone_by IS NULL ORDER BY id DESC", (number,)
    ):
        other = json.loads(later["undo"])
        if touched & (set(other["clusters"]) | set(other["made"])):
            raise OptionError(
                f"entry {later['id']} ({later['action']} {later['subject']}) came after it",
                hint=f"take back {later['id']} first",
            )
    return entry, state


def _entry(row: Any) -> Entry:
    return Entry(
        row["id"], row["at"], row["actor"], row["action"], row["subject"], json.loads(row["details"]), row["undone_by"]
    )
