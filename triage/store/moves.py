"""What a curator decides about clusters. Every move is in the audit log with the state before it, and can be taken
back.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence

from triage.base.errors import OptionError
from triage.evidence.redact import redact
from triage.store import audit, links
from triage.store.clusters import Clusters, mint
from triage.store.connection import Connections


class Moves:
    """Each method gives the number of its entry in the audit log. All raise OptionError for a cluster that is not
    there.
    """

    def __init__(self, connections: Connections, clusters: Clusters) -> None:
        self._db = connections
        self._clusters = clusters

    def name(self, wanted: str, name: str, *, actor: str, note: str = "") -> int:
        """Give it a name, and a note of what is known about it. A name is one cluster's."""
        name = " ".join(redact(name).split())
        if not name:
            raise OptionError("the name is empty", hint="say in a few words what it is")
        cluster = self._clusters.id(wanted)
        with self._db.write() as db:
            if db.execute(
                "SELECT 1 FROM cluster WHERE name = ? AND id <> ? AND state <> 'merged'", (name, cluster)
            ).fetchone():
                raise OptionError(
                    f"another cluster is called {name!r}", hint="merge them if they are one, else choose another name"
                )
            before = links.state(db, [cluster])
            db.execute(
                "UPDATE cluster SET name = ?, note = CASE WHEN ? <> '' THEN ? ELSE note END, state = CASE state WHEN 'open' THEN 'named' "
                "ELSE state END WHERE id = ?",
                (name, note, redact(note), cluster),
            )
            return self._note(db, actor, "name", cluster, {"name": name, "note": redact(note)}, before)

    def merge(self, wanted: Sequence[str], *, actor: str, because: str = "") -> tuple[int, str]:
        """Make several one; (entry, the id that stays). The oldest id stays, the others lead to it for ever."""
        ids = list(dict.fromkeys(self._clusters.id(one) for one in wanted))
        if len(ids) < 2:
            raise OptionError(
                "merging takes two clusters that are not one already", hint="triage clusters merge U-1 U-2"
            )
        with self._db.write() as db:
            before = links.state(db, ids)
            keys = links.keys(db, ids)
            kept, rows = links.gather(db, ids, f"merged by {actor}")
            name = next((row["name"] for row in rows if row["name"]), None)
            db.execute(
                "UPDATE cluster SET name = ?, state = CASE WHEN state = 'open' AND ? IS NOT NULL THEN 'named' ELSE state END WHERE id = ?",
                (name, name, kept),
            )
            before["apart"] = links.together(db, keys)
            details = {"merged": [one for one in ids if one != kept], "because": redact(because)}
            return self._note(db, actor, "merge", kept, details, before), kept

    def split(self, wanted: str, keys: Sequence[str], *, actor: str, because: str = "") -> tuple[int, str]:
        """Move some fingerprints into a new cluster; (entry, the new id). They are never put together again but by a
        person.
        """
        cluster = self._clusters.id(wanted)
        with self._db.write() as db:
            have = links.keys(db, [cluster])
            moved = [_one_key(key, have) for key in keys]
            stay = [key for key in have if key not in moved]
            if not moved or not stay:
                hint = f"`triage clusters show {cluster}` lists its fingerprints; name some with --key, and leave some"
                raise OptionError("a split must move some of the fingerprints, and not all", hint=hint)
            before = links.state(db, [cluster])
            new = self._new(db, moved[0], before)
            self._move(db, moved, new, actor)
            before["pairs"] = links.keep_apart(db, moved, stay, because or f"split by {actor}")
            return self._note(
                db, actor, "split", cluster, {"into": new, "keys": moved, "because": redact(because)}, before
            ), new

    def assign(self, incident: int, wanted: str | None, *, actor: str, because: str = "") -> tuple[int, str]:
        """Put the unknown failure of an incident into another cluster, or (None) into a new one; (entry, id). All of
        its wording go with it.
        """
        target = self._clusters.id(wanted) if wanted is not None else None
        with self._db.write() as db:
            row = db.execute("SELECT key FROM incident WHERE num = ? AND key IS NOT NULL", (incident,)).fetchone()
            row = (
                row
                or db.execute(
                    "SELECT key FROM finding WHERE incident = ? AND key IS NOT NULL ORDER BY place", (incident,)
                ).fetchone()
            )
            if row is None:
                raise OptionError(
                    "this incident holds no unknown failure", hint="`triage feedback ID wrong` is for a known one"
                )
            key = row["key"]
            source = db.execute("SELECT cluster FROM cluster_key WHERE key = ?", (key,)).fetchone()["cluster"]
            if source == target:
                raise OptionError(f"it is in {source} already", hint="`triage clusters list` shows the others")
            before = links.state(db, [source, *([target] if target else [])])
            rest = [other for other in links.keys(db, [source]) if other != key]
            if not rest and target is None:
                raise OptionError(f"it is alone in {source} already", hint="`triage clusters list` shows the others")
            into = target or self._new(db, key, before)
            self._move(db, [key], into, actor)
            before["pairs"] = links.keep_apart(db, [key], rest, because or f"assigned by {actor}")
            before["apart"] = links.together(db, links.keys(db, [into]))
            if not rest:
                db.execute("UPDATE cluster SET state = 'merged', redirect = ? WHERE id = ?", (into, source))
            return self._note(
                db, actor, "assign", source, {"into": into, "keys": [key], "because": redact(because)}, before
            ), into

    def ignore(self, wanted: str, *, actor: str, because: str = "") -> int:
        """Take it out of the list; it is still counted."""
        return self._set(wanted, "ignored", actor, "ignore", {"because": redact(because)})

    def reopen(self, wanted: str, *, actor: str, because: str = "") -> int:
        """Back into the list."""
        return self._set(wanted, "open", actor, "reopen", {"because": redact(because)})

    def promote(self, wanted: str, signature: str, *, actor: str) -> int:
        """Remember which signature was made of it."""
        return self._set(wanted, "promoted", actor, "promote", {"signature": signature}, signature)

    def reject(self, one: str, other: str, *, actor: str, because: str = "") -> int:
        """Say that two clusters are not one, so that nobody suggests it again."""
        ids = [self._clusters.id(one), self._clusters.id(other)]
        with self._db.write() as db:
            before = links.state(db, ids)
            before["pairs"] = links.keep_apart(
                db, links.keys(db, ids[:1]), links.keys(db, ids[1:]), because or f"rejected by {actor}"
            )
            return self._note(db, actor, "reject", ids[0], {"other": ids[1], "because": redact(because)}, before)

    def undo(self, number: int, *, actor: str) -> int:
        """Take a move back. Raises OptionError when it cannot be, or when a later move built on it."""
        with self._db.write() as db:
            entry, before = audit.undoable(db, number)
            for row in before["clusters"].values():
                db.execute(
                    "UPDATE cluster SET state = :state, name = :name, note = :note, signature = :signature, redirect = :redirect WHERE id = :id",
                    row,
                )
            for key, (cluster, why) in before["keys"].items():
                db.execute("UPDATE cluster_key SET cluster = ?, why = ? WHERE key = ?", (cluster, why, key))
            for made in before["made"]:
                # Its id stays taken: what was posted with it must never mean something else.
                into = next(iter(before["clusters"]))
                db.execute("UPDATE cluster_key SET cluster = ?, why = 'moved back' WHERE cluster = ?", (into, made))
                db.execute("UPDATE cluster SET state = 'merged', redirect = ? WHERE id = ?", (into, made))
            db.executemany("DELETE FROM apart WHERE one = ? AND other = ?", before.get("pairs", ()))
            db.executemany("INSERT OR IGNORE INTO apart VALUES (?, ?, ?, ?)", before.get("apart", ()))
            if entry.action == "link":  # what a person took apart is not linked again by the next failure
                one, *others = before["clusters"]
                for other in others:
                    links.keep_apart(db, links.keys(db, [one]), links.keys(db, [other]), f"unlinked by {actor}")
            done = audit.note(db, time.time(), actor, "undo", entry.subject, {"entry": number, "action": entry.action})
            db.execute("UPDATE audit SET undone_by = ? WHERE id = ?", (done, number))
            return done

    def _set(
        self,
        wanted: str,
        state: str,
        actor: str,
        action: str,
        details: Mapping[str, object],
        signature: str | None = None,
    ) -> int:
        cluster = self._clusters.id(wanted)
        with self._db.write() as db:
            before = links.state(db, [cluster])
            named = before["clusters"][cluster]["name"]  # type: ignore[index]
            state = "named" if state == "open" and named else state
            db.execute(
                "UPDATE cluster SET state = ?, signature = coalesce(?, signature) WHERE id = ?",
                (state, signature, cluster),
            )
            return self._note(db, actor, action, cluster, details, before)

    def _new(self, db: sqlite3.Connection, key: str, before: dict[str, object]) -> str:
        """A cluster for a fingerprint that leaves its own."""
        new = mint(db, None, key)
        headline = db.execute("SELECT headline FROM cluster_key WHERE key = ?", (key,)).fetchone()["headline"]
        db.execute(
            "INSERT INTO cluster (id, state, title, created_at) VALUES (?, 'open', ?, ?)", (new, headline, time.time())
        )
        before["made"] = [new]
        return new

    def _move(self, db: sqlite3.Connection, keys: Iterable[str], cluster: str, actor: str) -> None:
        db.executemany(
            "UPDATE cluster_key SET cluster = ?, why = ? WHERE key = ?",
            [(cluster, f"moved by {actor}", key) for key in keys],
        )

    def _note(
        self,
        db: sqlite3.Connection,
        actor: str,
        action: str,
        subject: str,
        details: Mapping[str, object],
        before: Mapping[str, object],
    ) -> int:
        return audit.note(db, time.time(), actor, action, subject, details, before)


def _one_key(wanted: str, have: Sequence[str]) -> str:
    """The key that begins so. Raises OptionError."""
    found = [key for key in have if key == wanted] or [key for key in have if key.startswith(wanted)]
    if len(found) != 1:
        raise OptionError(
            f"{'several of its' if found else 'none of its'} fingerprints begin with {wanted}",
            hint="one of " + ", ".join(have[:8]),
        )
    return found[0]
