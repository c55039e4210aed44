"""The columns of each table and index, and whether a record can be a row of one."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.store import codec
from triage.store.salvage.btree import DamagedPageError, Value

_TYPES: Mapping[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (int, float), "TEXT": (str,), "BLOB": (bytes,)}
_JSON_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "job": ("versions",),
    "incident": ("ranks", "hosts"),
    "cluster_key": ("trail",),
    "exemplar": ("facts",),
    "audit": ("details", "undo"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its declared type (empty: any), and whether it may be NULL or missing."""

    name: str
    type: str
    is_nullable: bool
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """What the records of a table or an index look like.

    `columns` are in the order of the records. `rowid_column` is the place of the column that is the row number, and is
    stored as NULL. Optional columns at the end may be missing: they were added after the row.
    """

    name: str
    table: str
    columns: tuple[Column, ...]
    has_rowids: bool
    rowid_column: int | None = None

    @property
    def is_index(self) -> bool:
        """Whether this is an index, which holds nothing of its own."""
        return self.name != self.table

    @property
    def is_unmistakable(self) -> bool:
        """Whether no row of another table can be taken for one of this: reports are compressed, with a checksum."""
        return self.name == "report"

    def read_row(self, rowid: int | None, values: Sequence[Value]) -> dict[str, Value]:
        """Return a record as a row by column. Raises DamagedPageError if it cannot be one."""
        missing = self.columns[len(values) :]
        if not 0 < len(values) <= len(self.columns) or not all(column.is_optional for column in missing):
            raise DamagedPageError("a row has too many or too few values")
        row: dict[str, Value] = {}
        for place, (column, value) in enumerate(zip(self.columns, values, strict=False)):
            if place == self.rowid_column:
                if value is not None:
                    raise DamagedPageError("a row has two numbers")
                value = rowid
            elif not _is_allowed(column, value):
                raise DamagedPageError(f"a value of the column {column.name} has another type")
            row[column.name] = value
        self._check_content(row)
        return row

    def _check_content(self, row: Mapping[str, Value]) -> None:
        """Raise DamagedPageError for texts that are no JSON where there must be some, and for damaged reports."""
        try:
            for name in _JSON_COLUMNS.get(self.name, ()):
                value = row.get(name)
                if isinstance(value, str):
                    json.loads(value)
            body = row.get("body")
            if self.name == "report" and isinstance(body, bytes):
                codec.decode_document(body)["placed"]
        except (ValueError, TypeError, KeyError, zlib.error) as error:
            raise DamagedPageError(f"a value is damaged: {error}") from None


def _is_allowed(column: Column, value: Value) -> bool:
    if value is None:
        return column.is_nullable
    return not column.type or isinstance(value, _TYPES.get(column.type, (object,)))


def read_shapes(db: sqlite3.Connection) -> dict[str, Shape]:
    """Return the shapes of all tables and indexes of a sound store, by name."""
    shapes: dict[str, Shape] = {}
    for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage").fetchall():
        shapes[name] = _table_shape(db, name, sql)
        columns = {row[0]: Column(row[1], row[2], not row[3]) for row in db.execute(f"PRAGMA table_info({name})")}
        columns[-1] = Column("rowid", "INTEGER", False)
        columns[-2] = Column("expression", "", True)
        for index in [row[1] for row in db.execute(f"PRAGMA index_list({name})")]:
            cids = [row[1] for row in db.execute(f"PRAGMA index_xinfo({index})")]
            shapes[index] = Shape(index, name, tuple(columns[cid] for cid in cids), False)
    return {name: shapes[name] for (name,) in db.execute("SELECT name FROM sqlite_master WHERE rootpage")}


def _table_shape(db: sqlite3.Connection, name: str, sql: str) -> Shape:
    rows = db.execute(f"PRAGMA table_info({name})").fetchall()
    has_rowids = "WITHOUT ROWID" not in sql.upper()
    if not has_rowids:  # the key comes first (https://sqlite.org/fileformat2.html, section 2.4)
        rows = sorted((row for row in rows if row[5]), key=lambda row: row[5]) + [row for row in rows if not row[5]]
    keys = [place for place, row in enumerate(rows) if row[5]]
    rowid_column = keys[0] if has_rowids and len(keys) == 1 and rows[keys[0]][2] == "INTEGER" else None
    columns = tuple(
        Column(name, kind, not (not_null or (key and not has_rowids)), not not_null or default is not None)
        for _, name, kind, not_null, default, key in rows
    )
    return Shape(name, name, columns, has_rowids, rowid_column)
