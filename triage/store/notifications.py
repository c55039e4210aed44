"""Sent notifications: one row per message, its parts with the ids that the other side gave them, repeats and mutes.

A message is about a topic (an attempt of a job) at a place (a channel). A part is something visible of it: the message
itself, the reply with the evidence, the count of repeats. `tried` is written before a part is sent and `ref` after: a
part that was tried and has no ref may be visible or not, and is searched for before it is sent again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triage.store.interface import Connections

if TYPE_CHECKING:
    from sqlite_utils import Database

_TABLES = (
    """CREATE TABLE told (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, place TEXT NOT NULL, topic TEXT NOT NULL, cause TEXT NOT NULL, \
job TEXT NOT NULL,
    hosts TEXT NOT NULL, incident TEXT, report TEXT, at REAL NOT NULL, UNIQUE (kind, place, topic)
)""",
    "CREATE INDEX told_cause ON told (kind, place, cause, at)",
    "CREATE INDEX told_incident ON told (incident)",
    """CREATE TABLE told_part (
    told INTEGER NOT NULL REFERENCES told (id) ON DELETE CASCADE, name TEXT NOT NULL, \
tried INTEGER NOT NULL DEFAULT 0, ref TEXT, digest TEXT,
    PRIMARY KEY (told, name)
) WITHOUT ROWID""",
    """CREATE TABLE told_again (
    told INTEGER NOT NULL REFERENCES told (id) ON DELETE CASCADE, topic TEXT NOT NULL, job TEXT NOT NULL, \
hosts TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (told, topic)
) WITHOUT ROWID""",
    """CREATE TABLE mute (
    kind TEXT NOT NULL, place TEXT NOT NULL, cause TEXT NOT NULL, until REAL NOT NULL, actor TEXT NOT NULL, \
PRIMARY KEY (kind, place, cause)
) WITHOUT ROWID""",
    "CREATE TABLE request_seen (key TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
)


@dataclass(frozen=True, slots=True)
class NotificationPart:
    """A visible part of a message. `ref` is its id on the other side, `digest` a digest of its content."""

    tried: bool = False
    ref: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that is sent or to be sent. `report` is a diagnosis as JSON where there is no stored incident."""

    id: int
    kind: str
    place: str
    topic: str
    cause: str
    job: str
    hosts: tuple[str, ...]
    incident: str | None
    report: str | None
    at: float


@dataclass(frozen=True, slots=True)
class Repeat:
    """A later failure with the same cause."""

    topic: str
    job: str
    hosts: tuple[str, ...]
    at: float


def create_tables(database: Database) -> None:
    """Create the tables, as a step of the migrations."""
    for statement in _TABLES:
        database.execute(statement)


class Notifications:
    """The notifications in a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def get(self, kind: str, place: str, topic: str) -> Notification | None:
        """Return the message about a topic at a place, or None."""
        row = self._db.read_one("SELECT * FROM told WHERE kind = ? AND place = ? AND topic = ?", (kind, place, topic))
        return _message(row) if row is not None else None

    def list_for_incident(self, incident: str) -> list[Notification]:
        """Return all messages about an incident."""
        return [
            _message(row) for row in self._db.read("SELECT * FROM told WHERE incident = ? ORDER BY id", (incident,))
        ]

    def list_same_cause(self, kind: str, place: str, cause: str, since: float) -> list[Notification]:
        """Return the messages at a place about a cause since `since`, the newest first."""
        rows = self._db.read(
            "SELECT * FROM told WHERE kind = ? AND place = ? AND cause = ? AND at >= ? ORDER BY at DESC, id DESC "
            "LIMIT 100",
            (kind, place, cause, since),
        )
        return [_message(row) for row in rows]

    def save(
        self,
        kind: str,
        place: str,
        topic: str,
        *,
        cause: str,
        job: str,
        hosts: Iterable[str],
        incident: str | None,
        report: str | None,
        now: float,
    ) -> Notification:
        """Create the message, or update the one that exists."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO told (kind, place, topic, cause, job, hosts, incident, report, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, place, topic) DO UPDATE "
                "SET cause = excluded.cause, job = excluded.job, hosts = excluded.hosts, incident = "
                "excluded.incident, report = excluded.report",
                (kind, place, topic, cause, job, json.dumps(list(hosts)), incident, report, now),
            )
            message = self.get(kind, place, topic)
        assert message is not None
        return message

    def get_part(self, message: int, name: str) -> NotificationPart:
        """Return a part of a message; one without a row was never tried."""
        row = self._db.read_one("SELECT tried, ref, digest FROM told_part WHERE told = ? AND name = ?", (message, name))
        return (
            NotificationPart(bool(row["tried"]), row["ref"], row["digest"]) if row is not None else NotificationPart()
        )

    def may_be_visible(self, message: int) -> bool:
        """Whether any part of a message may be visible."""
        return self._db.read_one("SELECT 1 FROM told_part WHERE told = ? AND tried = 1 LIMIT 1", (message,)) is not None

    def save_part(self, message: int, name: str, part: NotificationPart) -> None:
        """Save the state of a part."""
        self._db.execute(
            "INSERT INTO told_part VALUES (?, ?, ?, ?, ?) ON CONFLICT (told, name) DO UPDATE "
            "SET tried = excluded.tried, ref = excluded.ref, digest = excluded.digest",
            (message, name, part.tried, part.ref, part.digest),
        )

    def add_repeat(self, message: int, topic: str, *, job: str, hosts: Iterable[str], now: float) -> int:
        """Add a repeat of a message; return how many there are. The same topic counts once."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO told_again VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (message, topic, job, json.dumps(list(hosts)), now),
            )
            return int(db.execute("SELECT count(*) FROM told_again WHERE told = ?", (message,)).fetchone()[0])

    def list_repeats(self, message: int) -> list[Repeat]:
        """Return the repeats of a message, the oldest first."""
        rows = self._db.read("SELECT * FROM told_again WHERE told = ? ORDER BY at, topic", (message,))
        return [Repeat(row["topic"], row["job"], tuple(json.loads(row["hosts"])), row["at"]) for row in rows]

    def find_by_repeat(self, kind: str, place: str, topic: str) -> Notification | None:
        """Return the message that has this topic among its repeats, or None."""
        row = self._db.read_one(
            "SELECT t.* FROM told t JOIN told_again a ON a.told = t.id WHERE t.kind = ? AND t.place = ? "
            "AND a.topic = ?",
            (kind, place, topic),
        )
        return _message(row) if row is not None else None

    def mute(self, kind: str, place: str, cause: str, until: float, actor: str) -> None:
        """Send nothing about a cause at a place until a time."""
        self._db.execute(
            "INSERT INTO mute VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, place, cause) DO UPDATE "
            "SET until = excluded.until, actor = excluded.actor",
            (kind, place, cause, until, actor),
        )

    def get_mute(self, kind: str, place: str, cause: str, now: float) -> tuple[float, str] | None:
        """Return until when a cause is muted at a place and by whom, or None."""
        row = self._db.read_one(
            "SELECT until, actor FROM mute WHERE kind = ? AND place = ? AND cause = ? AND until > ?",
            (kind, place, cause, now),
        )
        return (row["until"], row["actor"]) if row is not None else None

    def claim_request(self, key: str, *, now: float, keep: float = 86_400.0) -> bool:
        """Record a request; return whether it is new. Requests older than `keep` seconds are deleted."""
        with self._db.write() as db:
            db.execute("DELETE FROM request_seen WHERE at < ?", (now - keep,))
            return db.execute("INSERT INTO request_seen VALUES (?, ?) ON CONFLICT DO NOTHING", (key, now)).rowcount == 1

    def release_request(self, key: str) -> None:
        """Delete a request whose processing failed, so that it may come again."""
        self._db.execute("DELETE FROM request_seen WHERE key = ?", (key,))


def _message(row: Any) -> Notification:
    values = {name: row[name] for name in Notification.__dataclass_fields__ if name != "hosts"}
    return Notification(**values, hosts=tuple(json.loads(row["hosts"])))
