"""Make a store ten times as large in minutes: `repeat_incidents` repeats its rows within the database.

Each repetition is another incident of another job at another time; report and text for searches are those of the
original. Indexes and sums are built at the end. Works for SQLite and, as a superuser, for PostgreSQL.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from triage.store import Store, cause_tables, facet_tables
from triage.store.postgres import bulk_copy

HOUR = 3600.5  # between an incident and its next repetition
_BY_NUMBER = ("report", "page")
_BY_INCIDENT = ("attempt", "finding", "blamed_rank", "host", "fact", "warning", "redacted", "origin", "document")
_SQLITE_SCHEMA = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
_POSTGRES_INDEXES = (
    "SELECT 'index', c.relname, pg_get_indexdef(c.oid) FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid "
    "WHERE NOT x.indisunique AND c.relnamespace = CAST(current_schema() AS regnamespace)"
)


def repeat_incidents(store: Store, times: int) -> None:
    """Let the store have `times` as many incidents."""
    if times < 2:
        return
    is_sqlite = store.connections.dialect.name == "sqlite"
    if is_sqlite:
        store.connections.get().execute("PRAGMA synchronous = OFF")
    with store.connections.write() as db:
        _prepare(db, is_sqlite)
        parts = [tuple(row) for row in db.execute(_SQLITE_SCHEMA if is_sqlite else _POSTGRES_INDEXES).fetchall()]
        for kind, name, _ in parts:
            db.execute(f'DROP {kind} "{name}"')
        (last,) = db.execute("SELECT max(num) FROM incident").fetchone()
    for number in range(1, times):
        with store.connections.write() as db:
            _prepare(db, is_sqlite)
            _repeat(db, number, last)
        print(f"  repeated {number} times", flush=True)
    with store.connections.write() as db:
        _prepare(db, is_sqlite)
        db.execute(f"UPDATE cluster_key SET jobs = jobs * {times}")
        db.execute(f"UPDATE counter SET incidents = incidents * {times}")
        for table in (*cause_tables.SUMS.names, *facet_tables.SUMS.names):
            db.execute(f"DELETE FROM {table}")
        if is_sqlite:
            cause_tables.SUMS.fill(db)
            facet_tables.SUMS.fill(db)
            db.execute("INSERT INTO page_fts (page_fts) VALUES ('rebuild')")
        else:
            bulk_copy.compute_sums(db)
            # Numbers were given, not drawn: the next incident would get one of them.
            db.execute("SELECT setval(pg_get_serial_sequence('incident', 'num'), (SELECT max(num) FROM incident))")
        for _, _, sql in parts:
            db.execute(sql)


def _prepare(db: Any, is_sqlite: bool) -> None:
    """Let PostgreSQL run no triggers in this transaction; it has more memory for its indexes."""
    if not is_sqlite:
        db.execute("SET LOCAL session_replication_role = replica")
        db.execute("SET LOCAL maintenance_work_mem = '256MB'")


def _repeat(db: Any, number: int, last: int) -> None:
    """Repeat the incidents up to the number `last` once more."""
    more, mark = number * last, chr(ord("f") + number)  # no digit of an id
    of_job = f"'j-{mark}' || substr(o.{{}}, 4)"
    new = {"id": of_job.format("id"), "name": f"o.name || '-{number}'"}
    _insert(db, "job", new, "JOIN incident i ON i.job = o.id AND i.num", last)
    new = {"num": f"o.num + {more}", "id": f"'i-{mark}' || substr(o.id, 4)", "job": of_job.format("job")}
    new |= {name: f"o.{name} - {number * HOUR}" for name in ("at", "stored_at", "seen_at")}
    _insert(db, "incident", new, "WHERE o.num", last)
    for table in _BY_NUMBER:
        _insert(db, table, {"num": f"o.num + {more}"}, "WHERE o.num", last)
    for table in _BY_INCIDENT:
        _insert(db, table, {"incident": f"o.incident + {more}"}, "WHERE o.incident", last)


def _insert(db: Any, table: str, new: dict[str, str], up_to: str, last: int) -> None:
    row = db.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
    columns = list(row.keys()) if row is not None else []
    if columns:
        values = ", ".join(new.get(name, f"o.{name}") for name in columns)
        db.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} o {up_to} <= {last}")
