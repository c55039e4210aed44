"""Delete incidents by age: a time for all, and other times for those with a fact, such as a team or a project.

The age is that since the ingest. Incidents with feedback stay. Examples of clusters and notifications that quote a
deleted incident go with it; clusters keep their names and counts. The audit log has how many incidents each rule
deleted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from triage.store import audit, deletion, maintenance
from triage.store.incidents import Incidents
from triage.store.interface import Connections

ACTOR = "retention"


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Keep incidents for `days`: those with one value of a fact, or without a `fact` those that no other rule names."""

    days: float
    fact: tuple[str, str] | None = None

    def __str__(self) -> str:
        return f"{'='.join(self.fact)}, {self.days:g} days" if self.fact else f"others, {self.days:g} days"


def apply_rules(
    connections: Connections,
    incidents: Incidents,
    rules: Sequence[RetentionRule],
    *,
    dry_run: bool = False,
    now: float | None = None,
) -> list[tuple[RetentionRule, int]]:
    """Delete what each rule no longer keeps; return how many incidents that were. `dry_run` deletes nothing."""
    when = time.time() if now is None else now
    named = [rule.fact for rule in rules if rule.fact is not None]
    done = []

    def remove(nums: Sequence[int]) -> None:
        with connections.write() as db:
            for num in nums:
                row = db.execute("SELECT id, job FROM incident WHERE num = ?", (num,)).fetchone()
                deletion.remove_texts(db, row["id"], row["job"])
            incidents.remove(nums)

    for rule in rules:
        facts, inside = ([rule.fact], "IN") if rule.fact is not None else (named, "NOT IN")
        pairs = " OR ".join("(name = ? AND value = ?)" for _ in facts) or "FALSE"
        where = f"stored_at < ? AND num {inside} (SELECT incident FROM fact WHERE {pairs})"
        values = (when - rule.days * maintenance.DAY, *(text for pair in facts for text in pair))
        if dry_run:
            count = maintenance.count_deletable(connections, where, values)
        else:
            count = maintenance.delete_incidents(connections, remove, where, values, None)
            if count:
                with connections.write() as db:
                    audit.write_entry(db, when, ACTOR, "retention", str(rule), {"incidents": count})
        done.append((rule, count))
    if not dry_run and any(count for _, count in done):
        maintenance.empty_log(connections)
    return done
