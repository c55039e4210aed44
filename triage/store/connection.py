"""Connections to the file, one a thread, and the one way to write: BEGIN IMMEDIATE, all or nothing.

The standard library's sqlite3 does the reading and writing, for an ingest shall not pay for more; sqlite-utils, which
takes a tenth of a
second to import, builds and migrates the tables.
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
APPLICATION = 0x74726961  # "tria": tells our files from those of other programs
_SHARED = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p")
_NEW = "give --store another file, or --no-store to go on without one"

Row = sqlite3.Row


class Connections:
    """The store's file. `read` and `write` work in every thread; each thread has a connection of its own."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self.writable = True
        if create:
            _make(path)
        elif not path.exists():
            raise StoreError(
                "there is no store yet",
                hint="`triage ingest PATH` makes one; --store FILE names another",
                path=str(path),
            )

    def get(self) -> sqlite3.Connection:
        """This thread's connection, opened by its first use."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            with self.told():
                found = self._local.connection = self._open()
            with self._lock:
                self._all.append(found)
        return found

    def read(self, sql: str, arguments: Sequence[Any] | dict[str, Any] = ()) -> list[Row]:
        """All rows of a query."""
        with self.told():
            return self.get().execute(sql, arguments).fetchall()

    def one(self, sql: str, arguments: Sequence[Any] | dict[str, Any] = ()) -> Row | None:
        """The first row of a query."""
        rows = self.read(sql, arguments)
        return rows[0] if rows else None

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """The one way to write. All of it is stored when the block ends, nothing of it when the block raises or the
        process dies.

        A block inside a block belongs to the outer one.
        """
        connection = self.get()
        if connection.in_transaction:
            yield connection
            return
        with self.told():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for connection in self._all:
                with suppress(sqlite3.Error):
                    connection.close()
            self._all.clear()
        self._local = threading.local()

    @contextmanager
    def told(self) -> Iterator[None]:
        """What SQLite raises, as a sentence with the next step."""
        try:
            yield
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _open(self) -> sqlite3.Connection:
        self.writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        mode = "rw"
        if not self.writable:
            log = Path(f"{self.path}-wal")
            # Where nothing can be written, SQLite cannot keep its shared memory; without a log beside it the file alone
            # is the whole truth.
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
            connection.execute("PRAGMA synchronous = FULL")  # what was reported as stored survives a power cut too
        return connection


def _make(path: Path) -> None:
    """An empty file that only its owner may read, if there is none."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(f"cannot make the store: {error.strerror}", hint=_NEW, path=str(path)) from None


def shared(path: Path) -> bool:
    """Does the file lie on a network file system? There SQLite's write-ahead log, which needs shared memory, must not
    be used.
    """
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


def explained(error: sqlite3.Error, path: Path) -> StoreError:
    """The error in the words of this tree."""
    name = getattr(error, "sqlite_errorname", "") or ""
    said = str(error)
    for begins, message, hint in _KINDS:
        if name.startswith(begins):
            return StoreError(f"{message} ({said})", hint=hint, path=str(path))
    return StoreError(
        f"the store failed: {said}", hint="`triage db check` says whether the file is sound", path=str(path)
    )


_KINDS = (
    (
        "SQLITE_CORRUPT",
        "the store's file is damaged",
        "`triage db check` says more; `triage db export` saves what can be read, then move the file away",
    ),
    (
        "SQLITE_NOTADB",
        "this file is no store",
        "give --store the store's file, or move this file away and let triage make a new one",
    ),
    (
        "SQLITE_FULL",
        "the disk is full; nothing of this was stored",
        "make room, or give --store a file on another disk",
    ),
    ("SQLITE_READONLY", "the store may not be written", _NEW),
    ("SQLITE_BUSY", "another process has held the store for too long", "try again; `fuser FILE` names who holds it"),
    ("SQLITE_LOCKED", "another connection holds the store", "try again"),
    ("SQLITE_CANTOPEN", "the store cannot be opened", _NEW),
    (
        "SQLITE_IOERR",
        "the disk failed while the store was used",
        "look at the disk (dmesg, df), then run `triage db check`",
    ),
    ("SQLITE_PERM", "the store may not be used", _NEW),
    ("SQLITE_TOOBIG", "this is too big for the store", "ingest it with --no-store"),
)
