"""Merge clusters: their fingerprints move to the oldest one, whose id stays, and the others redirect to it.

A person merges with `merge`. The program links clusters only when one failure matches several of them with more or
fewer words; the audit log has that like a person's action, and it is undone in the same way.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from triage.clusters.assign import MOST_PLACES
from triage.evidence.redact import redact
from triage.model.diagnosis import PRINTED_BY, RAISED_AT, Fingerprint
from triage.store import audit, codec
from triage.store.interface import Row, Transaction

PROGRAM_ACTOR = "triage"  # the actor of automatic actions
MERGED, MOVED = "merged by ", "moved by "
"""How the reason begins why a key is in its cluster, if a person put it there. Behind it stands the person."""
Pair = tuple[str, str]


def snapshot(db: Transaction, ids: Iterable[str]) -> dict[str, object]:
    """Return the rows of clusters and the clusters of their fingerprints, as an action saves them for undo."""
    clusters: dict[str, dict[str, object]] = {}
    keys: dict[str, tuple[str, str]] = {}
    for one in ids:
        clusters[one] = dict(db.execute("SELECT * FROM cluster WHERE id = ?", (one,)).fetchone())
        keys.update(
            {
                row["key"]: (one, row["why"])
                for row in db.execute("SELECT key, why FROM cluster_key WHERE cluster = ?", (one,))
            }
        )
    return {"clusters": clusters, "keys": keys, "made": []}


def restore(db: Transaction, before: Mapping[str, Any]) -> None:
    """Restore what `snapshot` saved before an action, with the clusters and pairs that the action added to it."""
    for row in before["clusters"].values():
        db.execute(
            "UPDATE cluster SET state = :state, name = :name, note = :note, signature = :signature, "
            "redirect = :redirect WHERE id = :id",
            row,
        )
    for key, (cluster, why) in before["keys"].items():
        db.execute("UPDATE cluster_key SET cluster = ?, why = ? WHERE key = ?", (cluster, why, key))
    for made in before["made"]:
        # Its id stays in use: posts that contain it must never mean another cluster.
        into = next(iter(before["clusters"]))
        db.execute("UPDATE cluster_key SET cluster = ?, why = 'moved back' WHERE cluster = ?", (into, made))
        db.execute("UPDATE cluster SET state = 'merged', redirect = ? WHERE id = ?", (into, made))
    db.executemany("DELETE FROM apart WHERE one = ? AND other = ?", before.get("pairs", ()))
    db.executemany("INSERT INTO apart VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", before.get("apart", ()))


def read_actor(why: str) -> str:
    """Return the person who put a key into its cluster, "" where the program did."""
    return next((why.removeprefix(start).partition(";")[0] for start in (MERGED, MOVED) if why.startswith(start)), "")


def read_places(trail: str) -> tuple[str, ...]:
    """Return the steps of a stored trail that name the places of an exception, or the programs of a line. A guard may
    have thousands of trails, so the others are not decoded.
    """
    steps, decoder = list[str](), json.JSONDecoder()
    for start in (f'"{RAISED_AT}', f'"{PRINTED_BY}'):
        at = trail.find(start)
        while at >= 0:
            step, at = decoder.raw_decode(trail, at)
            steps.append(step)
            at = trail.find(start, at)
    return tuple(steps)


def list_new_places(trail: str, print_: Fingerprint) -> list[str]:
    """Return the steps of a fingerprint with places that the stored trail of its key has not, up to `MOST_PLACES`."""
    known = read_places(trail)
    new = [step for step in read_places(codec.json_list(print_.trail)) if step not in known] if print_.places else []
    return new if len(known) < MOST_PLACES else []


def add_steps(db: Transaction, key: str, trail: str, steps: Sequence[str]) -> None:
    """Add steps to the stored trail of a key."""
    db.execute("UPDATE cluster_key SET trail = ? WHERE key = ?", (codec.json_list([*json.loads(trail), *steps]), key))


def list_keys(db: Transaction, ids: Iterable[str]) -> list[str]:
    """Return the keys of clusters, the oldest first."""
    return [
        row["key"]
        for one in ids
        for row in db.execute("SELECT key FROM cluster_key WHERE cluster = ? ORDER BY created_at, key", (one,))
    ]


def add_key(db: Transaction, key: str, print_: Fingerprint, cluster: str, why: str, when: float) -> None:
    """Add a fingerprint to a cluster."""
    db.execute(
        "INSERT INTO cluster_key (key, version, cluster, guard, headline, anchored, why, trail, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            print_.version,
            cluster,
            print_.guard,
            codec.without_surrogates(print_.headline),
            print_.anchored,
            why,
            codec.json_list(print_.trail),
            when,
        ),
    )


def merge_into_oldest(db: Transaction, ids: Sequence[str], why: str) -> tuple[str, list[Row]]:
    """Move all fingerprints to the oldest cluster and redirect the others to it.

    Returns (the oldest id, the rows of all clusters as they were).
    """
    rows = [db.execute("SELECT * FROM cluster WHERE id = ?", (one,)).fetchone() for one in ids]
    oldest = str(min(rows, key=lambda row: (row["created_at"], row["id"]))["id"])
    for one in ids:
        if one != oldest:
            db.execute("UPDATE cluster_key SET cluster = ?, why = ? WHERE cluster = ?", (oldest, why, one))
            db.execute("UPDATE cluster SET state = 'merged', redirect = ? WHERE id = ?", (oldest, one))
    return oldest, sorted(rows, key=lambda row: row["id"] != oldest)


def link_clusters(db: Transaction, cluster: str, joins: Sequence[str], key: str) -> str:
    """Merge clusters that the failure `key` of `cluster` shows to be the same; return the id that stays.

    At most one cluster that a person named, ignored or promoted takes part.
    """
    ids, curated = [cluster], _is_curated(db, cluster)
    for other in joins:
        other_curated = _is_curated(db, other)
        if not (curated and other_curated):
            ids.append(other)
            curated = curated or other_curated
    if len(ids) == 1:
        return cluster
    before = snapshot(db, ids)
    oldest, rows = merge_into_oldest(db, ids, f"linked automatically by {key}")
    for row in rows:
        if row["state"] != "open":
            db.execute(
                "UPDATE cluster SET state = ?, name = ?, note = ?, signature = ? WHERE id = ?",
                (row["state"], row["name"], row["note"], row["signature"], oldest),
            )
    details = {
        "linked": [one for one in ids if one != oldest],
        "because": f"{key} matches each of them, with words added or left out",
    }
    audit.write_entry(db, time.time(), PROGRAM_ACTOR, "link", oldest, details, before)
    return oldest


def _is_curated(db: Transaction, cluster: str) -> bool:
    return bool(
        db.execute("SELECT state <> 'open' OR name IS NOT NULL FROM cluster WHERE id = ?", (cluster,)).fetchone()[0]
    )


def keep_apart(db: Transaction, some: Iterable[str], others: Sequence[str], why: str) -> list[Pair]:
    """Record pairs of fingerprints that must stay in different clusters; return the new ones."""
    pairs = [(min(one, other), max(one, other)) for one in some for other in others if one != other]
    query = "SELECT 1 FROM apart WHERE one = ? AND other = ?"
    new = [pair for pair in pairs if db.execute(query, pair).fetchone() is None]
    db.executemany("INSERT INTO apart VALUES (?, ?, ?, ?)", [(*pair, redact(why), time.time()) for pair in new])
    return new


def remove_apart(db: Transaction, keys: Sequence[str]) -> list[tuple[object, ...]]:
    """Remove and return the rows that keep these keys apart, because a person put them together."""
    removed = []
    for row in db.execute("SELECT * FROM apart").fetchall():
        if row["one"] in keys and row["other"] in keys:
            db.execute("DELETE FROM apart WHERE one = ? AND other = ?", (row["one"], row["other"]))
            removed.append(tuple(row))
    return removed
