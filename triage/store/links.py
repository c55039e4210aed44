"""Clusters that become one: their fingerprints move to the oldest, whose id stays; the others lead to it.

A person does that with `merge`. A program does it only when one failure says what several clusters say, in more or in
fewer words; it is in
the audit log like a person's move, and taken back the same way.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence

from triage.evidence.redact import redact
from triage.model.diagnosis import Fingerprint
from triage.store import audit, codec

PROGRAM = "triage"  # who decided what no person did
Pair = tuple[str, str]


def state(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, object]:
    """The rows of these clusters and where their fingerprints belong: what a move must keep to be taken back."""
    clusters: dict[str, dict[str, object]] = {}
    held: dict[str, tuple[str, str]] = {}
    for one in ids:
        clusters[one] = dict(db.execute("SELECT * FROM cluster WHERE id = ?", (one,)).fetchone())
        held.update(
            {
                row["key"]: (one, row["why"])
                for row in db.execute("SELECT key, why FROM cluster_key WHERE cluster = ?", (one,))
            }
        )
    return {"clusters": clusters, "keys": held, "made": []}


def keys(db: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """The fingerprints of these clusters, the oldest first."""
    return [
        row["key"]
        for one in ids
        for row in db.execute("SELECT key FROM cluster_key WHERE cluster = ? ORDER BY created_at, key", (one,))
    ]


def add_key(db: sqlite3.Connection, key: str, print_: Fingerprint, cluster: str, why: str, when: float) -> None:
    """One more fingerprint of a cluster."""
    db.execute(
        "INSERT INTO cluster_key (key, version, cluster, guard, headline, anchored, why, trail, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            print_.version,
            cluster,
            print_.guard,
            codec.plain(print_.headline),
            print_.anchored,
            why,
            codec.names(print_.trail),
            when,
        ),
    )


def gather(db: sqlite3.Connection, ids: Sequence[str], why: str) -> tuple[str, list[sqlite3.Row]]:
    """Move all fingerprints to the oldest cluster and lead the others to it; (the id that stays, the rows as they
    were).
    """
    rows = [db.execute("SELECT * FROM cluster WHERE id = ?", (one,)).fetchone() for one in ids]
    kept = str(min(rows, key=lambda row: (row["created_at"], row["id"]))["id"])
    for one in ids:
        if one != kept:
            db.execute("UPDATE cluster_key SET cluster = ?, why = ? WHERE cluster = ?", (kept, why, one))
            db.execute("UPDATE cluster SET state = 'merged', redirect = ? WHERE id = ?", (kept, one))
    return kept, sorted(rows, key=lambda row: row["id"] != kept)


def link(db: sqlite3.Connection, cluster: str, joins: Sequence[str], key: str) -> str:
    """Make clusters one that the failure `key` of `cluster` showed to be the same; the id that stays.

    What a person named, ignored or promoted is put together with what nobody touched, never with another that somebody
    did.
    """
    ids, touched = [cluster], _touched(db, cluster)
    for other in joins:
        theirs = _touched(db, other)
        if not (touched and theirs):
            ids.append(other)
            touched = touched or theirs
    if len(ids) == 1:
        return cluster
    before = state(db, ids)
    kept, rows = gather(db, ids, f"linked automatically by {key}")
    for row in rows:
        if row["state"] != "open":
            db.execute(
                "UPDATE cluster SET state = ?, name = ?, note = ?, signature = ? WHERE id = ?",
                (row["state"], row["name"], row["note"], row["signature"], kept),
            )
    details = {
        "linked": [one for one in ids if one != kept],
        "because": f"{key} says the same in more or in fewer words",
    }
    audit.note(db, time.time(), PROGRAM, "link", kept, details, before)
    return kept


def _touched(db: sqlite3.Connection, cluster: str) -> bool:
    return bool(
        db.execute("SELECT state <> 'open' OR name IS NOT NULL FROM cluster WHERE id = ?", (cluster,)).fetchone()[0]
    )


def keep_apart(db: sqlite3.Connection, some: Iterable[str], others: Sequence[str], why: str) -> list[Pair]:
    """Pairs of fingerprints that are not one from now on; those that are new."""
    pairs = [(min(one, other), max(one, other)) for one in some for other in others if one != other]
    new = [
        pair for pair in pairs if db.execute("SELECT 1 FROM apart WHERE one = ? AND other = ?", pair).fetchone() is None
    ]
    db.executemany("INSERT INTO apart VALUES (?, ?, ?, ?)", [(*pair, redact(why), time.time()) for pair in new])
    return new


def together(db: sqlite3.Connection, held: Sequence[str]) -> list[tuple[object, ...]]:
    """What a person put together is no longer kept apart; the rows that are gone."""
    gone = []
    for row in db.execute("SELECT * FROM apart").fetchall():
        if row["one"] in held and row["other"] in held:
            db.execute("DELETE FROM apart WHERE one = ? AND other = ?", (row["one"], row["other"]))
            gone.append(tuple(row))
    return gone
