"""Has the cause of an incident ended jobs before: how often, when, where, and what people said of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from triage.model.store import Recurrence

if TYPE_CHECKING:
    from triage.store import Store

WEEK = 7 * 86400.0
_SAME_CLUSTER = (
    "i.signature IS NULL AND i.key IN (SELECT key FROM cluster_key WHERE cluster = "
    "(SELECT cluster FROM cluster_key WHERE key = ?))"
)
# Earlier incidents whose hosts are compared; of a more frequent cause, the latest.
_COMPARED = 50


def find_recurrence(store: Store, reference: str) -> Recurrence | None:
    """Return the earlier incidents with the same signature, or of the same cluster; None where there is none.

    Raises StoreError for an unknown reference.
    """
    db = store.connections
    num = store.incidents.find_number(reference)
    incident = db.read("SELECT signature, key, at FROM incident WHERE num = ?", (num,))[0]
    if incident["signature"] is None and incident["key"] is None:
        return None
    cause, value = "i.signature = ?", incident["signature"]
    if value is None:
        cause, value = _SAME_CLUSTER, incident["key"]
    where = f"{cause} AND i.num <> ? AND i.at <= ?"
    arguments = (value, num, incident["at"])
    counted = db.read(
        "SELECT count(*) AS total, coalesce(sum(CASE WHEN i.at > ? THEN 1 ELSE 0 END), 0) AS recent, "
        f"max(i.at) AS last_at FROM incident i WHERE {where}",
        (incident["at"] - WEEK, *arguments),
    )[0]
    if not counted["total"]:
        return None
    compared = min(int(counted["total"]), _COMPARED)
    hosts = db.read(
        "SELECT h.name FROM host h JOIN host own ON own.name = h.name AND own.incident = ? AND own.blamed = 1 "
        f"WHERE h.blamed = 1 AND h.incident IN (SELECT i.num FROM incident i WHERE {where} ORDER BY i.at DESC LIMIT ?) "
        "GROUP BY h.name HAVING count(*) = ? ORDER BY h.name",
        (num, *arguments, compared, compared),
    )
    notes = db.read(
        "SELECT f.actor, f.because FROM feedback f JOIN incident i ON i.num = f.incident "
        f"WHERE f.because <> '' AND {where} ORDER BY f.id DESC LIMIT 1",
        arguments,
    )
    return Recurrence(
        int(counted["total"]),
        int(counted["recent"]),
        float(counted["last_at"]),
        tuple(row["name"] for row in hosts),
        "".join(f"{row['actor']}: {row['because']}" for row in notes),
        _describe_fix(store, incident["signature"], incident["key"]),
    )


def _describe_fix(store: Store, signature: str | None, key: str | None) -> str:
    """Return `Last fixed in trainer 4.2 on 2026-03-10. Assigned to mira. …`, as far as people wrote it."""
    if signature is None:
        cluster = store.connections.read_one("SELECT cluster FROM cluster_key WHERE key = ?", (key,))
        signature = str(cluster["cluster"]) if cluster is not None else ""
    work = store.cause_work.read_all().get(signature)
    comments = store.cause_work.list_comments(signature)
    sentences = []
    if work is not None and work.fixed_at is not None:
        version = f" in {work.fixed_in}" if work.fixed_in else ""
        sentences.append(f"Last fixed{version} on {time.strftime('%Y-%m-%d', time.gmtime(work.fixed_at))}")
    if work is not None and work.assignee:
        sentences.append(f"Assigned to {work.assignee}")
    if work is not None and work.ticket:
        sentences.append(f"Ticket: {work.ticket}")
    sentences += [f"Last comment by {comment.actor}: {comment.text}" for comment in comments[-1:]]
    return ". ".join(sentences)
