"""Delete an incident on request: its content goes everywhere, and the audit log says who, when, why and which id.

Gone are the report, documents, quoted lines, search text, feedback, history, examples of clusters, notifications, tasks
and outbox entries that name it, and the texts of audit entries about it. A cluster that nothing else is in goes too.
Messages that were already sent stay where they are: their receivers delete them.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from triage.base.errors import OptionError
from triage.evidence.redact import redact
from triage.store import audit, maintenance
from triage.store.incidents import Incidents
from triage.store.interface import Connections, Transaction


@dataclass(frozen=True, slots=True)
class Deleted:
    """A deleted incident, and the digests of uploaded files that only its job had."""

    id: str
    uploads: tuple[str, ...]


def delete_incident(
    connections: Connections,
    incidents: Incidents,
    reference: str,
    *,
    actor: str,
    because: str,
    now: float | None = None,
) -> Deleted:
    """Delete an incident. Raises OptionError without a reason, NotFoundError for an unknown id."""
    because = " ".join(redact(because).split())
    if not because:
        raise OptionError("a deletion needs a reason", hint="say who asked for it and why")
    num, when = incidents.find_number(reference), time.time() if now is None else now
    with connections.write() as db:
        row = db.execute("SELECT id, job FROM incident WHERE num = ?", (num,)).fetchone()
        identifier = str(row["id"])
        uploads = _own_uploads(db, num)
        _remove_traces(db, num, identifier, row["job"])
        incidents.remove([num])
        audit.write_entry(db, when, actor, "delete", identifier, {"because": because})
    maintenance.empty_log(connections)
    return Deleted(identifier, tuple(uploads))


def _own_uploads(db: Transaction, num: int) -> list[str]:
    """Return the digests of uploaded files that belong to this incident and no other."""
    row = db.execute("SELECT place FROM origin WHERE incident = ?", (num,)).fetchone()
    files = json.loads(row["place"]).get("files", []) if row is not None else []
    other = "SELECT 1 FROM origin WHERE incident <> ? AND instr(place, ?) > 0 LIMIT 1"
    return [item["digest"] for item in files if db.execute(other, (num, item["digest"])).fetchone() is None]


def _remove_traces(db: Transaction, num: int, identifier: str, job: str) -> None:
    """Remove what an incident leaves outside its own tables."""
    keys = [row["key"] for row in db.execute("SELECT DISTINCT key FROM finding WHERE incident = ?", (num,)).fetchall()]
    remove_texts(db, identifier, job)
    tasks = db.execute("SELECT id FROM task WHERE instr(coalesce(result, ''), ?) > 0", (f'"{identifier}"',)).fetchall()
    for task in tasks:
        db.execute("DELETE FROM task WHERE id = ?", (task["id"],))
        _clear_audit(db, task["id"])
    _clear_audit(db, identifier)
    for key in filter(None, keys):
        _remove_lonely_key(db, key, num)


def remove_texts(db: Transaction, identifier: str, job: str) -> None:
    """Remove what clusters and notifications hold of an incident: quoted lines, reports, the path of its job."""
    path = db.execute("SELECT path FROM job WHERE id = ?", (job,)).fetchone()["path"]
    _remove_notifications(db, identifier)
    topics = (f"{job}/", f"{job}0")  # the attempts of its job, as repeats of other messages
    db.execute("DELETE FROM told_again WHERE topic >= ? AND topic < ?", topics)
    db.execute("DELETE FROM exemplar WHERE incident = ?", (identifier,))
    db.execute("UPDATE cluster_key SET last_path = NULL WHERE last_path = ?", (path,))


def _clear_audit(db: Transaction, subject: str) -> None:
    """Remove the texts of the audit entries about a subject; who did what and when stays."""
    db.execute("UPDATE audit SET details = '{}', undo = NULL WHERE subject = ?", (subject,))


def _remove_notifications(db: Transaction, incident: str) -> None:
    """Remove the notifications about an incident, and their places in the outbox."""
    for message in db.execute("SELECT id, kind, place, topic FROM told WHERE incident = ?", (incident,)).fetchall():
        subject = f"{message['place']}:{message['topic']}"
        db.execute("DELETE FROM outbox WHERE kind = ? AND subject = ?", (message["kind"], subject))
        db.execute("DELETE FROM told WHERE id = ?", (message["id"],))


def _remove_lonely_key(db: Transaction, key: str, num: int) -> None:
    """Remove a fingerprint that no other incident has, and its cluster if that has no other fingerprint."""
    others = "SELECT 1 FROM finding WHERE key = ? AND incident <> ? LIMIT 1"
    if db.execute(others, (key, num)).fetchone() is not None:
        return
    row = db.execute("SELECT cluster FROM cluster_key WHERE key = ?", (key,)).fetchone()
    if row is None:
        return
    cluster = row["cluster"]
    db.execute("DELETE FROM cluster_key WHERE key = ?", (key,))
    if db.execute("SELECT 1 FROM cluster_key WHERE cluster = ? LIMIT 1", (cluster,)).fetchone() is None:
        _remove_cluster(db, cluster)


def _remove_cluster(db: Transaction, cluster: str) -> None:
    """Remove a cluster without fingerprints, those that were merged into it, and the work on them."""
    for merged in db.execute("SELECT id FROM cluster WHERE redirect = ?", (cluster,)).fetchall():
        _remove_cluster(db, merged["id"])
    db.execute("DELETE FROM apart WHERE one = ? OR other = ?", (cluster, cluster))
    db.execute("DELETE FROM cause_work WHERE cause = ?", (cluster,))
    db.execute("DELETE FROM cause_comment WHERE cause = ?", (cluster,))
    _clear_audit(db, cluster)
    db.execute("DELETE FROM cluster WHERE id = ?", (cluster,))
