"""Connections to a file of SQLite, one per thread, and the one way to write: BEGIN IMMEDIATE, all or nothing.

The standard library's sqlite3 reads and writes, because an ingest must be fast. sqlite-utils, which takes a tenth of a
second to import, only creates and migrates the tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from triage.base.errors import StoreError
from triage.store.interface import Dialect, Row, Transaction, Values
from triage.store.sqlite_text import SqliteText
from triage.store.store_errors import OTHER_FILE, explain_error, explain_read_only

BUSY_SECONDS = 30.0
POLL_SECONDS = 0.25
APPLICATION = 0x74726961  # "tria": marks our files among those of other programs
_SHARED = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p")

DIALECT = Dialect(
    name="sqlite",
    like="LIKE",
    by_time="INDEXED BY incident_at",
    by_scan="NOT INDEXED",
    within_few="IN ({})",
    skip_locked="",
    whole="CAST({} AS INTEGER)",
    defer_references="PRAGMA defer_foreign_keys = ON",
    text=SqliteText(),
    schema="'main'",
    is_remote=False,
)


class SqliteConnections:
    """The store's file, with one connection per thread. `read` and `write` work in every thread.

    With `read_only` nothing is written, also where the file could be.
    """

    dialect = DIALECT
    bad_value_errors: tuple[type[Exception], ...] = (sqlite3.IntegrityError, sqlite3.OperationalError)
    damage_errors: tuple[type[Exception], ...] = (sqlite3.DatabaseError,)

    def __init__(self, path: Path, *, create: bool = True, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self.writable = not read_only
        if create and not read_only:
            _create_file(path)
        elif not path.exists():
            raise StoreError(
                "the store does not exist",
                hint="`triage ingest PATH` creates it; --store FILE names another one",
                path=str(path),
            )

    @property
    def location(self) -> Path:
        """The file."""
        return self.path

    def get(self) -> sqlite3.Connection:
        """Return this thread's connection, opened at its first use."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None and self._is_outdated():
            self._discard(connection)
            connection = None
        if connection is None:
            with self.translate_errors():
                connection = self._local.connection = self._open()
            with self._lock:
                self._all.append(connection)
        return connection

    def read(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows of a query."""
        with self.translate_errors():
            return self.get().execute(sql, values).fetchall()

    def read_one(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row of a query, or None."""
        rows = self.read(sql, values)
        return rows[0] if rows else None

    @contextmanager
    def write(self, *, serial: bool = True) -> Iterator[Transaction]:
        """Open the only kind of write transaction: all is stored at the end of the block, nothing if it raises.

        A block inside a block belongs to the outer one. All are serial: a file has one writer at a time.
        """
        connection = self.get()
        if connection.in_transaction:
            yield connection
            return
        if not self.writable:
            raise explain_read_only(self.path)
        with self.translate_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has already rolled it back
                    connection.execute("ROLLBACK")
                raise

    def execute(self, sql: str, values: Values = (), *, serial: bool = True) -> int:
        """Execute one statement in a write transaction; return the number of rows that it changed."""
        with self.write(serial=serial) as db:
            return db.execute(sql, values).rowcount

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """Open a transaction that reads one state of the store, however long it takes."""
        connection = self.get()
        with self.translate_errors():
            connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")

    def data_version(self) -> tuple[object, ...]:
        """Return what changes with every commit of another connection than this thread's."""
        with self.translate_errors():
            count = self.get().execute("PRAGMA data_version").fetchone()[0]
        return self._local.state, count

    def schema_version(self) -> int:
        """Return how many steps of the migration were applied."""
        with self.translate_errors():
            return int(self.get().execute("PRAGMA user_version").fetchone()[0])

    def size_bytes(self) -> int:
        """Return the bytes of the file and of its log."""
        return sum(path.stat().st_size for path in (self.path, Path(f"{self.path}-wal")) if path.exists())

    def spent_seconds(self) -> float:
        """Return the processor time of this thread: a file is read by the thread itself."""
        return time.thread_time()

    def wait_for_change(self, table: str, seconds: float) -> None:
        """Sleep: a file tells nobody that it has changed, so whoever waits looks again soon."""
        time.sleep(min(seconds, POLL_SECONDS))

    def before_copy(self, db: Transaction) -> bool:
        """Do nothing: triggers write the sums while the rows are copied."""
        return False

    def after_copy(self, db: Transaction, *, is_bulk: bool) -> None:
        """Do nothing: SQLite's next number follows the highest one."""

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for connection in self._all:
                with suppress(sqlite3.Error):
                    connection.close()
            self._all.clear()
        self._local = threading.local()

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise errors of SQLite as StoreError, with what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise explain_error(error, self.path) from error

    def _open(self) -> sqlite3.Connection:
        can_write = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        self.writable = can_write and not self._read_only
        mode = "rw" if self.writable else "ro"
        self._local.state = None
        if not can_write and not self._log_size():
            # In a read-only directory SQLite cannot create its shared memory. Without a write-ahead log the file alone
            # is complete, until somebody else writes it.
            mode = "ro&immutable=1"
            self._local.state = self._file_state()
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        if self.writable:
            connection.execute("PRAGMA synchronous = FULL")  # stored data survives a power cut
            connection.execute("PRAGMA secure_delete = ON")  # deleted text leaves no bytes in unused pages
        return connection

    def _log_size(self) -> int:
        with suppress(OSError):
            return os.stat(f"{self.path}-wal").st_size
        return 0

    def _file_state(self) -> tuple[int, ...] | None:
        """Return what changes when another process writes the file."""
        with suppress(OSError):
            status = os.stat(self.path)
            return status.st_ino, status.st_size, status.st_mtime_ns, self._log_size()
        return None

    def _is_outdated(self) -> bool:
        """Whether the file changed below a connection that takes it for unchangeable."""
        state = getattr(self._local, "state", None)
        return state is not None and state != self._file_state()

    def _discard(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            self._all.remove(connection)
        with suppress(sqlite3.Error):
            connection.close()
        self._local.connection = None


def _create_file(path: Path) -> None:
    """Create an empty file that only its owner may read, if there is none."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(f"the store cannot be created: {error.strerror}", hint=OTHER_FILE, path=str(path)) from None


def is_network_file(path: Path) -> bool:
    """Whether the file is on a network file system, where SQLite's write-ahead log lacks shared memory."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    real = os.path.realpath(path.parent)
    best, kind = "", ""
    for line in mounts:
        left, _, right = line.partition(" - ")
        parts = left.split()
        if (
            len(parts) > 4
            and right
            and (real == parts[4] or real.startswith(parts[4].rstrip("/") + "/"))
            and len(parts[4]) >= len(best)
        ):
            best, kind = parts[4], right.split()[0]
    return kind in _SHARED
