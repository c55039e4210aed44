"""Store incidents and read them: the same files are the same incident, however often they are ingested.

The id of a job is the digest of what was read. An incident is known by all of it; its own id is the first digits.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.base.errors import NotFoundError, OptionError
from triage.evidence.redact import count_redactions, redact_all
from triage.model import (
    INCONCLUSIVE,
    Diagnosis,
    DiagnosisChange,
    Feedback,
    Finding,
    Incident,
    StoredIncident,
    record_keys,
)
from triage.ranks.pci_addresses import format_pci_address
from triage.store import audit, codec, fts_index
from triage.store.clusters import Clusters
from triage.store.fact_tables import write_facts
from triage.store.failure_times import failure_time
from triage.store.interface import Connections, Row, Transaction
from triage.store.verdict_changes import Occasion, current_cause, record_change

MOST_RANKS = 4096  # rows of one incident in blamed_rank and in host
MOST_WARNINGS = 200
ID_DIGITS = 12  # of the job's digest, and more where another job begins with the same ones
_DEVICES = ("busid", "pci", "gpu", "device")
COLUMNS = (
    "i.num, i.id, i.job, j.name AS job_name, j.path, i.verdict, i.title, i.signature, k.cluster, c.name, i.domain, "
    "i.severity, i.confidence, i.ranks, i.hosts, i.at, i.has_time, i.stored_at, i.seen_at, i.seen, i.catalog_version, "
    "(SELECT count(*) FROM feedback f WHERE f.incident = i.num AND f.verdict = 'agree') AS agree, (SELECT count(*) "
    "FROM feedback f WHERE f.incident = i.num AND f.verdict = 'wrong') AS wrong"
)
TABLES = (
    "incident i JOIN job j ON j.id = i.job LEFT JOIN cluster_key k ON k.key = i.key LEFT "
    "JOIN cluster c ON c.id = k.cluster"
)


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The result of storing a diagnosis.

    `is_new` is False when the same files were ingested before, `ingests` counts how often. `diagnosis` has the clusters
    of the store and no secrets.
    """

    id: str
    is_new: bool
    ingests: int
    diagnosis: Diagnosis


class Incidents:
    """The incidents of a store."""

    def __init__(self, connections: Connections, clusters: Clusters) -> None:
        self._db = connections
        self.clusters = clusters

    def add(self, diagnosis: Diagnosis, *, actor: str | None = None, now: float | None = None) -> StoreResult:
        """Store a diagnosis as a new incident, or replace the diagnosis of a known one and record the change.

        `actor` goes to the audit log if the verdict changes; by default it is the user of this machine.
        """
        diagnosis = redact_all(diagnosis)
        when = time.time() if now is None else now
        digest, job = codec.diagnosis_digest(diagnosis), diagnosis.job.id
        with self._db.write() as connection:
            query = "SELECT num, id, digest, seen, stored_at FROM incident WHERE job = ?"
            known = connection.execute(query, (job,)).fetchone()
            identifier = choose_id(connection, job) if known is None else known["id"]
            if known is not None:
                connection.execute(
                    "UPDATE incident SET seen = seen + 1, seen_at = ? WHERE num = ?", (when, known["num"])
                )
            if known is None or known["digest"] != digest:
                occasion = Occasion(when, actor or audit.machine_user(), "ingest")
                num = self._write(connection, identifier, diagnosis, digest, occasion, known)
            else:
                num = known["num"]
            diagnosis = self._with_stored_clusters(num, diagnosis)
        return StoreResult(identifier, known is None, 1 if known is None else known["seen"] + 1, diagnosis)

    def get(self, reference: str) -> StoredIncident:
        """Return everything about an incident by its id, its job's id, or their first digits. Raises OptionError."""
        num = self.find_number(reference)
        row = self._db.read(
            f"SELECT {COLUMNS}, r.body FROM {TABLES} JOIN report r ON r.num = i.num WHERE i.num = ?", (num,)
        )[0]
        feedback = self._db.read(
            "SELECT f.*, i.id AS name FROM feedback f JOIN incident i ON i.num = f.incident WHERE f.incident = ?",
            (num,),
        )
        changes = self._db.read(
            "SELECT h.*, i.id AS name FROM history h JOIN incident i ON i.num = h.incident WHERE h.incident = ? "
            "ORDER BY h.id",
            (num,),
        )
        kinds = self._db.read("SELECT kind, count FROM redacted WHERE incident = ? ORDER BY kind", (num,))
        return StoredIncident(
            incident=incident_from_row(row),
            diagnosis=codec.decode_diagnosis(row["body"], self._clusters_by_place(num)),
            feedback=tuple(map(feedback_from_row, feedback)),
            history=tuple(map(change_from_row, changes)),
            redacted={item["kind"]: item["count"] for item in kinds},
        )

    def find_number(self, reference: str) -> int:
        """Return the row number of an incident by its id, its job's id, or their first digits. Raises OptionError."""
        digits = reference.strip().lower()
        digits = digits[2:] if digits[:2] in ("i-", "j-") else digits
        rows = []
        if digits and all(sign.isalnum() or sign in "-_" for sign in digits):
            rows = self._db.read(
                "SELECT num, id FROM incident WHERE (id >= ? AND id < ?) OR (job >= ? AND job < ?) ORDER BY id LIMIT 6",
                (f"i-{digits}", f"i-{digits}\U0010ffff", f"j-{digits}", f"j-{digits}\U0010ffff"),
            )
        exact = [row for row in rows if row["id"] == f"i-{digits}"]
        if len(exact or rows) == 1:
            return int((exact or rows)[0]["num"])
        if rows:
            raise OptionError(
                f"several incidents begin with {reference}",
                hint="give more of the id: " + ", ".join(row["id"] for row in rows[:5]),
            )
        raise NotFoundError(
            f"the store has no incident {reference}",
            hint="`triage list` shows the incidents; an id is i- and the digits of the job's id",
        )

    def list_changes(self, cause: str, *, limit: int = 20) -> list[DiagnosisChange]:
        """Return the changes of diagnoses to or from this signature or cluster, the latest first."""
        rows = self._db.read(
            "SELECT h.*, i.id AS name FROM history h JOIN incident i ON i.num = h.incident "
            "WHERE h.old = ? OR h.new = ? ORDER BY h.id DESC LIMIT ?",
            (cause, cause, limit),
        )
        return [change_from_row(row) for row in rows]

    def last_stored_at(self) -> float | None:
        """Return when a new incident was last stored."""
        row = self._db.read_one("SELECT stored_at FROM incident ORDER BY num DESC LIMIT 1")
        return float(row["stored_at"]) if row is not None else None

    def remove(self, nums: Sequence[int]) -> None:
        """Delete incidents; the counts of their clusters stay."""
        with self._db.write() as connection:
            for num in nums:
                connection.execute("DELETE FROM feedback WHERE incident = ?", (num,))
                connection.execute("DELETE FROM page WHERE num = ?", (num,))
                connection.execute("DELETE FROM incident WHERE num = ?", (num,))
            connection.execute("DELETE FROM job WHERE NOT EXISTS (SELECT 1 FROM incident WHERE incident.job = job.id)")

    def replace_diagnosis(
        self, num: int, diagnosis: Diagnosis, reason: str, *, actor: str | None = None, now: float | None = None
    ) -> None:
        """Replace the diagnosis of an incident and record the change; `actor` as in `add`."""
        occasion = Occasion(time.time() if now is None else now, actor or audit.machine_user(), reason)
        digest = codec.diagnosis_digest(diagnosis)
        with self._db.write() as connection:
            query = "SELECT num, id, digest, stored_at FROM incident WHERE num = ?"
            known = connection.execute(query, (num,)).fetchone()
            self._write(connection, known["id"], diagnosis, digest, occasion, known)

    def _write(
        self,
        db: Transaction,
        identifier: str,
        diagnosis: Diagnosis,
        digest: str,
        occasion: Occasion,
        known: Row | None,
    ) -> int:
        when = occasion.at
        before = current_cause(db, known["num"]) if known is not None else None
        placed = codec.place_findings(diagnosis)
        keys = {
            place: self.clusters.assign(db, item.finding, identifier, diagnosis, when, count=known is None)
            for place, item in enumerate(placed)
            if item.finding.signature is None
        }
        _write_job(db, diagnosis)
        root_key = next((keys.get(place) for place, item in enumerate(placed) if item.root), None)
        num = _write_incident(db, identifier, diagnosis, digest, when, known, root_key)
        db.execute(
            "INSERT INTO report VALUES (?, ?) ON CONFLICT (num) DO UPDATE SET body = excluded.body",
            (num, codec.encode_diagnosis(diagnosis)),
        )
        _write_findings(db, num, enumerate(placed), keys)
        _write_details(db, num, diagnosis)
        _write_warnings(db, num, diagnosis)
        page = fts_index.page_of(identifier, diagnosis, [key for key in keys.values() if key])
        self._db.dialect.text.write_page(db, num, *page)
        if before is not None:
            record_change(db, num, identifier, before, current_cause(db, num), occasion)
        return num

    def _clusters_by_place(self, num: int) -> dict[int, str]:
        rows = self._db.read(
            "SELECT f.place, k.cluster FROM finding f JOIN cluster_key k ON k.key = f.key WHERE f.incident = ?", (num,)
        )
        return {row["place"]: row["cluster"] for row in rows}

    def _with_stored_clusters(self, num: int, diagnosis: Diagnosis) -> Diagnosis:
        """Return the diagnosis with the clusters that its unknown failures have in this store."""
        clusters = self._clusters_by_place(num)
        placed = codec.place_findings(diagnosis)
        items = [
            item.finding if place not in clusters else dataclasses.replace(item.finding, cluster=clusters[place])
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


def incident_from_row(row: Any) -> Incident:
    """Return the incident in a row with COLUMNS."""
    values = {name: row[key] for name, key in record_keys(Incident).items()}
    values |= {"ranks": tuple(json.loads(row["ranks"])), "hosts": tuple(json.loads(row["hosts"]))}
    return Incident(**{**values, "has_time": bool(row["has_time"])})


def feedback_from_row(row: Any) -> Feedback:
    """Return the feedback in a row that has the incident's id as `name`."""
    return Feedback(
        row["id"], row["name"], row["at"], row["actor"], row["verdict"], row["because"], row["signature"], row["said"]
    )


def change_from_row(row: Any) -> DiagnosisChange:
    """Return the change in a row of history that has the incident's id as `name`."""
    return DiagnosisChange(
        row["name"], row["at"], row["reason"], row["old"], row["new"], row["old_catalog"], row["new_catalog"]
    )


def choose_id(db: Transaction, job: str) -> str:
    """Return an id for the incident of a new job: the first digits of the job's id that no other incident has."""
    digits = job.removeprefix("j-")
    for count in range(ID_DIGITS, len(digits), 4):
        identifier = f"i-{digits[:count]}"
        if db.execute("SELECT 1 FROM incident WHERE id = ?", (identifier,)).fetchone() is None:
            return identifier
    return f"i-{digits}"


def _write_job(db: Transaction, diagnosis: Diagnosis) -> None:
    job = diagnosis.job
    db.execute(
        "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
        "SET name = excluded.name, path = excluded.path, world_size = excluded.world_size, first_time = "
        "excluded.first_time, last_time = excluded.last_time, versions = excluded.versions",
        (
            job.id,
            codec.without_surrogates(job.name),
            codec.without_surrogates(job.path),
            job.world_size,
            job.first_time,
            job.last_time,
            json.dumps(dict(job.versions)),
        ),
    )


def _write_incident(
    db: Transaction,
    identifier: str,
    diagnosis: Diagnosis,
    digest: str,
    when: float,
    known: Row | None,
    key: str | None,
) -> int:
    at = failure_time(diagnosis, when)
    without_time = when if known is None else known["stored_at"]
    values = {**incident_values(diagnosis), "key": key, "digest": digest}
    values |= {"at": without_time if at is None else at, "has_time": int(at is not None)}
    if known is not None:
        changed = ", ".join(f"{name} = :{name}" for name in values)
        db.execute(f"UPDATE incident SET {changed} WHERE num = :num", {**values, "num": known["num"]})
        for table in ("attempt", "finding", "blamed_rank", "host", "fact", "warning", "redacted"):
            db.execute(f"DELETE FROM {table} WHERE incident = ?", (known["num"],))
        return int(known["num"])
    values |= {"id": identifier, "stored_at": when, "seen_at": when, "seen": 1}
    (num,) = db.execute(
        f"INSERT INTO incident ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)}) RETURNING num",
        values,
    ).fetchone()
    return int(num)


def _title_without_root(diagnosis: Diagnosis) -> str:
    return INCONCLUSIVE if diagnosis.verdict == "inconclusive" else ""


def blamed_device(root: Finding) -> str | None:
    """Return the device of a root cause: an index or a name, or a PCI address in one form."""
    name = next((root.captures[name] for name in _DEVICES if root.captures.get(name)), None)
    return format_pci_address(name) if name else None


def incident_values(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the columns of an incident that come from its diagnosis alone, so without its time."""
    root = diagnosis.root_cause
    return {
        "job": diagnosis.job.id,
        "verdict": diagnosis.verdict,
        "title": codec.without_surrogates(root.title) if root else _title_without_root(diagnosis),
        "signature": root.signature if root else None,
        "domain": root.domain if root else "",
        "severity": root.severity if root else "",
        "confidence": root.confidence if root else 0.0,
        "ranks": json.dumps(list(root.ranks[:MOST_RANKS]) if root else []),
        "hosts": codec.json_list(blamed_hosts(diagnosis)),
        "device": blamed_device(root) if root else None,
        "tool_version": diagnosis.tool_version,
        "catalog_version": diagnosis.catalog_version,
    }


def write_parts(db: Transaction, num: int, diagnosis: Diagnosis, key: str | None) -> None:
    """Write what follows from a diagnosis alone beside its incident: the job and the rows of all parts.

    `key` is the fingerprint of the root cause. Unknown findings beside it are left out: their fingerprints are decided
    when they are first stored.
    """
    placed = enumerate(codec.place_findings(diagnosis))
    known = [(place, item) for place, item in placed if item.root or item.finding.signature is not None]
    _write_job(db, diagnosis)
    _write_findings(db, num, known, {place: key for place, item in known if item.finding.signature is None})
    _write_details(db, num, diagnosis)
    _write_warnings(db, num, diagnosis)


def _write_findings(
    db: Transaction,
    num: int,
    placed: Iterable[tuple[int, codec.PlacedFinding]],
    keys: Mapping[int, str | None],
) -> None:
    for place, item in placed:
        finding = item.finding
        db.execute(
            "INSERT INTO finding VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(num, place, item.list, item.root, finding.signature, finding.revision, finding.fingerprint),
                *(keys.get(place), finding.role, finding.confidence, finding.count),
            ),
        )


def _write_details(db: Transaction, num: int, diagnosis: Diagnosis) -> None:
    """Write the tables around the findings: attempts, blamed ranks, hosts, redactions."""
    root = diagnosis.root_cause
    db.executemany(
        "INSERT INTO blamed_rank VALUES (?, ?)",
        [(rank, num) for rank in dict.fromkeys(root.ranks[:MOST_RANKS] if root else ())],
    )
    blamed = set(blamed_hosts(diagnosis))
    hosts = dict.fromkeys([*sorted(blamed), *diagnosis.job.hosts])
    db.executemany(
        "INSERT INTO host VALUES (?, ?, ?)",
        [(codec.without_surrogates(name), num, name in blamed) for name in list(hosts)[:MOST_RANKS]],
    )
    write_facts(db, num, diagnosis.job)
    facts = [fact for item in codec.place_findings(diagnosis) for fact in item.finding.evidence]
    times: dict[int, list[float]] = {}
    for fact in facts:
        times.setdefault(fact.origin.attempt, []).extend([] if fact.origin.time is None else [fact.origin.time])
    db.executemany(
        "INSERT INTO attempt VALUES (?, ?, ?, ?)",
        [(num, attempt, min(at, default=None), max(at, default=None)) for attempt, at in times.items()],
    )
    db.executemany(
        "INSERT INTO redacted VALUES (?, ?, ?)", [(num, kind, count) for kind, count in count_redactions(facts).items()]
    )


def _write_warnings(db: Transaction, num: int, diagnosis: Diagnosis) -> None:
    rows = [
        (
            *(num, place, item.code),
            *(text if text is None else codec.without_surrogates(text) for text in (item.source, item.message)),
        )
        for place, item in enumerate(diagnosis.warnings[:MOST_WARNINGS])
    ]
    db.executemany("INSERT INTO warning VALUES (?, ?, ?, ?, ?)", rows)


def blamed_hosts(diagnosis: Diagnosis) -> list[str]:
    """Return the hosts of the root cause: those it names, else those of its ranks."""
    root = diagnosis.root_cause
    if root is None:
        return []
    if root.hosts:
        return list(dict.fromkeys(root.hosts))[:MOST_RANKS]
    ranks = set(root.ranks)
    return [host for host, members in diagnosis.job.hosts.items() if ranks.intersection(members)][:MOST_RANKS]
