"""Copy a whole store into an empty one, also of another kind of database: all rows with their numbers.

At the end the rows of every table of both are counted and digested; if they differ, nothing is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from triage.base.errors import OptionError, StoreError
from triage.store.interface import Connections, Transaction

# Each table after those that it refers to, with the columns that order its rows.
TABLES = {
    "setting": "key",
    "job": "id",
    "incident": "num",
    "attempt": "incident, number",
    "finding": "incident, place",
    "report": "num",
    "blamed_rank": "rank, incident",
    "host": "name, incident",
    "fact": "name, value, incident",
    "warning": "incident, place",
    "redacted": "incident, kind",
    "history": "id",
    "feedback": "id",
    "cluster": "id",
    "cluster_key": "key",
    "exemplar": "key, place",
    "counter": "key, day",
    "apart": "one, other",
    "cause_work": "cause",
    "cause_comment": "cause, at, actor",
    "saved_view": "id",
    "visit": "person",
    "subscription": "id",
    "audit": "id",
    "page": "num",
    "outbox": "id",
    "task": "id",
    "token": "id",
    "upload": "digest",
    "origin": "incident",
    "document": "incident, kind",
    "secret": "name",
    "told": "id",
    "told_part": "told, name",
    "told_again": "told, topic",
    "mute": "kind, place, cause",
    "request_seen": "key",
}
# An empty store may have these: the first `triage serve` makes a secret, the first ingest notes the rules' version.
_MAY_HAVE_ROWS = ("setting", "secret")
BATCH = 500
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class CopyResult:
    """How many rows of each table were copied."""

    rows: dict[str, int]


def copy_store(source: Connections, target: Connections, *, progress: Progress | None = None) -> CopyResult:
    """Copy all rows, in one transaction. `progress` is called with (table, rows copied, rows in all).

    Raises OptionError when the target has data, StoreError when the copy differs from the original.
    """
    with source.snapshot() as origin, target.write() as db:
        _check_empty(target, db)
        db.execute(target.dialect.defer_references)
        is_bulk = target.before_copy(db)
        counts: dict[str, int] = {}
        for table in TABLES:
            total = int(origin.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            counts[table] = total
            _copy_table(origin, db, target, table, total, progress)
        target.after_copy(db, is_bulk=is_bulk)
        for table in TABLES:
            if progress is not None:
                progress(f"check of {table}", counts[table], counts[table])
            if digest_table(origin, table) != digest_table(db, table):
                hint = "nothing was copied; run `triage db check` on the original, and copy it again"
                raise StoreError(f"the copy of the table {table} differs", hint=hint, path=str(target.location))
    return CopyResult(counts)


def _check_empty(target: Connections, db: Transaction) -> None:
    for table in TABLES:
        if table not in _MAY_HAVE_ROWS and db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None:
            hint = "name an empty database or a new file; `triage db export` and `import` add to a store"
            raise OptionError(f"{target.location} is not empty: the table {table} has rows", hint=hint)
    for table in _MAY_HAVE_ROWS:
        db.execute(f"DELETE FROM {table}")


def _copy_table(
    origin: Transaction, db: Transaction, target: Connections, table: str, total: int, progress: Progress | None
) -> None:
    columns = _columns_of(origin, table)
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    done = 0
    for rows in _batches(origin, table):
        if table == "page":
            for row in rows:
                target.dialect.text.write_page(db, *row)
        else:
            db.executemany(statement, rows)
        done += len(rows)
        if progress is not None:
            progress(table, done, total)


def _columns_of(db: Transaction, table: str) -> list[str]:
    """Return the columns that both kinds of database have."""
    names = [column[0] for column in db.execute(f"SELECT * FROM {table} LIMIT 0").description]
    return [name for name in names if name != "lexemes"]


def _batches(db: Transaction, table: str) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a table in its order, some at a time: each batch begins after the last row of the last one."""
    order, columns = TABLES[table], _columns_of(db, table)
    keys = order.split(", ")
    places = [columns.index(key) for key in keys]
    after: tuple[Any, ...] | None = None
    marks = ", ".join("?" * len(keys))
    while True:
        where = "" if after is None else f"WHERE ({order}) > ({marks})"
        sql = f"SELECT {', '.join(columns)} FROM {table} {where} ORDER BY {order} LIMIT {BATCH}"
        rows = [tuple(row) for row in db.execute(sql, after or ()).fetchall()]
        if not rows:
            return
        yield rows
        after = tuple(rows[-1][place] for place in places)


def digest_table(db: Transaction, table: str) -> str:
    """Return a digest of all rows of a table, equal in every kind of database."""
    digest = hashlib.sha256()
    for rows in _batches(db, table):
        for row in rows:
            digest.update(repr(tuple(map(_comparable, row))).encode())
    return digest.hexdigest()


def _comparable(value: Any) -> Any:
    """Return a value as any database stores it: one takes a whole number where a fraction is expected, and no NUL."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return bytes(value) if isinstance(value, memoryview) else value
