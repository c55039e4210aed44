"""Keeping the store sound and small: checks, retention, and what it is made of."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import StoreError
from triage.store import migrations
from triage.store.connection import Connections
from triage.store.incidents import Incidents

BATCH = 500
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Pruned:
    """What retention removed, and the size of the file before and after in bytes."""

    incidents: int
    before: int
    after: int


def check(connections: Connections) -> list[str]:
    """What is wrong with the file, nothing when it is sound: its pages, its references, the index of its words, its
    rows among each other.
    """
    wrong: list[str] = []
    try:
        db = connections.get()
        wrong += [f"damaged: {row[0]}" for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
        wrong += [
            f"table {row[0]}, row {row[1]}: refers to {row[2]} that is not there"
            for row in db.execute("PRAGMA foreign_key_check")
        ]
        if connections.writable:
            try:
                db.execute("INSERT INTO page_fts (page_fts, rank) VALUES ('integrity-check', 1)")
            except sqlite3.DatabaseError as error:
                wrong.append(f"the index of words is wrong ({error}); `triage db vacuum` makes it anew")
        for sql, said in _RULES:
            wrong += [f"incident {row[0]}: {said}" for row in db.execute(sql)]
    except sqlite3.DatabaseError as error:
        wrong.append(f"damaged: {error}")
    except StoreError as error:
        wrong.append(error.message)
    return wrong


_RULES = (
    ("SELECT id FROM incident i WHERE NOT EXISTS (SELECT 1 FROM page WHERE num = i.num)", "its words are missing"),
    ("SELECT id FROM incident i WHERE NOT EXISTS (SELECT 1 FROM report WHERE num = i.num)", "its report is missing"),
    (
        "SELECT id FROM incident i WHERE verdict <> 'clean' AND NOT EXISTS (SELECT 1 FROM finding f WHERE f.incident = i.num AND f.root)",
        "it has no root cause",
    ),
    (
        "SELECT i.id FROM finding f JOIN incident i ON i.num = f.incident LEFT JOIN cluster_key k ON k.key = f.key "
        "WHERE f.key IS NOT NULL AND k.key IS NULL",
        "its cluster is missing",
    ),
    (
        "SELECT key FROM cluster_key k JOIN cluster c ON c.id = k.cluster WHERE c.redirect IS NOT NULL",
        "a fingerprint is in a merged cluster",
    ),
)


def vacuum(connections: Connections) -> None:
    """Make the index of words anew and give back the room of what was removed. Nobody may write meanwhile."""
    with connections.write() as db:
        db.execute("INSERT INTO page_fts (page_fts) VALUES ('rebuild')")
    with connections.told():
        connections.get().execute("VACUUM")
        connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def prune(
    connections: Connections,
    incidents: Incidents,
    *,
    days: float | None = None,
    size: int | None = None,
    now: float | None = None,
) -> Pruned:
    """Forget incidents that failed more than `days` ago, then the oldest until the file is no larger than `size` bytes.

    Those that people spoke about stay, and clusters keep their names, exemplars and counts.
    """
    before = _size(connections)
    gone = 0
    when = time.time() if now is None else now
    if days is not None:
        gone += _forget(connections, incidents, "at < ?", (when - days * DAY,), None)
    while size is not None and (live := _live(connections)) > size:
        total = connections.read("SELECT count(*) AS n FROM incident")[0]["n"]
        share = max(1, int(total * min(1.0, 1.1 * (live - size) / live)))
        removed = _forget(connections, incidents, "1", (), share)
        gone += removed
        if not removed:
            break
    if gone:
        vacuum(connections)
    return Pruned(gone, before, _size(connections))


def _forget(
    connections: Connections, incidents: Incidents, where: str, arguments: tuple[float, ...], most: int | None
) -> int:
    gone = 0
    while most is None or gone < most:
        limit = BATCH if most is None else min(BATCH, most - gone)
        rows = connections.read(
            f"SELECT num FROM incident WHERE {where} AND num NOT IN (SELECT incident FROM feedback) ORDER BY at, num LIMIT ?",
            (*arguments, limit),
        )
        if not rows:
            break
        incidents.remove([row["num"] for row in rows])
        gone += len(rows)
    return gone


def _live(connections: Connections) -> int:
    """Bytes of the pages that hold something."""
    pages, free, each = (
        connections.read(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * each)


def _size(connections: Connections) -> int:
    return sum(path.stat().st_size for path in (connections.path, Path(f"{connections.path}-wal")) if path.exists())


def facts(connections: Connections) -> dict[str, object]:
    """What `triage db check` says besides: version, rows, bytes."""
    tables = ("incident", "cluster", "feedback", "audit", "outbox")
    counts = {name: connections.read(f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in tables}
    return {"version": migrations.version(connections.get()), "bytes": _size(connections), **counts}
