"""Connections to the store's file, one per thread, and the one way to write: BEGIN IMMEDIATE, all or nothing.

The standard library's sqlite3 reads and writes, because an ingest must be fast. sqlite-utils, which takes a tenth of a
second to import, only creates and migrates the tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from triage.base.errors import StoreError

BUSY_SECONDS = 30.0
APPLICATION = 0x74726961  # "tria": marks our files among those of other programs
_SHARED = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p")
_OTHER_FILE = "name another file with --store, or use --no-store to continue without a store"

Row = sqlite3.Row


class Connections:
    """The store's file, with one connection per thread. `read` and `write` work in every thread."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self.writable = True
        if create:
            _create_file(path)
        elif not path.exists():
            raise StoreError(
                "the store does not exist",
                hint="`triage ingest PATH` creates it; --store FILE names another one",
                path=str(path),
            )

    def get(self) -> sqlite3.Connection:
        """Return this thread's connection, opened at its first use."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            with self.translate_errors():
                connection = self._local.connection = self._open()
            with self._lock:
                self._all.append(connection)
        return connection

    def read(self, sql: str, arguments: Sequence[Any] | dict[str, Any] = ()) -> list[Row]:
        """Return all rows of a query."""
        with self.translate_errors():
            return self.get().execute(sql, arguments).fetchall()

    def read_one(self, sql: str, arguments: Sequence[Any] | dict[str, Any] = ()) -> Row | None:
        """Return the first row of a query, or None."""
        rows = self.read(sql, arguments)
        return rows[0] if rows else None

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open the only kind of write transaction: all is stored at the end of the block, nothing if it raises.

        A block inside a block belongs to the outer one.
        """
        connection = self.get()
        if connection.in_transaction:
            yield connection
            return
        with self.translate_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has already rolled it back
                    connection.execute("ROLLBACK")
                raise

    def execute(self, sql: str, arguments: Sequence[Any] = ()) -> int:
        """Execute one statement in a write transaction; return the number of rows that it changed."""
        with self.write() as db:
            return db.execute(sql, arguments).rowcount

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
        self.writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        mode = "rw"
        if not self.writable:
            log = Path(f"{self.path}-wal")
            # In a read-only directory SQLite cannot create its shared memory. Without a write-ahead log the file alone
            # is complete.
            mode = "ro" if log.exists() and log.stat().st_size else "ro&immutable=1"
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
        return connection


def _create_file(path: Path) -> None:
    """Create an empty file that only its owner may read, if there is none."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(f"the store cannot be created: {error.strerror}", hint=_OTHER_FILE, path=str(path)) from None


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


def explain_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the error as a StoreError with what to do."""
    name = getattr(error, "sqlite_errorname", "") or ""
    for prefix, message, hint in _KINDS:
        if name.startswith(prefix):
            return StoreError(f"{message} ({error})", hint=hint, path=str(path))
    return StoreError(f"the store failed: {error}", hint="run `triage db check` to check the file", path=str(path))


_KINDS = (
    (
        "SQLITE_CORRUPT",
        "the store's file is damaged",
        "run `triage db check` for details, save what can be read with `triage db export`, then move the file away",
    ),
    (
        "SQLITE_NOTADB",
        "this file is not a store",
        "name the store's file with --store, or move this file away so that triage creates a new one",
    ),
    (
        "SQLITE_FULL",
        "the disk is full; nothing of this was stored",
        "free some space, or name a file on another disk with --store",
    ),
    ("SQLITE_READONLY", "the store is read-only", _OTHER_FILE),
    ("SQLITE_BUSY", "another process has locked the store for too long", "try again; `fuser FILE` names the process"),
    ("SQLITE_LOCKED", "another connection has locked the store", "try again"),
    ("SQLITE_CANTOPEN", "the store cannot be opened", _OTHER_FILE),
    (
        "SQLITE_IOERR",
        "the disk failed",
        "check the disk (dmesg, df), then run `triage db check`",
    ),
    ("SQLITE_PERM", "permission denied for the store", _OTHER_FILE),
    ("SQLITE_TOOBIG", "this is too large for the store", "ingest it with --no-store"),
)
