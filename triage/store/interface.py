"""What the store needs of a database, and where SQLite and PostgreSQL truly differ.

All statements are written once, in the SQL that both understand: `?` and `:name` for values, ON CONFLICT, RETURNING,
truths as 0 and 1. A `Dialect` has the few pieces that have no common form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from triage.store.location import StoreLocation

Row = Any
"""A row: values by name and by position, `keys()`, `dict(row)`; iteration yields the values."""
Values = Sequence[Any] | Mapping[str, Any]


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    @property
    def description(self) -> Any:
        """The columns, with the name first in each."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining rows."""


class Transaction(Protocol):
    """An open transaction. `sqlite3.Connection` is one."""

    def execute(self, sql: str, values: Any = ..., /) -> Cursor:
        """Execute a statement."""

    def executemany(self, sql: str, values: Any, /) -> Cursor:
        """Execute a statement for each of many values."""


class TextSearch(Protocol):
    """The full-text index of incidents."""

    def write_page(self, db: Transaction, num: int, title: str, names: str, body: str) -> None:
        """Write the indexed text of an incident, in place of its old one."""

    def condition(self, text: str) -> tuple[str, list[Any]]:
        """Return a condition on `i.num` for what a person typed, and its values."""

    def find(
        self,
        connections: Connections,
        columns: str,
        tables: str,
        text: str,
        limit: int,
        *,
        any_word: bool,
        last_is_open: bool,
    ) -> list[Row] | None:
        """Return rows of `columns` and `snippet`, best first; None when the text has no words.

        `tables` joins the tables of `columns`, with {} for the number of the incident.
        """


@dataclass(frozen=True, slots=True)
class Dialect:
    """Pieces of SQL that differ. `by_time` makes a list use the index on the time of incidents, `by_scan` none.

    `schema` is the name of the tables' schema. A query to a database that `is_remote` waits for a server. `among` is
    empty, or for a reader of a part a condition that a number of an incident, in place of {}, is visible.
    """

    name: str
    like: str  # compares without regard to case
    by_time: str
    by_scan: str
    within_few: str  # a value is among those of a query with few rows, which is executed first
    skip_locked: str  # leaves out rows that another transaction is about to change
    whole: str  # the whole number below a positive number
    defer_references: str  # rows may refer to later ones of the same transaction
    text: TextSearch
    schema: str
    is_remote: bool
    among: str = ""


class Connections(Protocol):
    """A database, for all threads.

    `bad_value_errors` are what a statement raises for values or columns that do not fit, `damage_errors` what reading
    raises where a part of the database is damaged.
    """

    dialect: Dialect
    bad_value_errors: tuple[type[Exception], ...]
    damage_errors: tuple[type[Exception], ...]

    @property
    def writable(self) -> bool:
        """Whether the store can be written."""

    @property
    def location(self) -> StoreLocation:
        """The file or the database; as text without a password."""

    def read(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows of a query."""

    def read_one(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row of a query, or None."""

    def write(self, *, serial: bool = True) -> AbstractContextManager[Transaction]:
        """Open a write transaction: all is stored at the end of the block, nothing if it raises.

        A block inside a block belongs to the outer one. There is one serial transaction at a time, so what it read
        stays true until it ends. One statement that touches rows of one table needs no `serial`.
        """

    def execute(self, sql: str, values: Values = (), *, serial: bool = True) -> int:
        """Execute one statement in a write transaction; return the number of rows that it changed."""

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that reads one state of the store, however long it takes."""

    def data_version(self) -> tuple[object, ...]:
        """Return what changes with every commit of another connection than this thread's."""

    def schema_version(self) -> int:
        """Return how many steps of the migration were applied."""

    def size_bytes(self) -> int:
        """Return the bytes that the store takes."""

    def spent_seconds(self) -> float:
        """Return the processor time of this thread and the time that it has waited for a server, from any begin."""

    def wait_for_change(self, table: str, seconds: float) -> None:
        """Return when `table` may have new work, at the latest after so many seconds. Only `task` reports it."""

    def before_copy(self, db: Transaction) -> bool:
        """Prepare an empty store for the rows of another one; return what `after_copy` must know."""

    def after_copy(self, db: Transaction, *, is_bulk: bool) -> None:
        """Make new rows follow the numbers of copied ones, and the sums those rows."""

    def translate_errors(self) -> AbstractContextManager[None]:
        """Raise errors of the database as StoreError, with what to do."""

    def close(self) -> None:
        """Close all connections; the next use opens others."""
