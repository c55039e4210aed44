"""What the service stores besides incidents: origins and documents of incidents, uploads, secrets, ended sessions."""

from __future__ import annotations

import json
import secrets
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.store.interface import Connections, Transaction


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file, by the SHA-256 of its content."""

    digest: str
    bytes: int
    created_at: float
    used_at: float


@dataclass(frozen=True, slots=True)
class Changes:
    """`generation` counts changes of incidents, clusters and feedback; `decision` is the audit log's last entry."""

    generation: int = 0
    decision: int = 0


class ServiceData:
    """The service's own data in a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def get_generation(self) -> int:
        """Return a number that changes with every change of an incident, a cluster or their feedback."""
        row = self._db.read_one("SELECT number FROM generation")
        return int(row["number"]) if row is not None else 0

    def count_changes(self) -> Changes:
        """Return the counts of changes, of the same moment."""
        row = self._db.read("SELECT (SELECT number FROM generation) AS number, (SELECT max(id) FROM audit) AS entry")[0]
        return Changes(int(row["number"] or 0), int(row["entry"] or 0))

    def get_data_version(self) -> tuple[object, ...]:
        """Return what changes with every commit of another connection; while it stays, nothing has changed."""
        return self._db.data_version()

    def save_origin(self, db: Transaction, incident: str, actor: str, place: Mapping[str, Any], when: float) -> None:
        """Save where the files of an incident came from, within an open transaction; the last one counts."""
        db.execute(
            "INSERT INTO origin (incident, at, actor, place) SELECT num, CAST(? AS DOUBLE PRECISION), ?, ? "
            "FROM incident WHERE id = ? ON CONFLICT (incident) DO UPDATE SET at = excluded.at, "
            "actor = excluded.actor, place = excluded.place",
            (when, actor, json.dumps(place), incident),
        )

    def save_document(self, db: Transaction, incident: str, kind: str, document: Mapping[str, Any]) -> None:
        """Save a document of an incident (flight matrix, environment), within an open transaction."""
        body = zlib.compress(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
        db.execute(
            "INSERT INTO document (incident, kind, body) SELECT num, ?, ? FROM incident WHERE id = ? "
            "ON CONFLICT (incident, kind) DO UPDATE SET body = excluded.body",
            (kind, body, incident),
        )

    def get_document(self, num: int, kind: str) -> dict[str, Any] | None:
        """Return a document of an incident, or None."""
        row = self._db.read_one("SELECT body FROM document WHERE incident = ? AND kind = ?", (num, kind))
        document: dict[str, Any] | None = json.loads(zlib.decompress(row["body"])) if row is not None else None
        return document

    def list_documents(self, num: int) -> dict[str, dict[str, Any]]:
        """Return the documents of an incident by kind."""
        rows = self._db.read("SELECT kind, body FROM document WHERE incident = ? ORDER BY kind", (num,))
        return {row["kind"]: json.loads(zlib.decompress(row["body"])) for row in rows}

    def save_upload(self, digest: str, size: int, *, now: float | None = None) -> None:
        """Save a complete upload, or that it is used again."""
        when = time.time() if now is None else now
        query = "INSERT INTO upload VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at"
        self._db.execute(query, (digest, size, when, when), serial=False)

    def get_upload(self, digest: str) -> Upload | None:
        """Return a complete upload, or None."""
        row = self._db.read_one("SELECT * FROM upload WHERE digest = ?", (digest,))
        return Upload(*(row[name] for name in Upload.__dataclass_fields__)) if row is not None else None

    def list_old_uploads(self, before: float) -> list[str]:
        """Return the digests of uploads that were not used since `before` and that no task needs."""
        rows = self._db.read(
            "SELECT digest FROM upload u WHERE used_at < ? AND NOT EXISTS (SELECT 1 FROM task "
            "WHERE state IN ('queued', 'running') AND instr(payload, u.digest) > 0)",
            (before,),
        )
        return [row["digest"] for row in rows]

    def delete_uploads(self, digests: Sequence[str]) -> None:
        """Delete uploads."""
        if digests:
            with self._db.write() as db:
                db.executemany("DELETE FROM upload WHERE digest = ?", [(digest,) for digest in digests])

    def get_secret(self, name: str) -> bytes:
        """Return a secret of this store, created at its first use. Raises ReadOnlyStoreError if it cannot be."""
        stored = self._db.read_one("SELECT value FROM secret WHERE name = ?", (name,))
        if stored is not None:
            return bytes.fromhex(stored["value"])
        with self._db.write() as db:
            db.execute("INSERT INTO secret VALUES (?, ?) ON CONFLICT DO NOTHING", (name, secrets.token_hex(32)))
            row = db.execute("SELECT value FROM secret WHERE name = ?", (name,)).fetchone()
        return bytes.fromhex(row["value"])

    def end_session(self, identifier: str, until: float) -> None:
        """Record that a session was ended, until it would have expired."""
        with self._db.write() as db:
            db.execute(
                "DELETE FROM secret WHERE CASE WHEN name LIKE 'ended %' THEN CAST(value AS DOUBLE PRECISION) < ? "
                "ELSE FALSE END",
                (time.time(),),
            )
            db.execute(
                "INSERT INTO secret VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (f"ended {identifier}", str(until)),
            )

    def is_session_ended(self, identifier: str) -> bool:
        """Whether a session was ended."""
        return self._db.read_one("SELECT 1 FROM secret WHERE name = ?", (f"ended {identifier}",)) is not None
