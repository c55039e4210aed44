"""What was told to whom: one row a message that people see, its parts with the name that the other side gave each, who
muted what.

A message is about a topic (an attempt of a job) at a place (a channel). A part is something visible of it: the message
itself, the reply
with the evidence, the count of repeats. `tried` is written before a part is sent and `ref` after: a part that was tried
and has no ref may
be visible or not, and is looked for before it is sent again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triage.store.connection import Connections

if TYPE_CHECKING:
    from sqlite_utils import Database

_TABLES = (
    """CREATE TABLE told (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, place TEXT NOT NULL, topic TEXT NOT NULL, cause TEXT NOT NULL, job TEXT NOT NULL,
    hosts TEXT NOT NULL, incident TEXT, report TEXT, at REAL NOT NULL, UNIQUE (kind, place, topic)
)""",
    "CREATE INDEX told_cause ON told (kind, place, cause, at)",
    "CREATE INDEX told_incident ON told (incident)",
    """CREATE TABLE told_part (
    told INTEGER NOT NULL REFERENCES told (id) ON DELETE CASCADE, name TEXT NOT NULL, tried INTEGER NOT NULL DEFAULT 0, ref TEXT, digest TEXT,
    PRIMARY KEY (told, name)
) WITHOUT ROWID""",
    """CREATE TABLE told_again (
    told INTEGER NOT NULL REFERENCES told (id) ON DELETE CASCADE, topic TEXT NOT NULL, job TEXT NOT NULL, hosts TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (told, topic)
) WITHOUT ROWID""",
    """CREATE TABLE mute (
    kind TEXT NOT NULL, place TEXT NOT NULL, cause TEXT NOT NULL, until REAL NOT NULL, actor TEXT NOT NULL, PRIMARY KEY (kind, place, cause)
) WITHOUT ROWID""",
    "CREATE TABLE request_seen (key TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
)


@dataclass(frozen=True, slots=True)
class Part:
    """Something visible of a message. `ref` is what the other side calls it, `digest` tells what it says."""

    tried: bool = False
    ref: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was told or is to be told. `report` is a diagnosis in JSON where there is no stored incident."""

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
class Again:
    """One more failure that is the same."""

    topic: str
    job: str
    hosts: tuple[str, ...]
    at: float


def tables(database: Database) -> None:
    """The step of the migrations that makes these tables."""
    for statement in _TABLES:
        database.execute(statement)


class Told:
    """The messages of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def message(self, kind: str, place: str, topic: str) -> Message | None:
        """The message about this topic at this place."""
        row = self._db.one("SELECT * FROM told WHERE kind = ? AND place = ? AND topic = ?", (kind, place, topic))
        return _message(row) if row is not None else None

    def about(self, incident: str) -> list[Message]:
        """All messages about an incident."""
        return [
            _message(row) for row in self._db.read("SELECT * FROM told WHERE incident = ? ORDER BY id", (incident,))
        ]

    def alike(self, kind: str, place: str, cause: str, since: float) -> list[Message]:
        """The messages at this place about this cause since then, the newest first."""
        rows = self._db.read(
            "SELECT * FROM told WHERE kind = ? AND place = ? AND cause = ? AND at >= ? ORDER BY at DESC, id DESC LIMIT 100",
            (kind, place, cause, since),
        )
        return [_message(row) for row in rows]

    def write(
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
    ) -> Message:
        """Make the message, or give the one that is there what is known now."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO told (kind, place, topic, cause, job, hosts, incident, report, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (kind, place, topic) DO UPDATE SET cause = excluded.cause, job = excluded.job, hosts = excluded.hosts, "
                "incident = excluded.incident, report = excluded.report",
                (kind, place, topic, cause, job, json.dumps(list(hosts)), incident, report, now),
            )
            found = self.message(kind, place, topic)
        assert found is not None
        return found

    def part(self, told: int, name: str) -> Part:
        """A part; one of which nothing is known was never tried."""
        row = self._db.one("SELECT tried, ref, digest FROM told_part WHERE told = ? AND name = ?", (told, name))
        return Part(bool(row["tried"]), row["ref"], row["digest"]) if row is not None else Part()

    def is_shown(self, told: int) -> bool:
        """May any part of it be visible?"""
        return self._db.one("SELECT 1 FROM told_part WHERE told = ? AND tried LIMIT 1", (told,)) is not None

    def keep(self, told: int, name: str, part: Part) -> None:
        """What is known of a part now."""
        with self._db.write() as db:
            db.execute(
                "INSERT OR REPLACE INTO told_part VALUES (?, ?, ?, ?, ?)",
                (told, name, part.tried, part.ref, part.digest),
            )

    def again(self, told: int, topic: str, *, job: str, hosts: Iterable[str], now: float) -> int:
        """One more failure that is the same; how many there are now. The same topic counts once."""
        with self._db.write() as db:
            db.execute(
                "INSERT INTO told_again VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (told, topic, job, json.dumps(list(hosts)), now),
            )
            return int(db.execute("SELECT count(*) FROM told_again WHERE told = ?", (told,)).fetchone()[0])

    def repeats(self, told: int) -> list[Again]:
        """The failures that were the same, the first of them first."""
        rows = self._db.read("SELECT * FROM told_again WHERE told = ? ORDER BY at, topic", (told,))
        return [Again(row["topic"], row["job"], tuple(json.loads(row["hosts"])), row["at"]) for row in rows]

    def counted(self, kind: str, place: str, topic: str) -> Message | None:
        """The message that counts this topic among its repeats."""
        row = self._db.one(
            "SELECT t.* FROM told t JOIN told_again a ON a.told = t.id WHERE t.kind = ? AND t.place = ? AND a.topic = ?",
            (kind, place, topic),
        )
        return _message(row) if row is not None else None

    def mute(self, kind: str, place: str, cause: str, until: float, actor: str) -> None:
        """Nothing about this cause at this place until then."""
        with self._db.write() as db:
            db.execute("INSERT OR REPLACE INTO mute VALUES (?, ?, ?, ?, ?)", (kind, place, cause, until, actor))

    def muted(self, kind: str, place: str, cause: str, now: float) -> tuple[float, str] | None:
        """Until when this cause is muted at this place, and by whom."""
        row = self._db.one(
            "SELECT until, actor FROM mute WHERE kind = ? AND place = ? AND cause = ? AND until > ?",
            (kind, place, cause, now),
        )
        return (row["until"], row["actor"]) if row is not None else None

    def first_sight(self, key: str, *, now: float, keep: float = 86_400.0) -> bool:
        """Is this request new? It is remembered; what is older than `keep` seconds is forgotten."""
        with self._db.write() as db:
            db.execute("DELETE FROM request_seen WHERE at < ?", (now - keep,))
            return db.execute("INSERT INTO request_seen VALUES (?, ?) ON CONFLICT DO NOTHING", (key, now)).rowcount == 1

    def forget_sight(self, key: str) -> None:
        """What came of this request was lost; it may come again."""
        with self._db.write() as db:
            db.execute("DELETE FROM request_seen WHERE key = ?", (key,))


def _message(row: Any) -> Message:
    values = {name: row[name] for name in Message.__dataclass_fields__ if name != "hosts"}
    return Message(**values, hosts=tuple(json.loads(row["hosts"])))
