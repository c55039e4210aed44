"""A new normaliser, old clusters: the kept examples get keys under the new rules beside their old ones, and what no
longer fits is told.

It is done by `triage clusters rekey` and `triage db migrate`, and by the first ingest with new rules, before anything
is put into a cluster.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass

from triage.clusters.upgrade import Example, Upgrade, rekeyed
from triage.model.diagnosis import Finding, Fingerprint
from triage.model.evidence import Evidence
from triage.store import audit, codec, links
from triage.store.engine import Engine

SETTING = "normaliser"
EXEMPLARS = 5  # kept of each fingerprint


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """`before` and `version` of the rules; `added` fingerprints; `collisions` and `divergences` as sentences with what
    to do.

    A collision that was merged or rejected, and a divergence that was split, are not told again.
    """

    before: int
    version: int
    examples: int
    added: int
    collisions: tuple[str, ...] = ()
    divergences: tuple[str, ...] = ()


def due(db: sqlite3.Connection, engine: Engine) -> bool:
    """Were clusters made by older rules than these? A store without clusters takes the rules as they are."""
    return known_version(db) < engine.version


def known_version(db: sqlite3.Connection) -> int:
    """The version of the rules that all fingerprints of the store have; 0 where there are none."""
    row = db.execute("SELECT value FROM setting WHERE key = ?", (SETTING,)).fetchone()
    if row is not None:
        return int(row["value"])
    return int(db.execute("SELECT coalesce(max(version), 0) AS version FROM cluster_key").fetchone()["version"])


def rekey(db: sqlite3.Connection, engine: Engine, *, actor: str = links.PROGRAM, dry_run: bool = False) -> Rekeyed:
    """Give every kept example its key under the engine's rules, inside a transaction that is open."""
    before = known_version(db)
    kept = list(_examples(db, engine))
    upgrade = rekeyed((example for example, _ in kept), engine.version)
    held = {row["key"]: row["cluster"] for row in db.execute("SELECT key, cluster FROM cluster_key")}
    new = [(cluster, print_, old) for cluster, print_, old in _oldest_first(db, upgrade) if print_.key not in held]
    added = {print_.key: (cluster, print_, old) for cluster, print_, old in reversed(new)}
    # In a dry run they are told as they would stand afterwards.
    held = {**{key: cluster for key, (cluster, _, _) in added.items()}, **held}
    result = Rekeyed(
        before or engine.version,
        engine.version,
        len(kept),
        len(added),
        tuple(_collisions(db, upgrade)),
        tuple(_divergences(upgrade, held)),
    )
    if not dry_run:
        when = time.time()
        for key, (cluster, print_, old) in added.items():
            _add(db, key, cluster, print_, old, when)
            rows = [row for example, row in kept if example.new.key == key and example.cluster == cluster]
            for place, row in enumerate(rows[:EXEMPLARS]):
                db.execute("INSERT INTO exemplar VALUES (?, ?, ?, ?)", (key, place, row["incident"], row["facts"]))
        db.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (SETTING, str(engine.version)))
        if added:
            details = {"from": before, "to": engine.version, "added": len(added)}
            audit.note(
                db,
                when,
                actor,
                "rekey",
                SETTING,
                details | {"collisions": result.collisions, "divergences": result.divergences},
            )
    return result


def _examples(db: sqlite3.Connection, engine: Engine) -> Iterator[tuple[Example, sqlite3.Row]]:
    rows = db.execute(
        "SELECT e.key, e.incident, e.facts, k.cluster, k.headline FROM exemplar e JOIN cluster_key k ON k.key = e.key ORDER BY e.key, e.place"
    )
    for row in rows.fetchall():
        facts = tuple(map(codec.evidence_from, json.loads(row["facts"])))
        print_ = engine.fingerprint(_finding(facts, row["headline"], row["cluster"]))
        if print_ is not None:
            yield Example(row["cluster"], row["key"], full(print_, "j-" + row["incident"].removeprefix("i-"))), row


def full(print_: Fingerprint, job: str) -> Fingerprint:
    """The fingerprint with the key that the store keeps it by: what no line explains is its job's alone."""
    if print_.anchored:
        return print_
    return Fingerprint(print_.version, f"{print_.key}:{job}", print_.guard, print_.headline, print_.trail, False)


def _finding(facts: tuple[Evidence, ...], headline: str, cluster: str) -> Finding:
    title = facts[0].text.split("\n", 1)[0] if facts else headline
    return Finding(None, title, "unknown", "cause", "error", 0.0, cluster=cluster, evidence=facts)


def _oldest_first(db: sqlite3.Connection, upgrade: Upgrade) -> list[tuple[str, Fingerprint, str]]:
    """A key that several clusters would have goes to the oldest of them."""
    age = {row["id"]: (row["created_at"], row["id"]) for row in db.execute("SELECT id, created_at FROM cluster")}
    return sorted(upgrade.keys, key=lambda item: (age[item[0]], item[1].key))


def _add(db: sqlite3.Connection, key: str, cluster: str, print_: Fingerprint, old: str, when: float) -> None:
    links.add_key(db, key, print_, cluster, f"the key of {old} under the rules of version {print_.version}", when)
    db.execute(
        "UPDATE cluster_key SET first_seen = o.first_seen, last_seen = o.last_seen, ranks = o.ranks, last_path = o.last_path "
        "FROM (SELECT * FROM cluster_key WHERE key = ?) AS o WHERE cluster_key.key = ?",
        (old, key),
    )


def _collisions(db: sqlite3.Connection, upgrade: Upgrade) -> Iterator[str]:
    for key, clusters in upgrade.collisions:
        apart = db.execute(
            "SELECT 1 FROM apart a JOIN cluster_key m ON m.key = a.one JOIN cluster_key o ON o.key = a.other "
            f"WHERE m.cluster IN ({', '.join('?' * len(clusters))}) AND o.cluster IN ({', '.join('?' * len(clusters))}) LIMIT 1",
            (*clusters, *clusters),
        ).fetchone()
        if apart is None:
            named = " ".join(clusters)
            yield f"{named} have the same fingerprint {key} now: `triage clusters merge {named}`, or reject"


def _divergences(upgrade: Upgrade, held: dict[str, str]) -> Iterator[str]:
    for cluster, key, parts in upgrade.divergences:
        if len({held.get(part, cluster) for part in parts}) == 1:
            yield f"{key} of {cluster} is {len(parts)} fingerprints now: `triage clusters split {cluster} --key {parts[-1]}` if they are two causes"
