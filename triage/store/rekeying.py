"""Give stored fingerprints new keys after a change of the clustering rules.

The stored examples get keys by the new rules beside their old ones, and conflicts are reported. This is done by
`triage clusters rekey` and `triage db migrate`, and by the first ingest with new rules.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from triage.base.shared_types import share_type
from triage.clusters.upgrade import Example, Upgrade, rekey_examples
from triage.model import Evidence, Finding, Fingerprint
from triage.store import audit, cluster_links
from triage.store.cluster_engine import ClusterEngine
from triage.store.interface import Row, Transaction

SETTING = "normaliser"
EXEMPLARS = 5  # stored for each fingerprint


@dataclass(frozen=True, slots=True)
class RekeyResult:
    """The result of a rekeying.

    `before` and `version` are those of the rules, `added` counts new fingerprints. `collisions` and `divergences` are
    sentences with what to do; those that a person has resolved are left out.
    """

    before: int
    version: int
    examples: int
    added: int
    collisions: tuple[str, ...] = ()
    divergences: tuple[str, ...] = ()


def is_due(db: Transaction, engine: ClusterEngine) -> bool:
    """Whether the clusters have older rules than the engine; an empty store has none."""
    return stored_version(db) < engine.version


def stored_version(db: Transaction) -> int:
    """Return the version of the rules of all fingerprints in the store; 0 where there are none."""
    row = db.execute("SELECT value FROM setting WHERE key = ?", (SETTING,)).fetchone()
    if row is not None:
        return int(row["value"])
    return int(db.execute("SELECT coalesce(max(version), 0) AS version FROM cluster_key").fetchone()["version"])


def rekey(
    db: Transaction, engine: ClusterEngine, *, actor: str = cluster_links.PROGRAM_ACTOR, dry_run: bool = False
) -> RekeyResult:
    """Give every stored example a key by the engine's rules, within an open transaction."""
    before = stored_version(db)
    examples = list(_examples(db, engine))
    upgrade = rekey_examples((example for example, _ in examples), engine.version)
    clusters_by_key = {row["key"]: row["cluster"] for row in db.execute("SELECT key, cluster FROM cluster_key")}
    new = [item for item in _oldest_first(db, upgrade) if item[1].key not in clusters_by_key]
    added = {item[1].key: item for item in reversed(new)}
    # A dry run reports the state as it would be afterwards.
    clusters_by_key = {**{key: cluster for key, (cluster, _, _) in added.items()}, **clusters_by_key}
    result = RekeyResult(
        before or engine.version,
        engine.version,
        len(examples),
        len(added),
        tuple(_collisions(db, upgrade)),
        tuple(_divergences(upgrade, clusters_by_key)),
    )
    if not dry_run:
        _write_keys(db, added, examples)
        db.execute(
            "INSERT INTO setting VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (SETTING, str(engine.version)),
        )
        if added:
            details: dict[str, object] = {"from": before, "to": engine.version, "added": len(added)}
            details |= {"collisions": result.collisions, "divergences": result.divergences}
            audit.write_entry(db, time.time(), actor, "rekey", SETTING, details)
    return result


def _write_keys(
    db: Transaction,
    added: Mapping[str, tuple[str, Fingerprint, str]],
    examples: Sequence[tuple[Example, Row]],
) -> None:
    """Write the new keys and their examples; `added` has (cluster, fingerprint, old key) by key."""
    when = time.time()
    for key, (cluster, print_, old) in added.items():
        own = [(one, row) for one, row in examples if one.new.key == key and one.cluster == cluster]
        decided = (one.key for one, _ in own if cluster_links.read_actor(_read_why(db, one.key)))
        _add(db, key, cluster, print_, min(decided, default=old), when)
        for place, (_, row) in enumerate(own[:EXEMPLARS]):
            db.execute("INSERT INTO exemplar VALUES (?, ?, ?, ?)", (key, place, row["incident"], row["facts"]))


def _examples(db: Transaction, engine: ClusterEngine) -> Iterator[tuple[Example, Row]]:
    rows = db.execute(
        "SELECT e.key, e.incident, e.facts, k.cluster, k.headline FROM exemplar e "
        "JOIN cluster_key k ON k.key = e.key ORDER BY e.key, e.place"
    )
    for row in rows.fetchall():
        facts = msgspec.convert(json.loads(row["facts"]), share_type(tuple[Evidence, ...]))
        print_ = engine.fingerprint(_finding(facts, row["headline"], row["cluster"]))
        if print_ is not None:
            yield (
                Example(row["cluster"], row["key"], with_store_key(print_, row["incident"])),
                row,
            )


def with_store_key(print_: Fingerprint, incident: str) -> Fingerprint:
    """Return the fingerprint with its key in the store: without an anchor, the key is for its incident only."""
    if print_.anchored:
        return print_
    place = "j-" + incident.removeprefix("i-")
    return Fingerprint(print_.version, f"{print_.key}:{place}", print_.guard, print_.headline, print_.trail, False)


def _finding(facts: tuple[Evidence, ...], headline: str, cluster: str) -> Finding:
    title = facts[0].text.split("\n", 1)[0] if facts else headline
    return Finding(None, title, "unknown", "cause", "error", 0.0, cluster=cluster, evidence=facts)


def _oldest_first(db: Transaction, upgrade: Upgrade) -> list[tuple[str, Fingerprint, str]]:
    """Return the new keys, sorted by the age of their clusters: a key of several goes to the oldest."""
    age = {row["id"]: (row["created_at"], row["id"]) for row in db.execute("SELECT id, created_at FROM cluster")}
    return sorted(upgrade.keys, key=lambda item: (age[item[0]], item[1].key))


def _add(db: Transaction, key: str, cluster: str, print_: Fingerprint, old: str, when: float) -> None:
    why = _read_why(db, old)
    by_person = f"{why}; " if cluster_links.read_actor(why) else ""
    why = f"{by_person}new key of {old} by version {print_.version} of the rules"
    cluster_links.add_key(db, key, print_, cluster, why, when)
    db.execute(
        "UPDATE cluster_key SET first_seen = o.first_seen, last_seen = o.last_seen, ranks = o.ranks, last_path = "
        "o.last_path FROM (SELECT * FROM cluster_key WHERE key = ?) AS o WHERE cluster_key.key = ?",
        (old, key),
    )


def _read_why(db: Transaction, key: str) -> str:
    return str(db.execute("SELECT why FROM cluster_key WHERE key = ?", (key,)).fetchone()["why"])


def _collisions(db: Transaction, upgrade: Upgrade) -> Iterator[str]:
    for key, clusters in upgrade.collisions:
        apart = db.execute(
            "SELECT 1 FROM apart a JOIN cluster_key m ON m.key = a.one JOIN cluster_key o ON o.key = a.other "
            f"WHERE m.cluster IN ({', '.join('?' * len(clusters))}) "
            f"AND o.cluster IN ({', '.join('?' * len(clusters))}) LIMIT 1",
            (*clusters, *clusters),
        ).fetchone()
        if apart is None:
            named = " ".join(clusters)
            yield f"{named} now have the same fingerprint {key}: run `triage clusters merge {named}`, or reject it"


def _divergences(upgrade: Upgrade, clusters_by_key: dict[str, str]) -> Iterator[str]:
    for cluster, key, parts in upgrade.divergences:
        if len({clusters_by_key.get(part, cluster) for part in parts}) == 1:
            yield (
                f"{key} of {cluster} now has {len(parts)} fingerprints: `triage clusters split {cluster} --key "
                f"{parts[-1]}` if they are two causes"
            )
