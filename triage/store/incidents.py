"""Incidents in and out of the store: the same files are the same incident, however often they are ingested."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.base.errors import NotFoundError, OptionError
from triage.evidence.redact import counted, redact_all
from triage.model.diagnosis import Diagnosis
from triage.model.store import Change, Feedback, Incident, Remembered
from triage.store import codec, outbox, pages
from triage.store.clusters import Clusters
from triage.store.connection import Connections

EARLIEST = 946_684_800.0  # 2000: a stamp before it is a clock that was never set
MOST_RANKS = 4096  # rows a incident may have among blamed ranks and hosts
MOST_WARNINGS = 200
_DEVICES = ("busid", "pci", "gpu", "device")
COLUMNS = (
    "i.num, i.id, i.job, j.name AS job_name, j.path, i.verdict, i.title, i.signature, k.cluster, c.name, i.domain, i.severity, i.confidence, "
    "i.ranks, i.hosts, i.at, i.stored_at, i.seen_at, i.seen, i.catalog_version, "
    "(SELECT count(*) FROM feedback f WHERE f.incident = i.num AND f.verdict = 'agree') AS agree, "
    "(SELECT count(*) FROM feedback f WHERE f.incident = i.num AND f.verdict = 'wrong') AS wrong"
)
TABLES = "incident i JOIN job j ON j.id = i.job LEFT JOIN cluster_key k ON k.key = i.key LEFT JOIN cluster c ON c.id = k.cluster"


@dataclass(frozen=True, slots=True)
class Stored:
    """What came of storing a diagnosis. `diagnosis` has the clusters of the store and no secret; `new` is false when it
    was seen before.
    """

    id: str
    new: bool
    seen: int
    diagnosis: Diagnosis


class Incidents:
    """The incidents of a store."""

    def __init__(self, connections: Connections, clusters: Clusters) -> None:
        self._db = connections
        self.clusters = clusters

    def add(self, diagnosis: Diagnosis, *, now: float | None = None) -> Stored:
        """Store it: a new incident, or one more sight of a known one; then what the catalog says now is kept and the
        change remembered.
        """
        diagnosis = redact_all(diagnosis)
        when = time.time() if now is None else now
        digest = codec.digest(diagnosis)
        identifier = "i-" + diagnosis.job.id.removeprefix("j-")
        with self._db.write() as connection:
            known = connection.execute("SELECT num, digest, seen FROM incident WHERE id = ?", (identifier,)).fetchone()
            if known is not None:
                connection.execute(
                    "UPDATE incident SET seen = seen + 1, seen_at = ? WHERE num = ?", (when, known["num"])
                )
            if known is None or known["digest"] != digest:
                num = self._write(connection, identifier, diagnosis, digest, when, known)
            else:
                num = known["num"]
            diagnosis = self._current(num, diagnosis)
        return Stored(identifier, known is None, 1 if known is None else known["seen"] + 1, diagnosis)

    def get(self, wanted: str) -> Remembered:
        """Everything about the incident `wanted`: its id, its job's id, or the first digits of either. Raises
        OptionError.
        """
        num = self.number(wanted)
        row = self._db.one(
            f"SELECT {COLUMNS}, r.body FROM {TABLES} JOIN report r ON r.num = i.num WHERE i.num = ?", (num,)
        )
        assert row is not None
        feedback = self._db.read(
            "SELECT f.*, i.id AS name FROM feedback f JOIN incident i ON i.num = f.incident WHERE f.incident = ?",
            (num,),
        )
        changes = self._db.read(
            "SELECT h.*, i.id AS name FROM history h JOIN incident i ON i.num = h.incident WHERE h.incident = ? ORDER BY h.id",
            (num,),
        )
        kinds = self._db.read("SELECT kind, count FROM redacted WHERE incident = ? ORDER BY kind", (num,))
        return Remembered(
            incident=incident(row),
            diagnosis=codec.diagnosis(row["body"], self._found(num)),
            feedback=tuple(map(spoken, feedback)),
            history=tuple(map(change, changes)),
            redacted={item["kind"]: item["count"] for item in kinds},
        )

    def number(self, wanted: str) -> int:
        """The row of an incident by its id, its job's id, or the first digits of either. Raises OptionError when none
        or several have them.
        """
        digits = wanted.strip().lower()
        digits = digits[2:] if digits[:2] in ("i-", "j-") else digits
        rows = []
        if digits and all(sign.isalnum() or sign in "-_" for sign in digits):
            rows = self._db.read(
                "SELECT num, id FROM incident WHERE id >= ? AND id < ? ORDER BY id LIMIT 6",
                (f"i-{digits}", f"i-{digits}\U0010ffff"),
            )
        exact = [row for row in rows if row["id"] == f"i-{digits}"]
        if len(exact or rows) == 1:
            return int((exact or rows)[0]["num"])
        if rows:
            raise OptionError(
                f"several incidents begin with {wanted}",
                hint="give more of the id: " + ", ".join(row["id"] for row in rows[:5]),
            )
        raise NotFoundError(
            f"the store has no incident {wanted}",
            hint="`triage list` shows those it has; ids are i- and the digits of the job's id",
        )

    def changes(self, of: str, *, limit: int = 20) -> list[Change]:
        """Incidents that came to be held for this signature or cluster, or no longer are, the latest first."""
        rows = self._db.read(
            "SELECT h.*, i.id AS name FROM history h JOIN incident i ON i.num = h.incident WHERE h.old = ? OR h.new = ? "
            "ORDER BY h.id DESC LIMIT ?",
            (of, of, limit),
        )
        return [change(row) for row in rows]

    def last_seen(self) -> float | None:
        """When something was last ingested for the first time."""
        row = self._db.one("SELECT stored_at FROM incident ORDER BY num DESC LIMIT 1")
        return float(row["stored_at"]) if row is not None else None

    def remove(self, nums: Sequence[int]) -> None:
        """Forget these incidents; what clusters counted of them stays."""
        with self._db.write() as connection:
            for num in nums:
                connection.execute("DELETE FROM feedback WHERE incident = ?", (num,))
                connection.execute("DELETE FROM page WHERE num = ?", (num,))
                connection.execute("DELETE FROM incident WHERE num = ?", (num,))
            connection.execute("DELETE FROM job WHERE NOT EXISTS (SELECT 1 FROM incident WHERE incident.job = job.id)")

    def rewrite(self, num: int, diagnosis: Diagnosis, reason: str, *, now: float | None = None) -> None:
        """Put another diagnosis in the place of the one that the incident has; the change is remembered."""
        with self._db.write() as connection:
            known = connection.execute("SELECT num, id, digest FROM incident WHERE num = ?", (num,)).fetchone()
            self._write(
                connection,
                known["id"],
                diagnosis,
                codec.digest(diagnosis),
                time.time() if now is None else now,
                known,
                reason,
            )

    def _write(
        self,
        db: sqlite3.Connection,
        identifier: str,
        diagnosis: Diagnosis,
        digest: str,
        when: float,
        known: sqlite3.Row | None,
        reason: str = "ingest",
    ) -> int:
        before = _held(db, known["num"]) if known is not None else None
        placed = codec.placed(diagnosis)
        keys = {
            place: self.clusters.assign(db, item.finding, identifier, diagnosis, when, count=known is None)
            for place, item in enumerate(placed)
            if item.finding.signature is None
        }
        _job(db, diagnosis)
        num = _incident(
            db,
            identifier,
            diagnosis,
            digest,
            when,
            known,
            next((keys.get(p) for p, item in enumerate(placed) if item.root), None),
        )
        db.execute("INSERT OR REPLACE INTO report VALUES (?, ?)", (num, codec.body(diagnosis)))
        _findings(db, num, placed, keys)
        _around(db, num, diagnosis, when)
        pages.write(db, num, identifier, diagnosis, [key for key in keys.values() if key])
        if before is not None:
            _remember(db, num, identifier, before, _held(db, num), reason, when)
        return num

    def _found(self, num: int) -> dict[int, str]:
        rows = self._db.read(
            "SELECT f.place, k.cluster FROM finding f JOIN cluster_key k ON k.key = f.key WHERE f.incident = ?", (num,)
        )
        return {row["place"]: row["cluster"] for row in rows}

    def _current(self, num: int, diagnosis: Diagnosis) -> Diagnosis:
        """The diagnosis with the clusters that its unknown failures have in this store."""
        found = self._found(num)
        placed = codec.placed(diagnosis)
        items = [
            item.finding if place not in found else dataclasses.replace(item.finding, cluster=found[place])
            for place, item in enumerate(placed)
        ]
        if all(new is item.finding or new == item.finding for new, item in zip(items, placed, strict=True)):
            return diagnosis
        known = len(diagnosis.findings)
        roots = [new for new, item in zip(items, placed, strict=True) if item.root]
        return dataclasses.replace(
            diagnosis,
            root_cause=roots[-1] if roots else None,
            findings=tuple(items[:known]),
            unknown=tuple(items[known : known + len(diagnosis.unknown)]),
        )


def incident(row: Any) -> Incident:
    """A row with COLUMNS."""
    values = {name: row[name] for name in Incident.__dataclass_fields__ if name not in ("ranks", "hosts")}
    return Incident(**values, ranks=tuple(json.loads(row["ranks"])), hosts=tuple(json.loads(row["hosts"])))


def spoken(row: Any) -> Feedback:
    """A row of feedback with the incident's id as `name`."""
    return Feedback(
        row["id"], row["name"], row["at"], row["actor"], row["verdict"], row["because"], row["signature"], row["said"]
    )


def change(row: Any) -> Change:
    """A row of history with the incident's id as `name`."""
    return Change(row["name"], row["at"], row["reason"], row["old"], row["new"], row["old_catalog"], row["new_catalog"])


def _job(db: sqlite3.Connection, diagnosis: Diagnosis) -> None:
    job = diagnosis.job
    db.execute(
        "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name, path = excluded.path, "
        "world_size = excluded.world_size, first_time = excluded.first_time, last_time = excluded.last_time, versions = excluded.versions",
        (
            job.id,
            codec.plain(job.name),
            codec.plain(job.path),
            job.world_size,
            job.first_time,
            job.last_time,
            json.dumps(dict(job.versions)),
        ),
    )


def _incident(
    db: sqlite3.Connection,
    identifier: str,
    diagnosis: Diagnosis,
    digest: str,
    when: float,
    known: sqlite3.Row | None,
    key: str | None,
) -> int:
    root, job = diagnosis.root_cause, diagnosis.job
    values: dict[str, Any] = {
        "job": job.id,
        "verdict": diagnosis.verdict,
        "title": codec.plain(root.title) if root else "",
        "signature": root.signature if root else None,
        "key": key,
        "domain": root.domain if root else "",
        "severity": root.severity if root else "",
        "confidence": root.confidence if root else 0.0,
        "ranks": json.dumps(list(root.ranks[:MOST_RANKS]) if root else []),
        "hosts": codec.names(blamed_hosts(diagnosis)),
        "device": next((root.captures[name] for name in _DEVICES if root.captures.get(name)), None) if root else None,
        "at": happened(diagnosis, when),
        "tool_version": diagnosis.tool_version,
        "catalog_version": diagnosis.catalog_version,
        "digest": digest,
    }
    if known is not None:
        changed = ", ".join(f"{name} = :{name}" for name in values)
        db.execute(f"UPDATE incident SET {changed} WHERE num = :num", {**values, "num": known["num"]})
        for table in ("attempt", "finding", "blamed_rank", "host", "warning", "redacted"):
            db.execute(f"DELETE FROM {table} WHERE incident = ?", (known["num"],))
        return int(known["num"])
    values = {**values, "id": identifier, "stored_at": when, "seen_at": when, "seen": 1}
    done = db.execute(
        f"INSERT INTO incident ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)})", values
    )
    assert done.lastrowid is not None
    return done.lastrowid


def _findings(db: sqlite3.Connection, num: int, placed: Sequence[codec.Placed], keys: Mapping[int, str | None]) -> None:
    for place, item in enumerate(placed):
        finding = item.finding
        db.execute(
            "INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(
                    num,
                    place,
                    item.list,
                    item.root,
                    finding.signature,
                    finding.revision,
                    finding.fingerprint,
                    keys.get(place),
                ),
                *(finding.role, finding.confidence, finding.count),
            ),
        )


def _around(db: sqlite3.Connection, num: int, diagnosis: Diagnosis, when: float) -> None:
    """What stands about the findings: attempts, blamed ranks, hosts, warnings, what was taken out."""
    root = diagnosis.root_cause
    db.executemany(
        "INSERT INTO blamed_rank VALUES (?, ?)",
        [(rank, num) for rank in dict.fromkeys(root.ranks[:MOST_RANKS] if root else ())],
    )
    blamed = set(blamed_hosts(diagnosis))
    hosts = dict.fromkeys([*sorted(blamed), *diagnosis.job.hosts])
    db.executemany(
        "INSERT INTO host VALUES (?, ?, ?)",
        [(codec.plain(name), num, name in blamed) for name in list(hosts)[:MOST_RANKS]],
    )
    facts = [fact for item in codec.placed(diagnosis) for fact in item.finding.evidence]
    spans: dict[int, list[float]] = {}
    for fact in facts:
        spans.setdefault(fact.origin.attempt, []).extend([] if fact.origin.time is None else [fact.origin.time])
    db.executemany(
        "INSERT INTO attempt VALUES (?, ?, ?, ?)",
        [(num, number, min(times, default=None), max(times, default=None)) for number, times in spans.items()],
    )
    notes = diagnosis.warnings[:MOST_WARNINGS]
    db.executemany(
        "INSERT INTO warning VALUES (?, ?, ?, ?, ?)",
        [
            (
                num,
                place,
                note.code,
                None if note.source is None else codec.plain(note.source),
                codec.plain(note.message),
            )
            for place, note in enumerate(notes)
        ],
    )
    db.executemany(
        "INSERT INTO redacted VALUES (?, ?, ?)", [(num, kind, count) for kind, count in counted(facts).items()]
    )


def blamed_hosts(diagnosis: Diagnosis) -> list[str]:
    """The hosts of the root cause: those it names, else those of its ranks."""
    root = diagnosis.root_cause
    if root is None:
        return []
    if root.hosts:
        return list(dict.fromkeys(root.hosts))[:MOST_RANKS]
    ranks = set(root.ranks)
    return [host for host, members in diagnosis.job.hosts.items() if ranks.intersection(members)][:MOST_RANKS]


def happened(diagnosis: Diagnosis, when: float) -> float:
    """When it failed: the root's first time, else the job's last, else now; clocks that cannot be right do not count."""
    root = diagnosis.root_cause
    for told in (root.first_time if root else None, diagnosis.job.last_time, diagnosis.job.first_time):
        if told is not None and EARLIEST < told < when + 86_400:
            return told
    return when


def _held(db: sqlite3.Connection, num: int) -> tuple[str, str]:
    """What the incident is held for, and by which catalog."""
    row = db.execute(
        "SELECT i.verdict, i.signature, k.cluster, i.catalog_version FROM incident i LEFT JOIN cluster_key k ON k.key = i.key WHERE num = ?",
        (num,),
    ).fetchone()
    return row["signature"] or row["cluster"] or row["verdict"], row["catalog_version"]


def _remember(
    db: sqlite3.Connection,
    num: int,
    identifier: str,
    before: tuple[str, str],
    after: tuple[str, str],
    reason: str,
    when: float,
) -> None:
    """A line of history, and a post for those who were told the old answer."""
    if before[0] == after[0]:
        return
    done = db.execute(
        "INSERT INTO history (incident, at, reason, old, new, old_catalog, new_catalog) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (num, when, reason, before[0], after[0], before[1], after[1]),
    )
    payload = {"incident": identifier, "old": before[0], "new": after[0], "reason": reason}
    outbox.put(db, "changed", identifier, f"changed:{identifier}:{done.lastrowid}", payload, when)
