"""Maintain the store: check it, delete old incidents, shrink the file, count its rows."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.base.errors import OptionError, StoreError
from triage.store.incidents import Incidents
from triage.store.interface import Connections
from triage.store.sqlite import SqliteConnections

BATCH = 500
LOG_SECONDS = 2.0
PROGRESS_STEPS = 10_000  # of SQLite's virtual machine, some milliseconds
DAY = 86_400
_WITHOUT_FEEDBACK = "num NOT IN (SELECT incident FROM feedback)"


@dataclass(frozen=True, slots=True)
class PruneResult:
    """How many incidents retention removed, and the size of the file before and after in bytes."""

    incidents: int
    before: int
    after: int


def check_store(connections: Connections) -> list[str]:
    """Return the problems of the store: of the file, and of its rows; none when it is sound."""
    problems = _check_file(connections) if isinstance(connections, SqliteConnections) else []
    try:
        for sql, problem in _RULES:
            problems += [f"incident {row[0]}: {problem}" for row in connections.read(sql)]
    except StoreError as error:
        problems += [] if problems and isinstance(connections, SqliteConnections) else [error.message]
    return problems


def _check_file(connections: SqliteConnections) -> list[str]:
    """Return the problems of the pages, references and full-text index of a file."""
    problems: list[str] = []
    try:
        db = connections.get()
        problems += [f"damaged: {row[0]}" for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
        problems += [
            f"table {row[0]}, row {row[1]}: refers to a missing row of {row[2]}"
            for row in db.execute("PRAGMA foreign_key_check")
        ]
        if connections.writable:
            try:
                db.execute("INSERT INTO page_fts (page_fts, rank) VALUES ('integrity-check', 1)")
            except sqlite3.DatabaseError as error:
                problems.append(f"the full-text index is wrong ({error}); `triage db vacuum` rebuilds it")
    except sqlite3.DatabaseError as error:
        problems.append(f"damaged: {error}")
    except StoreError as error:
        problems.append(error.message)
    return problems


def check_pages(connections: Connections, seconds: float) -> list[str] | None:
    """Return the problems of the pages, as SQLite's quick check lists them; None if it was stopped after `seconds`.

    Indexes are not compared with their tables, and texts are not read: `check_store` does all of that. PostgreSQL
    checks its pages itself.
    """
    if not isinstance(connections, SqliteConnections):
        return []
    deadline = time.monotonic() + seconds
    try:
        db = connections.get()
        db.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_STEPS)
        try:
            rows = [str(row[0]) for row in db.execute("PRAGMA quick_check(20)")]
        finally:
            db.set_progress_handler(None, 0)
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            return None
        return [str(error)]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [row for row in rows if row != "ok"]


_RULES = (
    (
        "SELECT id FROM incident i WHERE NOT EXISTS (SELECT 1 FROM page WHERE num = i.num)",
        "it is not in the full-text index",
    ),
    ("SELECT id FROM incident i WHERE NOT EXISTS (SELECT 1 FROM report WHERE num = i.num)", "its report is missing"),
    (
        "SELECT id FROM incident i WHERE verdict IN ('known', 'unknown') AND NOT EXISTS (SELECT 1 FROM finding f "
        "WHERE f.incident = i.num AND f.root = 1)",
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
    """Rebuild the full-text index of a file and free the space of deleted rows; blocks all writers.

    Raises OptionError for PostgreSQL, which does this by itself.
    """
    if not isinstance(connections, SqliteConnections):
        hint = "its autovacuum frees the space; a superuser may run VACUUM FULL, and `--older-than` deletes incidents"
        raise OptionError("PostgreSQL needs no `triage db vacuum`", hint=hint)
    connections.execute("INSERT INTO page_fts (page_fts) VALUES ('rebuild')")
    with connections.translate_errors():
        connections.get().execute("VACUUM")
        connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def empty_log(connections: Connections) -> bool:
    """Empty the write-ahead log of a file, which has old states of its pages; return whether it is empty.

    While a reader needs an old state it stays, after LOG_SECONDS of waiting.
    """
    if not isinstance(connections, SqliteConnections):
        return True
    with connections.translate_errors():
        db = connections.get()
        (before,) = db.execute("PRAGMA busy_timeout").fetchone()
        db.execute(f"PRAGMA busy_timeout = {int(1000 * LOG_SECONDS)}")
        try:
            is_busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            db.execute(f"PRAGMA busy_timeout = {before}")
    return not is_busy


def has_file(connections: Connections) -> bool:
    """Whether the store is a file, whose space is freed by `vacuum`."""
    return isinstance(connections, SqliteConnections)


def prune(
    connections: Connections,
    incidents: Incidents,
    *,
    days: float | None = None,
    size: int | None = None,
    now: float | None = None,
) -> PruneResult:
    """Delete incidents older than `days`, then the oldest until the file has at most `size` bytes.

    Incidents with feedback stay, and clusters keep their names, exemplars and counts.
    """
    if size is not None and not isinstance(connections, SqliteConnections):
        hint = "delete by age with --older-than, or give the database a disk of its own"
        raise OptionError("the space that PostgreSQL takes does not shrink with its rows", hint=hint)
    before = connections.size_bytes()
    deleted = 0
    when = time.time() if now is None else now
    if days is not None:
        deleted += delete_incidents(connections, incidents.remove, "at < ?", (when - days * DAY,), None)
    while size is not None and (used := _used_bytes(connections)) > size:
        total = connections.read("SELECT count(*) AS n FROM incident")[0]["n"]
        share = max(1, int(total * min(1.0, 1.1 * (used - size) / used)))
        removed = delete_incidents(connections, incidents.remove, "TRUE", (), share)
        deleted += removed
        if not removed:
            break
    if deleted and isinstance(connections, SqliteConnections):
        vacuum(connections)
    return PruneResult(deleted, before, connections.size_bytes())


def delete_incidents(
    connections: Connections,
    remove: Callable[[Sequence[int]], None],
    where: str,
    arguments: tuple[object, ...],
    max_count: int | None,
) -> int:
    """Delete incidents without feedback with `remove`, the oldest first; return how many."""
    deleted = 0
    while max_count is None or deleted < max_count:
        limit = BATCH if max_count is None else min(BATCH, max_count - deleted)
        rows = connections.read(
            f"SELECT num FROM incident WHERE {where} AND {_WITHOUT_FEEDBACK} ORDER BY at, num LIMIT ?",
            (*arguments, limit),
        )
        if not rows:
            break
        remove([row["num"] for row in rows])
        deleted += len(rows)
    return deleted


def count_deletable(connections: Connections, where: str, arguments: tuple[object, ...]) -> int:
    """Return how many incidents `delete_incidents` would delete."""
    row = connections.read(f"SELECT count(*) AS n FROM incident WHERE {where} AND {_WITHOUT_FEEDBACK}", arguments)[0]
    return int(row["n"])


def _used_bytes(connections: Connections) -> int:
    """Return the bytes of the pages in use."""
    pages, free, each = (
        connections.read(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * each)


def summarize(connections: Connections) -> dict[str, object]:
    """Return the version, rows and bytes of the store, as `triage db check` shows them."""
    tables = ("incident", "cluster", "feedback", "audit", "outbox")
    counts = {name: connections.read(f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in tables}
    return {"version": connections.schema_version(), "bytes": connections.size_bytes(), **counts}
