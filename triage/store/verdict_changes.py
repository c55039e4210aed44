"""Changes of stored verdicts: who changed which one to what, in the history, in the audit log and as a post."""

from __future__ import annotations

from dataclasses import dataclass

from triage.store import audit, outbox
from triage.store.interface import Transaction


@dataclass(frozen=True, slots=True)
class Occasion:
    """When a diagnosis is written, by whom and why."""

    at: float
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoredCause:
    """The verdict of an incident, its root cause (a signature, a cluster or the verdict), and who decided that."""

    verdict: str
    cause: str
    catalog: str
    version: str

    @property
    def text(self) -> str:
        """The verdict, and the cause if there is one."""
        return self.cause if self.cause == self.verdict else f"{self.verdict} {self.cause}"


def current_cause(db: Transaction, num: int) -> StoredCause:
    """Return the current root cause of an incident, and the versions that it comes from."""
    row = db.execute(
        "SELECT i.verdict, i.signature, k.cluster, i.catalog_version, i.tool_version FROM incident i LEFT "
        "JOIN cluster_key k ON k.key = i.key WHERE num = ?",
        (num,),
    ).fetchone()
    cause = row["signature"] or row["cluster"] or row["verdict"]
    return StoredCause(row["verdict"], cause, row["catalog_version"], row["tool_version"])


def record_change(
    db: Transaction, num: int, identifier: str, before: StoredCause, after: StoredCause, occasion: Occasion
) -> None:
    """Record a changed verdict or root cause: in the audit log, in the history, and as a post for those who got it."""
    if (before.verdict, before.cause) == (after.verdict, after.cause):
        return
    details = {
        "before": before.text,
        "after": after.text,
        "reason": occasion.reason,
        "catalogs": f"{before.catalog} → {after.catalog}",
        "versions": f"{before.version} → {after.version}",
    }
    audit.write_entry(db, occasion.at, occasion.actor, "change verdict", identifier, details)
    if before.cause == after.cause:
        return
    (number,) = db.execute(
        "INSERT INTO history (incident, at, reason, old, new, old_catalog, new_catalog) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "RETURNING id",
        (num, occasion.at, occasion.reason, before.cause, after.cause, before.catalog, after.catalog),
    ).fetchone()
    payload = {"incident": identifier, "old": before.cause, "new": after.cause, "reason": occasion.reason}
    outbox.put(db, "changed", identifier, f"changed:{identifier}:{number}", payload, occasion.at)
