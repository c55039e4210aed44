"""Actions of curators on clusters. The audit log has each one with the state before, so that it can be undone."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from triage.base.errors import OptionError
from triage.evidence.redact import redact
from triage.store import audit, cluster_links
from triage.store.clusters import Clusters, mint_id
from triage.store.interface import Connections, Transaction


class ClusterActions:
    """The actions. Each returns the number of its audit entry and raises OptionError for a missing cluster."""

    def __init__(self, connections: Connections, clusters: Clusters) -> None:
        self._db = connections
        self._clusters = clusters

    def name(self, reference: str, name: str, *, actor: str, note: str = "") -> int:
        """Name a cluster and note what is known about it. Names are unique."""
        name = " ".join(redact(name).split())
        if not name:
            raise OptionError("the name is empty", hint="describe the failure in a few words")
        cluster = self._clusters.find_id(reference)
        with self._db.write() as db:
            if db.execute(
                "SELECT 1 FROM cluster WHERE name = ? AND id <> ? AND state <> 'merged'", (name, cluster)
            ).fetchone():
                raise OptionError(
                    f"another cluster is called {name!r}",
                    hint="merge the clusters if they are the same failure, or choose another name",
                )
            before = cluster_links.snapshot(db, [cluster])
            db.execute(
                "UPDATE cluster SET name = ?, note = CASE WHEN ? <> '' THEN ? ELSE note END, state = CASE state "
                "WHEN 'open' THEN 'named' ELSE state END WHERE id = ?",
                (name, note, redact(note), cluster),
            )
            return self._write_entry(db, actor, "name", cluster, {"name": name, "note": redact(note)}, before)

    def merge(self, reference: Sequence[str], *, actor: str, because: str = "") -> tuple[int, str]:
        """Merge clusters; return (audit entry, id). The oldest id stays, and the others redirect to it."""
        ids = list(dict.fromkeys(self._clusters.find_id(one) for one in reference))
        if len(ids) < 2:
            raise OptionError("merging needs two different clusters", hint="triage clusters merge U-1 U-2")
        with self._db.write() as db:
            before = cluster_links.snapshot(db, ids)
            keys = cluster_links.list_keys(db, ids)
            oldest, rows = cluster_links.merge_into_oldest(db, ids, f"{cluster_links.MERGED}{actor}")
            name = next((row["name"] for row in rows if row["name"]), None)
            db.execute(
                "UPDATE cluster SET name = :name, state = CASE WHEN state = 'open' "
                "AND CAST(:name AS TEXT) IS NOT NULL THEN 'named' ELSE state END WHERE id = :id",
                {"name": name, "id": oldest},
            )
            before["apart"] = cluster_links.remove_apart(db, keys)
            details = {"merged": [one for one in ids if one != oldest], "because": redact(because)}
            return self._write_entry(db, actor, "merge", oldest, details, before), oldest

    def split(self, reference: str, keys: Sequence[str], *, actor: str, because: str = "") -> tuple[int, str]:
        """Move some fingerprints into a new cluster; return (audit entry, new id).

        Only a person can put them together again.
        """
        cluster = self._clusters.find_id(reference)
        with self._db.write() as db:
            have = cluster_links.list_keys(db, [cluster])
            moved = [_find_key(key, have) for key in keys]
            stay = [key for key in have if key not in moved]
            if not moved or not stay:
                hint = f"leave some of them; `triage clusters show {cluster}` lists all"
                raise OptionError("a split must move some of the fingerprints, not all", hint=hint)
            before = cluster_links.snapshot(db, [cluster])
            new = self._new(db, moved[0], before)
            self._move(db, moved, new, actor)
            before["pairs"] = cluster_links.keep_apart(db, moved, stay, because or f"split by {actor}")
            return self._write_entry(
                db, actor, "split", cluster, {"into": new, "keys": moved, "because": redact(because)}, before
            ), new

    def assign(self, incident: int, reference: str | None, *, actor: str, because: str = "") -> tuple[int, str]:
        """Move the unknown failure of an incident into another cluster, or (None) into a new one.

        All failures with its fingerprint move with it. Returns (audit entry, cluster id).
        """
        target = self._clusters.find_id(reference) if reference is not None else None
        with self._db.write() as db:
            key = _unknown_key(db, incident)
            source = db.execute("SELECT cluster FROM cluster_key WHERE key = ?", (key,)).fetchone()["cluster"]
            hint = "`triage clusters list` shows other clusters"
            if source == target:
                raise OptionError(f"it is already in {source}", hint=hint)
            before = cluster_links.snapshot(db, [source, *([target] if target else [])])
            rest = [other for other in cluster_links.list_keys(db, [source]) if other != key]
            if not rest and target is None:
                raise OptionError(f"it is already alone in {source}", hint=hint)
            into = target or self._new(db, key, before)
            self._move(db, [key], into, actor)
            before["pairs"] = cluster_links.keep_apart(db, [key], rest, because or f"assigned by {actor}")
            before["apart"] = cluster_links.remove_apart(db, cluster_links.list_keys(db, [into]))
            if not rest:
                db.execute("UPDATE cluster SET state = 'merged', redirect = ? WHERE id = ?", (into, source))
            details = {"into": into, "keys": [key], "because": redact(because)}
            return self._write_entry(db, actor, "assign", source, details, before), into

    def ignore(self, reference: str, *, actor: str, because: str = "") -> int:
        """Hide a cluster from the list; it is still counted."""
        return self._set(reference, "ignored", actor, "ignore", {"because": redact(because)})

    def reopen(self, reference: str, *, actor: str, because: str = "") -> int:
        """Show an ignored cluster in the list again."""
        return self._set(reference, "open", actor, "reopen", {"because": redact(because)})

    def promote(self, reference: str, signature: str, *, actor: str) -> int:
        """Record the signature that was made from a cluster."""
        return self._set(reference, "promoted", actor, "promote", {"signature": signature}, signature)

    def reject(self, one: str, other: str, *, actor: str, because: str = "") -> int:
        """Record that two clusters are different, so that their merge is not suggested again."""
        ids = [self._clusters.find_id(one), self._clusters.find_id(other)]
        with self._db.write() as db:
            before = cluster_links.snapshot(db, ids)
            before["pairs"] = cluster_links.keep_apart(
                db,
                cluster_links.list_keys(db, ids[:1]),
                cluster_links.list_keys(db, ids[1:]),
                because or f"rejected by {actor}",
            )
            return self._write_entry(db, actor, "reject", ids[0], {"other": ids[1], "because": redact(because)}, before)

    def undo(self, number: int, *, actor: str) -> int:
        """Undo an action. Raises OptionError when that is impossible or a later action depends on it."""
        with self._db.write() as db:
            entry, before = audit.get_undoable(db, number)
            cluster_links.restore(db, before)
            if entry.action == "link":  # the next failure must not link them again
                one, *others = before["clusters"]
                for other in others:
                    keys, other_keys = cluster_links.list_keys(db, [one]), cluster_links.list_keys(db, [other])
                    cluster_links.keep_apart(db, keys, other_keys, f"unlinked by {actor}")
            details = {"entry": number, "action": entry.action}
            done = audit.write_entry(db, time.time(), actor, "undo", entry.subject, details)
            db.execute("UPDATE audit SET undone_by = ? WHERE id = ?", (done, number))
            return done

    def _set(
        self,
        reference: str,
        state: str,
        actor: str,
        action: str,
        details: Mapping[str, object],
        signature: str | None = None,
    ) -> int:
        cluster = self._clusters.find_id(reference)
        with self._db.write() as db:
            before = cluster_links.snapshot(db, [cluster])
            named = before["clusters"][cluster]["name"]  # type: ignore[index]
            state = "named" if state == "open" and named else state
            db.execute(
                "UPDATE cluster SET state = ?, signature = coalesce(?, signature) WHERE id = ?",
                (state, signature, cluster),
            )
            return self._write_entry(db, actor, action, cluster, details, before)

    def _new(self, db: Transaction, key: str, before: dict[str, object]) -> str:
        """Create a cluster for a fingerprint that leaves its own."""
        new = mint_id(db, None, key)
        headline = db.execute("SELECT headline FROM cluster_key WHERE key = ?", (key,)).fetchone()["headline"]
        db.execute(
            "INSERT INTO cluster (id, state, title, created_at) VALUES (?, 'open', ?, ?)", (new, headline, time.time())
        )
        before["made"] = [new]
        return new

    def _move(self, db: Transaction, keys: Iterable[str], cluster: str, actor: str) -> None:
        db.executemany(
            "UPDATE cluster_key SET cluster = ?, why = ? WHERE key = ?",
            [(cluster, f"{cluster_links.MOVED}{actor}", key) for key in keys],
        )

    def _write_entry(
        self,
        db: Transaction,
        actor: str,
        action: str,
        subject: str,
        details: Mapping[str, object],
        before: Mapping[str, object],
    ) -> int:
        return audit.write_entry(db, time.time(), actor, action, subject, details, before)


def _unknown_key(db: Transaction, incident: int) -> str:
    """Return the key of an incident's unknown failure: its root cause, else the first one. Raises OptionError."""
    row = (
        db.execute("SELECT key FROM incident WHERE num = ? AND key IS NOT NULL", (incident,)).fetchone()
        or db.execute(
            "SELECT key FROM finding WHERE incident = ? AND key IS NOT NULL ORDER BY place", (incident,)
        ).fetchone()
    )
    if row is None:
        raise OptionError(
            "this incident has no unknown failure", hint="`triage feedback ID wrong` is for known failures"
        )
    return str(row["key"])


def _find_key(reference: str, have: Sequence[str]) -> str:
    """Return the key with this prefix. Raises OptionError when none or several have it."""
    matches = [key for key in have if key == reference] or [key for key in have if key.startswith(reference)]
    if len(matches) != 1:
        raise OptionError(
            f"{'several' if matches else 'none'} of its fingerprints begin with {reference}",
            hint="give one of " + ", ".join(have[:8]),
        )
    return matches[0]
