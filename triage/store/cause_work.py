"""What people do about a cause: its status, who works on it, the ticket, and comments. The audit log has each change.

Work belongs to a signature or a cluster. After a merge of clusters the one that stays has its own work, else the latest
of the merged ones, and the comments of all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from triage.base.errors import OptionError
from triage.evidence.redact import redact
from triage.store import audit, codec
from triage.store.interface import Connections, Transaction

if TYPE_CHECKING:
    from sqlite_utils import Database

WorkStatus = Literal["open", "acknowledged", "fixed", "ignored"]
_CREATE = """
CREATE TABLE cause_work (
    cause TEXT PRIMARY KEY, status TEXT NOT NULL CHECK (status IN ('open', 'acknowledged', 'fixed', 'ignored')),
    fixed_in TEXT NOT NULL, fixed_at REAL, ignored_until REAL, assignee TEXT NOT NULL, ticket TEXT NOT NULL,
    at REAL NOT NULL, actor TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE cause_comment (
    cause TEXT NOT NULL, at REAL NOT NULL, actor TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (cause, at, actor)
) WITHOUT ROWID
"""
MOST_TEXT = {"fixed_in": 100, "assignee": 100, "ticket": 500}
_UPSERT = (
    "INSERT INTO cause_work (cause, status, fixed_in, fixed_at, ignored_until, assignee, ticket, at, actor) "
    "VALUES (:cause, :status, :fixed_in, :fixed_at, :ignored_until, :assignee, :ticket, :at, :actor) "
    "ON CONFLICT (cause) DO UPDATE SET status = excluded.status, fixed_in = excluded.fixed_in, "
    "fixed_at = excluded.fixed_at, ignored_until = excluded.ignored_until, assignee = excluded.assignee, "
    "ticket = excluded.ticket, at = excluded.at, actor = excluded.actor"
)


def create_tables(database: Database) -> None:
    """Create the tables. PostgreSQL's are in `postgres/steps/0003.sql`."""
    for statement in _CREATE.split(";\n"):
        database.execute(statement)


@dataclass(frozen=True, slots=True)
class Work:
    """The stored work on a cause. `fixed_at` is when the fix came, `ignored_until` when ignoring ends, in seconds."""

    status: WorkStatus = "open"
    fixed_in: str = ""
    fixed_at: float | None = None
    ignored_until: float | None = None
    assignee: str = ""
    ticket: str = ""

    def is_ignored(self, now: float) -> bool:
        """Whether it is ignored at that time: this ends by itself."""
        return self.status == "ignored" and self.ignored_until is not None and now < self.ignored_until


@dataclass(frozen=True, slots=True)
class WorkChange:
    """What to change; None leaves a value as it is.

    `fixed_in` is a version. `date` is when the fix came (by default now), or until when the cause is ignored.
    """

    status: WorkStatus | None = None
    fixed_in: str | None = None
    date: float | None = None
    assignee: str | None = None
    ticket: str | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """What a person wrote about a cause."""

    at: float
    actor: str
    text: str


class CauseWork:
    """The work on the causes of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def read_all(self) -> dict[str, Work]:
        """Return the work by cause; that of a merged cluster belongs to the one that stays."""
        rows = self._db.read("SELECT * FROM cause_work ORDER BY at")
        redirects = self._redirects()
        moved_first = sorted(rows, key=lambda row: row["cause"] not in redirects)
        names = Work.__dataclass_fields__
        return {_resolve(redirects, row["cause"]): Work(**{name: row[name] for name in names}) for row in moved_first}

    def change(self, causes: Sequence[str], change: WorkChange, *, actor: str, now: float | None = None) -> list[int]:
        """Change the work on causes, given by signature or cluster id; return the audit entries. Raises OptionError."""
        when = time.time() if now is None else now
        _check_change(change, when)
        with self._db.write() as db:
            current = self.read_all()
            return [
                self._change_one(db, cause, current.get(cause, Work()), change, actor, when)
                for cause in dict.fromkeys(causes)
            ]

    def _change_one(self, db: Transaction, cause: str, old: Work, change: WorkChange, actor: str, when: float) -> int:
        new: dict[str, object] = {name: getattr(old, name) for name in Work.__dataclass_fields__}
        if change.status is not None:
            is_fixed, is_ignored = change.status == "fixed", change.status == "ignored"
            new |= {
                "status": change.status,
                "fixed_in": _clean(change.fixed_in or "") if is_fixed else "",
                "fixed_at": (when if change.date is None else change.date) if is_fixed else None,
                "ignored_until": change.date if is_ignored else None,
            }
        texts = {"assignee": change.assignee, "ticket": change.ticket}
        new |= {name: _clean(text) for name, text in texts.items() if text is not None}
        details = {name: _readable(value) for name, value in new.items() if value != getattr(old, name)}
        db.execute(_UPSERT, {**new, "cause": cause, "at": when, "actor": actor})
        return audit.write_entry(db, when, actor, "work", cause, details)

    def comment(self, cause: str, text: str, *, actor: str, now: float | None = None) -> Comment:
        """Add a comment. Raises OptionError for an empty one."""
        text = codec.without_surrogates(redact(text.strip()))
        if not text:
            raise OptionError("the comment is empty", hint="write what you know about this cause")
        comment = Comment(time.time() if now is None else now, actor, text)
        with self._db.write() as db:
            values = (cause, comment.at, actor, text)
            db.execute("INSERT INTO cause_comment (cause, at, actor, text) VALUES (?, ?, ?, ?)", values)
            audit.write_entry(db, comment.at, actor, "comment", cause, {"text": text})
        return comment

    def list_comments(self, cause: str) -> list[Comment]:
        """Return the comments on a cause and on the clusters that were merged into it, the oldest first."""
        return [comment for _, comment in self.list_all_comments([cause])]

    def list_all_comments(self, causes: Iterable[str]) -> list[tuple[str, Comment]]:
        """Return (cause, comment) for the comments on some causes, the oldest first."""
        redirects, chosen = self._redirects(), dict.fromkeys(causes)
        of = {cause: cause for cause in chosen}
        of |= {merged: now for merged in redirects if (now := _resolve(redirects, merged)) in chosen}
        if not of:
            return []
        marks = ", ".join("?" * len(of))
        rows = self._db.read(f"SELECT * FROM cause_comment WHERE cause IN ({marks}) ORDER BY at, actor", list(of))
        return [(of[row["cause"]], Comment(row["at"], row["actor"], row["text"])) for row in rows]

    def _redirects(self) -> dict[str, str]:
        rows = self._db.read("SELECT id, redirect FROM cluster WHERE redirect IS NOT NULL")
        return {row["id"]: row["redirect"] for row in rows}


def _resolve(redirects: dict[str, str], cause: str) -> str:
    """Return the cluster that a merged one belongs to now."""
    while cause in redirects:
        cause = redirects[cause]
    return cause


def _readable(value: object) -> object:
    """Return a value for the audit log: a time as text."""
    return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M") if isinstance(value, float) else value


def _clean(text: str) -> str:
    return codec.without_surrogates(" ".join(redact(text).split()))


def _check_change(change: WorkChange, when: float) -> None:
    """Raise OptionError for a change that has no meaning."""
    if change == WorkChange():
        raise OptionError("nothing is changed", hint="give a status, an assignee or a ticket")
    for name, most in MOST_TEXT.items():
        if len(getattr(change, name) or "") > most:
            raise OptionError(f"{name} is longer than {most} characters", hint="shorten it")
    if change.status == "ignored" and (change.date is None or change.date <= when):
        raise OptionError("an ignored cause needs a date after now", hint="give the date until which it is ignored")
    if change.status not in ("fixed", "ignored") and (change.date is not None or change.fixed_in):
        raise OptionError("a date or a version belongs to fixed or ignored", hint="set the status to fixed or ignored")
