"""What stands beside an incident: where its files came from, documents made with it (flight matrix, environment),
uploads, and the key of cookies.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.store.connection import Connections


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that somebody sent, by the SHA-256 of its content."""

    digest: str
    bytes: int
    created_at: float
    used_at: float


class Beside:
    """For the service."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def generation(self) -> int:
        """A number that is another one whenever an incident, a cluster or what people said of them has changed."""
        row = self._db.one("SELECT number FROM generation")
        return int(row["number"]) if row is not None else 0

    def changed_elsewhere(self) -> int:
        """SQLite's own count of commits by other connections than this thread's: as long as it stays, nothing needs to
        be asked.
        """
        return int(self._db.get().execute("PRAGMA data_version").fetchone()[0])

    def put_origin(
        self, db: sqlite3.Connection, incident: str, actor: str, place: Mapping[str, Any], when: float
    ) -> None:
        """Remember where its files came from, inside a transaction that is open; the last one counts."""
        db.execute(
            "INSERT OR REPLACE INTO origin SELECT num, ?, ?, ? FROM incident WHERE id = ?",
            (when, actor, json.dumps(place), incident),
        )

    def origin(self, num: int) -> dict[str, Any] | None:
        """Where the files of an incident came from, or None when it was ingested on the command line."""
        row = self._db.one("SELECT * FROM origin WHERE incident = ?", (num,))
        return {"at": row["at"], "actor": row["actor"], "place": json.loads(row["place"])} if row is not None else None

    def put_document(self, db: sqlite3.Connection, incident: str, kind: str, document: Mapping[str, Any]) -> None:
        """Keep a document, inside a transaction that is open."""
        body = zlib.compress(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
        db.execute(
            "INSERT OR REPLACE INTO document SELECT num, ?, ? FROM incident WHERE id = ?", (kind, body, incident)
        )

    def document(self, num: int, kind: str) -> dict[str, Any] | None:
        """A document of an incident."""
        row = self._db.one("SELECT body FROM document WHERE incident = ? AND kind = ?", (num, kind))
        found: dict[str, Any] | None = json.loads(zlib.decompress(row["body"])) if row is not None else None
        return found

    def put_upload(self, digest: str, size: int, *, now: float | None = None) -> None:
        """Remember a file that has arrived whole, or that it is used again."""
        when = time.time() if now is None else now
        with self._db.write() as db:
            db.execute(
                "INSERT INTO upload VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at",
                (digest, size, when, when),
            )

    def upload(self, digest: str) -> Upload | None:
        """A file that has arrived whole."""
        row = self._db.one("SELECT * FROM upload WHERE digest = ?", (digest,))
        return Upload(**dict(row)) if row is not None else None

    def old_uploads(self, before: float) -> list[str]:
        """Digests of files that nobody used since then and that no task waits for."""
        rows = self._db.read(
            "SELECT digest FROM upload u WHERE used_at < ? AND NOT EXISTS "
            "(SELECT 1 FROM task WHERE state IN ('queued', 'running') AND instr(payload, u.digest))",
            (before,),
        )
        return [row["digest"] for row in rows]

    def drop_uploads(self, digests: Sequence[str]) -> None:
        """Forget them."""
        if digests:
            with self._db.write() as db:
                db.executemany("DELETE FROM upload WHERE digest = ?", [(digest,) for digest in digests])

    def secret(self, name: str) -> bytes:
        """A secret of this store, made when it is first asked for."""
        with self._db.write() as db:
            db.execute("INSERT OR IGNORE INTO secret VALUES (?, ?)", (name, secrets.token_hex(32)))
            row = db.execute("SELECT value FROM secret WHERE name = ?", (name,)).fetchone()
        return bytes.fromhex(row["value"])

    def end_session(self, identifier: str, until: float) -> None:
        """Remember, until it would have ended by itself, that a session was ended."""
        with self._db.write() as db:
            db.execute("DELETE FROM secret WHERE name LIKE 'ended %' AND CAST(value AS REAL) < ?", (time.time(),))
            db.execute("INSERT OR REPLACE INTO secret VALUES (?, ?)", (f"ended {identifier}", str(until)))

    def session_ended(self, identifier: str) -> bool:
        """Was it?"""
        return self._db.one("SELECT 1 FROM secret WHERE name = ?", (f"ended {identifier}",)) is not None
