"""Unknown failures that are one: which fingerprint belongs to which cluster. Ids are minted once and stay; fingerprints
move, incidents never.

What people decide is in moves.py; here is what an ingest does and what is read.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from triage.base.errors import NotFoundError, OptionError
from triage.base.lazy_re import lazy_re
from triage.clusters.assign import told
from triage.clusters.engine import ByRules
from triage.clusters.model import Assignment, Near
from triage.clusters.suggest import Similarity, suggestions, tfidf
from triage.model.diagnosis import Diagnosis, Finding, Fingerprint
from triage.model.evidence import Evidence
from triage.model.store import Cluster
from triage.store import codec, links, rekeying
from triage.store.connection import Connections
from triage.store.engine import Engine

DAY = 86_400
WEEK = 7
OPEN = ("open", "named")
STATES = (*OPEN, "ignored", "promoted", "merged")
STANDING = (*OPEN, "ignored", "promoted")
_ID = lazy_re(r"u-[0-9a-f]{6,40}")
_KEYS = "key, version, guard, headline, anchored, trail"


class Clusters:
    """The clusters of a store."""

    def __init__(self, connections: Connections, engine: Engine | None = None) -> None:
        self._db = connections
        self.engine: Engine = engine or ByRules()
        self._keyed = False  # by these rules, as far as this process knows

    def assign(
        self, db: sqlite3.Connection, finding: Finding, incident: str, diagnosis: Diagnosis, when: float, *, count: bool
    ) -> str | None:
        """The key of an unknown failure, inside a transaction that is open; its cluster is found by the key, by a join,
        or made.
        """
        print_ = self.engine.fingerprint(finding)
        if print_ is None:
            return None
        if not self._keyed:
            self._keyed = not rekeying.due(db, self.engine)
        if not self._keyed:  # asked again by the next one, for this transaction may be taken back
            rekeying.rekey(db, self.engine)
        key = rekeying.full(print_, diagnosis.job.id).key
        if db.execute("SELECT 1 FROM cluster_key WHERE key = ?", (key,)).fetchone() is None:
            self._new_key(db, key, print_, finding, when)
        if count:
            db.execute(
                "INSERT INTO counter VALUES (?, ?, 1) ON CONFLICT (key, day) DO UPDATE SET incidents = incidents + 1",
                (key, int(when // DAY)),
            )
            _seen(db, key, finding, diagnosis, when)
        _exemplar(db, key, incident, finding)
        return key

    def rekey(self, *, actor: str, dry_run: bool = False) -> rekeying.Rekeyed:
        """Give the kept examples their keys under the rules of today, and tell what no longer fits; `dry_run` only
        tells.
        """
        with self._db.write() as db:
            return rekeying.rekey(db, self.engine, actor=actor, dry_run=dry_run)

    def _new_key(self, db: sqlite3.Connection, key: str, print_: Fingerprint, finding: Finding, when: float) -> None:
        placed = self._placed(db, print_) if print_.anchored else None
        if placed is not None and placed.how == "nested":
            cluster, why = placed.cluster, f"joined automatically: {_reason(placed)}"
        else:
            cluster, why = mint(db, finding.cluster, key), "new" if placed is None else f"new: {_reason(placed)}"
            db.execute(
                "INSERT INTO cluster (id, state, title, created_at) VALUES (?, 'open', ?, ?)",
                (cluster, codec.plain(finding.title), when),
            )
        links.add_key(db, key, print_, cluster, why, when)
        if placed is not None and placed.joins:
            links.link(db, cluster, placed.joins, key)

    def _placed(self, db: sqlite3.Connection, print_: Fingerprint) -> Assignment | None:
        """Where the engine sees it among the fingerprints under the same guard; None when there are none."""
        rows = db.execute(
            f"SELECT {_KEYS}, cluster FROM cluster_key WHERE guard = ? AND version = ? AND anchored ORDER BY key",
            (print_.guard, print_.version),
        ).fetchall()
        if not rows:
            return None
        apart = [frozenset((row["one"], row["other"])) for row in db.execute("SELECT one, other FROM apart")]
        return self.engine.place(print_, [(row["cluster"], fingerprint(row)) for row in rows], apart)

    def id(self, wanted: str) -> str:
        """The id of a cluster by its id or its first digits, past merges. Raises OptionError."""
        digits = wanted.strip().lower()
        digits = digits if digits.startswith("u-") else f"u-{digits}"
        rows = self._db.read(
            "SELECT id, redirect FROM cluster WHERE id >= ? AND id < ? ORDER BY id LIMIT 6", (digits, digits + "~")
        )
        exact = [row for row in rows if row["id"] == digits]
        if not rows:
            named = self._db.read("SELECT id, redirect FROM cluster WHERE name = ? LIMIT 2", (wanted.strip(),))
            rows = named if len(named) == 1 else []
        if len(exact or rows) == 1:
            row = (exact or rows)[0]
            return row["id"] if row["redirect"] is None else self.id(row["redirect"])
        if rows:
            raise OptionError(
                f"several clusters begin with {wanted}",
                hint="give more of the id: " + ", ".join(row["id"] for row in rows),
            )
        raise NotFoundError(f"the store has no cluster {wanted}", hint="`triage clusters list` shows those it has")

    def get(self, wanted: str, *, now: float | None = None) -> Cluster:
        """The cluster `wanted`, past merges. Raises OptionError."""
        return self._read("c.id = ?", [self.id(wanted)], 1, now)[0]

    def listed(self, *, states: Sequence[str] = OPEN, limit: int = 50, now: float | None = None) -> list[Cluster]:
        """Those in one of these states, by what matters: growing, then recent, then many jobs, then many ranks."""
        marks = ", ".join("?" * len(states))
        return self._read(f"c.state IN ({marks})", list(states), limit, now)

    def exemplars(self, wanted: str) -> list[tuple[str, str, tuple[Evidence, ...]]]:
        """(key, incident, facts) that the store kept of each fingerprint of the cluster, the oldest first.

        What stands under keys of several versions of the rules is told once, under the newest.
        """
        rows = self._db.read(
            "SELECT e.* FROM exemplar e JOIN cluster_key k ON k.key = e.key WHERE k.cluster = ? "
            "ORDER BY k.version DESC, k.created_at, e.key, e.place",
            (self.id(wanted),),
        )
        once = {(row["incident"], row["facts"]): row for row in reversed(rows)}
        return [
            (row["key"], row["incident"], tuple(map(codec.evidence_from, json.loads(row["facts"]))))
            for row in rows
            if once[row["incident"], row["facts"]] is row
        ]

    def reasons(self, wanted: str) -> dict[str, str]:
        """Why each fingerprint of the cluster is in it, and how near another cluster came, by key."""
        return {
            row["key"]: row["why"]
            for row in self._db.read("SELECT key, why FROM cluster_key WHERE cluster = ?", (self.id(wanted),))
        }

    def incidents(self, wanted: str, limit: int = 1000) -> list[str]:
        """Ids of the incidents in which it was seen, the latest first."""
        rows = self._db.read(
            "SELECT DISTINCT i.id, i.at FROM cluster_key k JOIN finding f ON f.key = k.key JOIN incident i ON i.num = f.incident "
            "WHERE k.cluster = ? ORDER BY i.at DESC LIMIT ?",
            (self.id(wanted), limit),
        )
        return [row["id"] for row in rows]

    def keys(self, states: Sequence[str] = OPEN) -> list[tuple[Fingerprint, str]]:
        """Every anchored fingerprint with its cluster: what suggestions are made of."""
        marks = ", ".join("?" * len(states))
        rows = self._db.read(
            f"SELECT {', '.join('k.' + name for name in _KEYS.split(', '))}, k.cluster FROM cluster_key k JOIN cluster c ON c.id = k.cluster "
            f"WHERE c.state IN ({marks}) AND k.anchored ORDER BY k.key",
            states,
        )
        return [(fingerprint(row), row["cluster"]) for row in rows]

    def near(self, wanted: str, *, similarity: Similarity = tfidf, most: int = 5) -> tuple[Near, ...]:
        """Clusters that a person might want to merge with it, nearest first; those that were rejected never come back.

        Raises OptionError where what `similarity` needs is not installed.
        """
        cluster = self.id(wanted)
        mine = self._db.read(
            f"SELECT {_KEYS} FROM cluster_key WHERE cluster = ? AND anchored ORDER BY created_at, key", (cluster,)
        )
        guards = sorted({row["guard"] for row in mine})
        marks, states = ", ".join("?" * len(guards)), ", ".join("?" * len(STANDING))
        rows = self._db.read(
            f"SELECT {', '.join('k.' + name for name in _KEYS.split(', '))}, k.cluster FROM cluster_key k JOIN cluster c ON c.id = k.cluster "
            f"WHERE k.guard IN ({marks}) AND c.state IN ({states}) AND k.cluster <> ? AND k.anchored ORDER BY k.key",
            (*guards, *STANDING, cluster),
        )
        refused = self._refused(cluster)
        others = [(row["cluster"], fingerprint(row)) for row in rows if row["cluster"] not in refused]
        best: dict[str, Near] = {}
        for row in mine if others else ():
            for found in suggestions(fingerprint(row), others, similarity=similarity, most=most):
                if found.cluster not in best or best[found.cluster].score < found.score:
                    best[found.cluster] = found
        return tuple(sorted(best.values(), key=lambda found: (-found.score, found.cluster))[:most])

    def _refused(self, cluster: str) -> set[str]:
        """The clusters that a person keeps apart from it: one pair of fingerprints is enough."""
        rows = self._db.read(
            "SELECT o.cluster FROM cluster_key m JOIN apart a ON a.one = m.key JOIN cluster_key o ON o.key = a.other WHERE m.cluster = :id "
            "UNION SELECT o.cluster FROM cluster_key m JOIN apart a ON a.other = m.key JOIN cluster_key o ON o.key = a.one WHERE m.cluster = :id",
            {"id": cluster},
        )
        return {row["cluster"] for row in rows}

    def apart(self) -> set[tuple[str, str]]:
        """Pairs of keys (the smaller first) of which a person said that they are not one."""
        return {(row["one"], row["other"]) for row in self._db.read("SELECT one, other FROM apart")}

    def _read(self, where: str, arguments: list[Any], limit: int, now: float | None) -> list[Cluster]:
        today = int((time.time() if now is None else now) // DAY)
        rows = self._db.read(
            f"""
            WITH counted AS (
                SELECT k.cluster, sum(n.incidents) AS incidents,
                    sum(CASE WHEN n.day > :week THEN n.incidents ELSE 0 END) AS recent,
                    sum(CASE WHEN n.day <= :week AND n.day > :fortnight THEN n.incidents ELSE 0 END) AS before
                FROM cluster_key k JOIN counter n ON n.key = k.key GROUP BY k.cluster
            ), met AS (
                SELECT cluster, sum(jobs) AS jobs, max(ranks) AS ranks, min(first_seen) AS first_seen, max(last_seen) AS last_seen
                FROM cluster_key GROUP BY cluster
            )
            SELECT c.*, coalesce(n.incidents, 0) AS incidents, coalesce(n.recent, 0) AS recent, coalesce(n.before, 0) AS before,
                coalesce(m.jobs, 0) AS jobs, coalesce(m.ranks, 0) AS ranks, m.first_seen, m.last_seen
            FROM cluster c LEFT JOIN counted n ON n.cluster = c.id LEFT JOIN met m ON m.cluster = c.id
            WHERE {_named(where, len(arguments))}
            ORDER BY coalesce(n.recent, 0) - coalesce(n.before, 0) DESC, m.last_seen DESC, jobs DESC, ranks DESC, c.id LIMIT :limit
            """,
            {
                "week": today - WEEK,
                "fortnight": today - 2 * WEEK,
                "limit": limit,
                **{f"a{n}": value for n, value in enumerate(arguments)},
            },
        )
        members: dict[str, list[Fingerprint]] = {row["id"]: [] for row in rows}
        for row in rows:
            found = self._db.read(
                f"SELECT {_KEYS} FROM cluster_key WHERE cluster = ? ORDER BY created_at, key", (row["id"],)
            )
            members[row["id"]] = [fingerprint(item) for item in found]
        names = [name for name in Cluster.__dataclass_fields__ if name != "keys"]
        return [Cluster(**{name: row[name] for name in names}, keys=tuple(members[row["id"]])) for row in rows]


def _seen(db: sqlite3.Connection, key: str, finding: Finding, diagnosis: Diagnosis, when: float) -> None:
    """Count the job (one whose files grow and are ingested again and again is one), and how far and how long it goes."""
    at = finding.first_time if finding.first_time is not None and 0 < finding.first_time < when + DAY else when
    db.execute(
        "UPDATE cluster_key SET jobs = jobs + (last_path IS NOT :path), last_path = :path, ranks = max(ranks, :ranks), "
        "first_seen = min(coalesce(first_seen, :at), :at), last_seen = max(coalesce(last_seen, :at), :at) WHERE key = :key",
        {"path": codec.plain(diagnosis.job.path), "ranks": len(finding.ranks), "at": at, "key": key},
    )


def _reason(placed: Assignment) -> str:
    """Why, and how near the runner-up came."""
    said = [*placed.why, *([told(placed.runner_up)] if placed.runner_up and placed.how != "new" else [])]
    return "; ".join(said)


def _named(where: str, count: int) -> str:
    """Question marks as names, for a statement has either."""
    for number in range(count):
        where = where.replace("?", f":a{number}", 1)
    return where


def fingerprint(row: Any) -> Fingerprint:
    """A row of cluster_key."""
    return Fingerprint(
        row["version"],
        row["key"],
        row["guard"],
        row["headline"],
        tuple(json.loads(row["trail"])),
        bool(row["anchored"]),
    )


def mint(db: sqlite3.Connection, wanted: str | None, key: str) -> str:
    """An id that no cluster has: the one that the diagnosis used, else made of the key, as short as it can be."""
    digits = hashlib.sha256(key.encode()).hexdigest()
    tried = [wanted] if wanted is not None and _ID.fullmatch(wanted) else []
    for candidate in (*tried, *(f"u-{digits[:length]}" for length in range(6, 41, 2))):
        if db.execute("SELECT 1 FROM cluster WHERE id = ?", (candidate,)).fetchone() is None:
            return candidate
    raise AssertionError("two keys with the same hash")


def _exemplar(db: sqlite3.Connection, key: str, incident: str, finding: Finding) -> None:
    """Keep the first few of each fingerprint, with all that a signature or a later normaliser asks for."""
    kept = db.execute("SELECT count(*), sum(incident = ?) FROM exemplar WHERE key = ?", (incident, key)).fetchone()
    if kept[0] < rekeying.EXEMPLARS and not kept[1]:
        facts = json.dumps([codec.dump(fact) for fact in finding.evidence], ensure_ascii=True)
        db.execute("INSERT INTO exemplar VALUES (?, ?, ?, ?)", (key, kept[0], incident, facts))
