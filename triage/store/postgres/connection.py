"""Connections to a database of PostgreSQL, and its transactions.

A serial write transaction first takes an advisory lock, so that there is one at a time, as in SQLite: what it read
stays true until it ends. Others only need their rows. Reading never waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import pq

from triage.base.errors import StoreError
from triage.store.interface import Cursor, Dialect, Row, Transaction, Values
from triage.store.location import DatabaseUrl
from triage.store.postgres import bulk_copy
from triage.store.postgres.errors import (
    explain_error,
    explain_read_only,
    explain_unknown_commit,
    is_lost_connection,
)
from triage.store.postgres.listener import Listener
from triage.store.postgres.pool import Pool
from triage.store.postgres.statements import translate
from triage.store.postgres.text import PostgresText
from triage.store.postgres.values import adapt_values, make_row_maker

POOL_SIZE = 10
CONNECT_SECONDS = 5
START_SECONDS = 10.0  # a server that starts is waited for
LOCK_SECONDS = 30
IDLE_TRANSACTION_SECONDS = 60  # a machine that vanished in a transaction holds the lock no longer than this
LOCK = 0x74726961  # "tria"
DIALECT = Dialect(
    name="postgres",
    like="ILIKE",
    by_time="",
    by_scan="",
    within_few="= ANY (ARRAY({}))",
    skip_locked="FOR UPDATE SKIP LOCKED",
    whole="CAST(trunc({}) AS BIGINT)",
    defer_references="SET CONSTRAINTS ALL DEFERRED",
    text=PostgresText(),
    schema="current_schema()",
    is_remote=True,
)
_OPTIONS = (
    f"SET lock_timeout = '{LOCK_SECONDS}s'; SET idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_SECONDS}s'; "
    "SET jit = off"  # compiling a query takes longer than any of ours
)
_CONDITION = (
    "SELECT current_setting('transaction_read_only') = 'off' AND coalesce("
    "has_table_privilege(to_regclass('incident'), 'INSERT'), TRUE), current_schema()"
)
T = TypeVar("T")


class PostgresTransaction:
    """An open transaction, which takes the same statements as SQLite does."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Values = (), /) -> Cursor:
        """Execute a statement."""
        return self._connection.execute(translate(sql), values)

    def executemany(self, sql: str, values: Any, /) -> Cursor:
        """Execute a statement for each of many values."""
        cursor = self._connection.cursor()
        cursor.executemany(translate(sql), list(values))
        return cursor


class PostgresConnections:
    """A database, with a pool of connections for all threads. With `read_only` nothing is written."""

    dialect = DIALECT
    bad_value_errors: tuple[type[Exception], ...] = (
        psycopg.IntegrityError,
        psycopg.DataError,
        psycopg.ProgrammingError,
    )
    damage_errors: tuple[type[Exception], ...] = ()

    def __init__(self, location: DatabaseUrl, *, read_only: bool = False) -> None:
        self._location = location
        self._local = threading.local()
        self._pool = Pool(self._connect, POOL_SIZE)
        self._version_pool = Pool(self._connect, 1)  # asked for every request: it must not wait for long queries
        self._listener = Listener(self._connect)
        can_write, schema = self.read(_CONDITION)[0]
        if schema is None:
            self.close()
            hint = "create it, or name another one: ?options=-csearch_path%3DNAME"
            raise StoreError("the schema of the store does not exist", hint=hint, path=str(location))
        self.writable = bool(can_write) and not read_only

    @property
    def location(self) -> DatabaseUrl:
        """The database; as text without a password."""
        return self._location

    def read(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows of a query. On a connection that broke meanwhile, it is asked again on another one."""
        statement = translate(sql)
        return self._run(lambda connection: connection.execute(statement, values).fetchall())

    def read_one(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row of a query, or None."""
        rows = self.read(sql, values)
        return rows[0] if rows else None

    @contextmanager
    def write(self, *, serial: bool = True) -> Iterator[Transaction]:
        """Open a write transaction: all is stored at the end of the block, nothing if it raises.

        A block inside a block belongs to the outer one. There is one serial transaction at a time.
        """
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            if serial and not self._local.serial:
                raise AssertionError("a serial transaction inside one that is not: it could wait for itself")
            yield PostgresTransaction(connection)
            return
        if not self.writable:
            raise explain_read_only(self._location)
        with self._transaction(serial) as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, serial: bool) -> Iterator[Transaction]:
        begin = f"BEGIN; SELECT pg_advisory_xact_lock({LOCK})" if serial else "BEGIN"
        connection = self._take(begin)
        self._local.connection, self._local.serial = connection, serial
        try:
            with self.translate_errors():
                yield PostgresTransaction(connection)
            self._commit(connection)
        except StoreError as error:
            if isinstance(error.__cause__, psycopg.Error) and is_lost_connection(error.__cause__):
                connection.close()
            raise
        finally:
            self._local.connection = None
            if not connection.closed and connection.info.transaction_status != pq.TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
            self._pool.give_back(connection)

    def _take(self, first: str) -> psycopg.Connection[Any]:
        """Return a connection after its first statement; if it broke while nobody used it, another one."""
        for attempt in (1, 2):
            with self.translate_errors(is_connecting=True):
                connection = self._pool.take()
            try:
                connection.execute(first)
                return connection
            except psycopg.Error as error:
                self._pool.give_back(connection)
                if attempt == 2 or not is_lost_connection(error):
                    raise explain_error(error, self._location) from error
                self._pool.drop_idle()
        raise AssertionError

    def _commit(self, connection: psycopg.Connection[Any]) -> None:
        try:
            result = connection.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            if is_lost_connection(error):
                raise explain_unknown_commit(error, self._location) from error
            raise explain_error(error, self._location) from error
        if result != "COMMIT":  # somebody caught the error of a statement, after which the server stores nothing
            hint = "this is a bug of triage; report it with the server's log"
            raise StoreError("a statement failed, so nothing of this was stored", hint=hint, path=str(self._location))

    def execute(self, sql: str, values: Values = (), *, serial: bool = True) -> int:
        """Execute one statement in a write transaction; return the number of rows that it changed."""
        with self.write(serial=serial) as db:
            return db.execute(sql, values).rowcount

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """Open a transaction that reads one state of the store, however long it takes."""
        connection = self._take("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            with self.translate_errors():
                connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                yield PostgresTransaction(connection)
        finally:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            self._pool.give_back(connection)

    def data_version(self) -> tuple[object, ...]:
        """Return what changes with every commit in this database server: what a new transaction would see."""
        sql = "SELECT CAST(pg_current_snapshot() AS TEXT)"
        row = self._run(lambda connection: connection.execute(sql).fetchone(), self._version_pool)
        return (row[0] if row is not None else None,)

    def schema_version(self) -> int:
        """Return how many steps of the migration were applied; 0 where there is no store."""
        row = self.read_one("SELECT to_regclass('schema_version') IS NOT NULL")
        if row is None or not row[0]:
            return 0
        row = self.read_one("SELECT max(version) FROM schema_version")
        return int(row[0] or 0) if row is not None else 0

    def size_bytes(self) -> int:
        """Return the bytes of the tables and indexes of the store's schema."""
        row = self.read_one(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = CAST(current_schema() AS regnamespace)"
        )
        return int(row[0]) if row is not None else 0

    def spent_seconds(self) -> float:
        """Return the processor time of this thread and the time that its queries have taken."""
        return time.thread_time() + getattr(self._local, "waited", 0.0)

    def wait_for_change(self, table: str, seconds: float) -> None:
        """Return when the server reports new work in `table`, at the latest after so many seconds."""
        with self.translate_errors(is_connecting=True):
            self._listener.wait(f"triage_{table}", seconds)

    def before_copy(self, db: Transaction) -> bool:
        """Stop the triggers that keep sums; return whether they stand."""
        return bulk_copy.stop_triggers(db)

    def after_copy(self, db: Transaction, *, is_bulk: bool) -> None:
        """Make new rows follow the numbers of copied ones; compute the sums if the triggers did not."""
        if is_bulk:
            bulk_copy.compute_sums(db)
        columns = db.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND is_identity = 'YES'"
        ).fetchall()
        for table, column in columns:
            db.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), "
                f"coalesce((SELECT max({column}) FROM {table}), 0) + 1, FALSE)"
            )

    def close(self) -> None:
        """Close the connections that no transaction uses; the next use opens others."""
        self._pool.drop_idle()
        self._version_pool.drop_idle()
        self._listener.close()

    @contextmanager
    def translate_errors(self, *, is_connecting: bool = False) -> Iterator[None]:
        """Raise errors of PostgreSQL as StoreError, with what to do."""
        try:
            yield
        except psycopg.Error as error:
            raise explain_error(error, self._location, is_connecting=is_connecting) from error

    def _run(self, query: Callable[[psycopg.Connection[Any]], T], pool: Pool | None = None) -> T:
        """Run a query in this thread's transaction, or by itself on a connection of the pool."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            with self.translate_errors():
                return query(connection)
        pool, began = pool or self._pool, time.monotonic()
        try:
            return self._ask_twice(query, pool)
        finally:
            self._local.waited = getattr(self._local, "waited", 0.0) + time.monotonic() - began

    def _ask_twice(self, query: Callable[[psycopg.Connection[Any]], T], pool: Pool) -> T:
        for attempt in (1, 2):
            with self._borrow(pool) as connection:
                try:
                    return query(connection)
                except psycopg.Error as error:
                    if attempt == 2 or not is_lost_connection(error):
                        raise explain_error(error, self._location) from error
                    connection.close()
            pool.drop_idle()  # all of them broke with this one; a query is safe to ask again
        raise AssertionError

    @contextmanager
    def _borrow(self, pool: Pool) -> Iterator[psycopg.Connection[Any]]:
        with self.translate_errors(is_connecting=True):
            connection = pool.take()
        try:
            yield connection
        finally:
            pool.give_back(connection)

    def _connect(self) -> psycopg.Connection[Any]:
        """Return a new connection, after a server that starts is ready."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                connection = psycopg.connect(
                    self._location.url,
                    autocommit=True,
                    connect_timeout=CONNECT_SECONDS,
                    application_name="triage",
                    row_factory=make_row_maker,
                )
                break
            except psycopg.OperationalError as error:
                if "starting up" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)
        try:
            adapt_values(connection)
            connection.execute(_OPTIONS)
        except BaseException:
            connection.close()
            raise
        return connection
