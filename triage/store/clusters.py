"""Clusters of unknown failures in the store: which fingerprint belongs to which cluster.

Ids never change; fingerprints move between clusters, incidents do not. Here is what an ingest does and what is read;
the actions of people are in cluster_actions.py.
"""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from triage.base.errors import NotFoundError, OptionError
from triage.base.lazy_re import lazy_re
from triage.base.shared_types import share_type
from triage.clusters.assign import describe_nearest
from triage.clusters.model import Assignment, NearestCluster
from triage.clusters.rule_engine import RuleEngine
from triage.clusters.suggestions import Similarity, suggest_merges, tfidf
from triage.model import Cluster, Diagnosis, Evidence, Finding, Fingerprint
from triage.model.store import list_places
from triage.store import cluster_links, codec, rekeying
from triage.store.cluster_engine import ClusterEngine
from triage.store.failure_times import finding_time
from triage.store.interface import Connections, Transaction

DAY = 86_400
WEEK = 7
BATCH = 500  # clusters in one query: databases limit its values
OPEN = ("open", "named")
STATES = (*OPEN, "ignored", "promoted", "merged")
STANDING = (*OPEN, "ignored", "promoted")
_ID = lazy_re(r"u-[0-9a-f]{6,40}")
_KEYS = "key, version, guard, headline, anchored, trail"
_SUMMARY = """
WITH counted AS (
    SELECT k.cluster, sum(n.incidents) AS incidents,
        sum(CASE WHEN n.day > :week THEN n.incidents ELSE 0 END) AS recent,
        sum(CASE WHEN n.day <= :week AND n.day > :fortnight THEN n.incidents ELSE 0 END) AS before
    FROM cluster_key k JOIN counter n ON n.key = k.key GROUP BY k.cluster
), met AS (
    SELECT cluster, sum(jobs) AS jobs, max(ranks) AS ranks, min(first_seen) AS first_seen,
        max(last_seen) AS last_seen
    FROM cluster_key GROUP BY cluster
)
SELECT c.*, coalesce(n.incidents, 0) AS incidents, coalesce(n.recent, 0) AS recent,
    coalesce(n.before, 0) AS before, coalesce(m.jobs, 0) AS jobs, coalesce(m.ranks, 0) AS ranks,
    m.first_seen, m.last_seen
FROM cluster c LEFT JOIN counted n ON n.cluster = c.id LEFT JOIN met m ON m.cluster = c.id
WHERE {where}
ORDER BY coalesce(n.recent, 0) - coalesce(n.before, 0) DESC, m.last_seen DESC NULLS LAST, jobs DESC, ranks DESC, c.id
LIMIT :limit
"""


class Clusters:
    """The clusters of a store."""

    def __init__(self, connections: Connections, engine: ClusterEngine | None = None) -> None:
        self._db = connections
        self.engine: ClusterEngine = engine or RuleEngine()
        self._rules_current = False  # whether all keys have these rules, as far as this process knows

    def assign(
        self, db: Transaction, finding: Finding, incident: str, diagnosis: Diagnosis, when: float, *, count: bool
    ) -> str | None:
        """Return the key of an unknown failure, after its cluster was found or created; None when it has none."""
        print_ = self.engine.fingerprint(finding)
        if print_ is None:
            return None
        if not self._rules_current:
            self._rules_current = not rekeying.is_due(db, self.engine)
        if not self._rules_current:  # checked again next time, since this transaction may be rolled back
            rekeying.rekey(db, self.engine)
        key = rekeying.with_store_key(print_, incident).key
        known = db.execute("SELECT trail, cluster FROM cluster_key WHERE key = ?", (key,)).fetchone()
        if known is None:
            self._new_key(db, key, print_, finding, when)
        elif new_places := cluster_links.list_new_places(known["trail"], print_):
            placed = self._place(db, print_)
            cluster_links.add_steps(db, key, known["trail"], new_places)
            if placed is not None and placed.joins:
                cluster_links.link_clusters(db, known["cluster"], placed.joins, key)
        if count:
            at = finding_time(finding, diagnosis, when)
            db.execute(
                "INSERT INTO counter VALUES (?, ?, 1) ON CONFLICT (key, day) DO UPDATE "
                "SET incidents = counter.incidents + 1",
                (key, int(at // DAY)),
            )
            _count_job(db, key, finding, diagnosis.job.path, at)
        _store_exemplar(db, key, incident, finding)
        return key

    def rekey(self, *, actor: str, dry_run: bool = False) -> rekeying.RekeyResult:
        """Give the stored examples keys by the current rules and report conflicts; `dry_run` changes nothing."""
        with self._db.write() as db:
            return rekeying.rekey(db, self.engine, actor=actor, dry_run=dry_run)

    def _new_key(self, db: Transaction, key: str, print_: Fingerprint, finding: Finding, when: float) -> None:
        placed = self._place(db, print_) if print_.anchored else None
        if placed is not None and placed.how in ("nested", "reworded", "taught"):
            cluster, why = placed.cluster, f"joined automatically: {_explain(placed)}"
        else:
            cluster, why = mint_id(db, finding.cluster, key), "new" if placed is None else f"new: {_explain(placed)}"
            db.execute(
                "INSERT INTO cluster (id, state, title, created_at) VALUES (?, 'open', ?, ?)",
                (cluster, codec.without_surrogates(finding.title), when),
            )
        cluster_links.add_key(db, key, print_, cluster, why, when)
        if placed is not None and placed.joins:
            cluster_links.link_clusters(db, cluster, placed.joins, key)

    def _place(self, db: Transaction, print_: Fingerprint) -> Assignment | None:
        """Place the fingerprint among those with the same guard; None when there are none."""
        rows = db.execute(
            "SELECT key, guard, headline, cluster, why, trail FROM cluster_key"
            " WHERE guard = ? AND version = ? AND anchored = 1 ORDER BY key",
            (print_.guard, print_.version),
        ).fetchall()
        if not rows:
            return None
        apart = [frozenset((row["one"], row["other"])) for row in db.execute("SELECT one, other FROM apart")]
        known = [
            (cluster, _read_known(print_.version, key, guard, headline, trail))
            for key, guard, headline, cluster, _, trail in map(tuple, rows)
        ]
        moved = {row["key"]: actor for row in rows if (actor := cluster_links.read_actor(row["why"]))}
        return self.engine.place(print_, known, apart, moved)

    def find_id(self, reference: str) -> str:
        """Return the id of a cluster by its id, its first digits or its name, after merges. Raises OptionError."""
        digits = reference.strip().lower()
        digits = digits if digits.startswith("u-") else f"u-{digits}"
        rows = self._db.read(
            "SELECT id, redirect FROM cluster WHERE id >= ? AND id < ? ORDER BY id LIMIT 6", (digits, digits + "~")
        )
        exact = [row for row in rows if row["id"] == digits]
        if not rows:
            named = self._db.read("SELECT id, redirect FROM cluster WHERE name = ? LIMIT 2", (reference.strip(),))
            rows = named if len(named) == 1 else []
        if len(exact or rows) == 1:
            row = (exact or rows)[0]
            return row["id"] if row["redirect"] is None else self.find_id(row["redirect"])
        if rows:
            raise OptionError(
                f"several clusters begin with {reference}",
                hint="give more of the id: " + ", ".join(row["id"] for row in rows),
            )
        raise NotFoundError(
            f"the store has no cluster {reference}", hint="the inbox and `triage clusters list` show the clusters"
        )

    def get(self, reference: str, *, now: float | None = None) -> Cluster:
        """Return a cluster, after merges. Raises OptionError."""
        return self._read_clusters("c.id = ?", [self.find_id(reference)], 1, now)[0]

    def list_clusters(
        self, *, states: Sequence[str] = OPEN, limit: int = 50, now: float | None = None
    ) -> list[Cluster]:
        """Return the clusters in these states, by importance: growing, recent, many jobs, many ranks."""
        marks = ", ".join("?" * len(states))
        return self._read_clusters(f"c.state IN ({marks})", list(states), limit, now)

    def list_facts_of_others(self, cluster: Cluster) -> list[Evidence]:
        """Return facts of up to 50 other clusters; those that share the most words with this one come first."""
        own_words = {term for key in cluster.keys for term in key.headline.split()}
        similar_first = sorted(
            self.list_keys(), key=lambda item: (-len(own_words & set(item[0].headline.split())), item[0].key)
        )
        others = list(dict.fromkeys(other for _, other in similar_first if other != cluster.id))[:50]
        return [fact for other in others for _, _, facts in self.list_exemplars(other) for fact in facts]

    def list_exemplars(self, reference: str) -> list[tuple[str, str, tuple[Evidence, ...]]]:
        """Return (key, incident, facts) of the stored examples of each fingerprint, the oldest first.

        An example with keys of several versions of the rules is returned once, with the newest key.
        """
        rows = self._db.read(
            "SELECT e.* FROM exemplar e JOIN cluster_key k ON k.key = e.key WHERE k.cluster = ? "
            "ORDER BY k.version DESC, k.created_at, e.key, e.place",
            (self.find_id(reference),),
        )
        newest = {(row["incident"], row["facts"]): row for row in reversed(rows)}
        return [
            (row["key"], row["incident"], msgspec.convert(json.loads(row["facts"]), share_type(tuple[Evidence, ...])))
            for row in rows
            if newest[row["incident"], row["facts"]] is row
        ]

    def list_reasons(self, reference: str) -> dict[str, str]:
        """Return why each fingerprint is in the cluster, and the nearest other cluster, by key."""
        return {
            row["key"]: row["why"]
            for row in self._db.read("SELECT key, why FROM cluster_key WHERE cluster = ?", (self.find_id(reference),))
        }

    def list_incidents(self, reference: str, limit: int = 1000) -> list[str]:
        """Return the ids of the incidents of a cluster, the latest first."""
        rows = self._db.read(
            "SELECT DISTINCT i.id, i.at FROM cluster_key k JOIN finding f ON f.key = k.key "
            "JOIN incident i ON i.num = f.incident WHERE k.cluster = ? ORDER BY i.at DESC LIMIT ?",
            (self.find_id(reference), limit),
        )
        return [row["id"] for row in rows]

    def list_keys(self, states: Sequence[str] = OPEN) -> list[tuple[Fingerprint, str]]:
        """Return every anchored fingerprint with its cluster, to compute suggestions."""
        marks = ", ".join("?" * len(states))
        rows = self._db.read(
            f"SELECT {', '.join('k.' + name for name in _KEYS.split(', '))}, k.cluster FROM cluster_key k "
            f"JOIN cluster c ON c.id = k.cluster WHERE c.state IN ({marks}) AND k.anchored = 1 ORDER BY k.key",
            states,
        )
        return [(fingerprint_from_row(row), row["cluster"]) for row in rows]

    def find_near(self, reference: str, *, similarity: Similarity = tfidf, most: int = 5) -> tuple[NearestCluster, ...]:
        """Return clusters that a person might merge with this one, nearest first, without rejected ones.

        Raises OptionError when a package for `similarity` is not installed.
        """
        cluster = self.find_id(reference)
        query = f"SELECT {_KEYS} FROM cluster_key WHERE cluster = ? AND anchored = 1 ORDER BY created_at, key"
        mine = self._db.read(query, (cluster,))
        guards = sorted({row["guard"] for row in mine})
        marks, states = ", ".join("?" * len(guards)), ", ".join("?" * len(STANDING))
        rows = self._db.read(
            f"SELECT {', '.join('k.' + name for name in _KEYS.split(', '))}, k.cluster FROM cluster_key k "
            f"JOIN cluster c ON c.id = k.cluster WHERE k.guard IN ({marks}) AND c.state IN ({states}) "
            "AND k.cluster <> ? AND k.anchored = 1 ORDER BY k.key",
            (*guards, *STANDING, cluster),
        )
        rejected = self._rejected_clusters(cluster)
        others = [(row["cluster"], fingerprint_from_row(row)) for row in rows if row["cluster"] not in rejected]
        best: dict[str, NearestCluster] = {}
        for row in mine if others else ():
            for suggestion in suggest_merges(fingerprint_from_row(row), others, similarity=similarity, most=most):
                if suggestion.cluster not in best or best[suggestion.cluster].score < suggestion.score:
                    best[suggestion.cluster] = suggestion
        return tuple(sorted(best.values(), key=lambda near: (-near.score, near.cluster))[:most])

    def _rejected_clusters(self, cluster: str) -> set[str]:
        """Return the clusters that a person separated from it, by at least one pair of fingerprints."""
        rows = self._db.read(
            "SELECT o.cluster FROM cluster_key m JOIN apart a ON a.one = m.key JOIN cluster_key o ON o.key = a.other "
            "WHERE m.cluster = :id UNION SELECT o.cluster FROM cluster_key m JOIN apart a ON a.other = m.key "
            "JOIN cluster_key o ON o.key = a.one WHERE m.cluster = :id",
            {"id": cluster},
        )
        return {row["cluster"] for row in rows}

    def _read_clusters(self, where: str, arguments: list[Any], limit: int, now: float | None) -> list[Cluster]:
        today = int((time.time() if now is None else now) // DAY)
        rows = self._db.read(
            _SUMMARY.format(where=_name_placeholders(where, len(arguments))),
            {
                "week": today - WEEK,
                "fortnight": today - 2 * WEEK,
                "limit": limit,
                **{f"a{n}": value for n, value in enumerate(arguments)},
            },
        )
        names = [name for name in Cluster.__dataclass_fields__ if name != "keys"]
        keys = self._fingerprints([row["id"] for row in rows])
        return [Cluster(**{name: row[name] for name in names}, keys=tuple(keys.get(row["id"], ()))) for row in rows]

    def list_places(self, clusters: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the functions where the failures of each cluster begin, those of the first fingerprint first."""
        return {cluster: list_places(keys) for cluster, keys in self._fingerprints(clusters).items()}

    def _fingerprints(self, clusters: Sequence[str]) -> dict[str, list[Fingerprint]]:
        """Return the fingerprints of each cluster, in the order in which they came."""
        keys: dict[str, list[Fingerprint]] = {}
        for begin in range(0, len(clusters), BATCH):
            batch = clusters[begin : begin + BATCH]
            marks = ", ".join("?" * len(batch))
            rows = self._db.read(
                f"SELECT cluster, {_KEYS} FROM cluster_key WHERE cluster IN ({marks}) ORDER BY created_at, key", batch
            )
            for row in rows:
                keys.setdefault(row["cluster"], []).append(fingerprint_from_row(row))
        return keys


def _count_job(db: Transaction, key: str, finding: Finding, path: str, at: float) -> None:
    """Count the job once per path, and widen the ranks and times of the fingerprint."""
    db.execute(
        "UPDATE cluster_key SET jobs = jobs + CASE WHEN last_path = :path THEN 0 ELSE 1 END, last_path = :path, "
        "ranks = CASE WHEN ranks > :ranks THEN ranks ELSE :ranks END, "
        "first_seen = CASE WHEN first_seen < :at THEN first_seen ELSE :at END, "
        "last_seen = CASE WHEN last_seen > :at THEN last_seen ELSE :at END WHERE key = :key",
        {"path": codec.without_surrogates(path), "ranks": len(finding.ranks), "at": at, "key": key},
    )


@functools.lru_cache(maxsize=1 << 14)
def _read_known(version: int, key: str, guard: str, headline: str, trail: str) -> Fingerprint:
    """Return a stored fingerprint with its places. A new key is compared with all of its guard, which stay the same."""
    return Fingerprint(version, key, guard, headline, cluster_links.read_places(trail), anchored=True)


def _explain(placed: Assignment) -> str:
    """Return the reasons for an assignment, and the nearest other cluster."""
    reasons = list(placed.why)
    if placed.runner_up and placed.how != "new":
        reasons.append(describe_nearest(placed.runner_up))
    return "; ".join(reasons)


def _name_placeholders(where: str, count: int) -> str:
    """Replace question marks by named placeholders: a statement has only one kind."""
    for number in range(count):
        where = where.replace("?", f":a{number}", 1)
    return where


def fingerprint_from_row(row: Any) -> Fingerprint:
    """Return the fingerprint in a row of cluster_key."""
    return Fingerprint(
        row["version"],
        row["key"],
        row["guard"],
        row["headline"],
        tuple(json.loads(row["trail"])),
        bool(row["anchored"]),
    )


def mint_id(db: Transaction, reference: str | None, key: str) -> str:
    """Return a new cluster id: the one in the diagnosis, else one from the key, as short as possible."""
    digits = hashlib.sha256(key.encode()).hexdigest()
    tried = [reference] if reference is not None and _ID.fullmatch(reference) else []
    for candidate in (*tried, *(f"u-{digits[:length]}" for length in range(6, 41, 2))):
        if db.execute("SELECT 1 FROM cluster WHERE id = ?", (candidate,)).fetchone() is None:
            return candidate
    raise AssertionError("two keys with the same hash")


def _store_exemplar(db: Transaction, key: str, incident: str, finding: Finding) -> None:
    """Store the first examples of each fingerprint, with all facts that a signature or later rules need."""
    stored = db.execute(
        "SELECT count(*), count(*) FILTER (WHERE incident = ?) FROM exemplar WHERE key = ?", (incident, key)
    ).fetchone()
    if stored[0] < rekeying.EXEMPLARS and not stored[1]:
        facts = json.dumps([codec.to_json(fact) for fact in finding.evidence], ensure_ascii=True)
        db.execute("INSERT INTO exemplar VALUES (?, ?, ?, ?)", (key, stored[0], incident, facts))
