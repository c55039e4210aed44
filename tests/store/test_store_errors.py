"""triage.store.store_errors: each error names its real cause and says what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.store.factories import known_diagnosis
from triage.base.errors import ReadOnlyStoreError, StoreError
from triage.store import Store, store_errors

pytestmark = pytest.mark.sqlite_only
ROOT = Path(__file__).resolve().parents[2]
LIMITED_WRITER = """
import resource, signal, sys
from tests.store.factories import known_diagnosis
from triage.base.errors import StoreError
from triage.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Store.open(sys.argv[1]) as store:
    stored = store.incidents.add(known_diagnosis("first"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
    try:
        for number in range(10_000):
            store.incidents.add(known_diagnosis(f"job {number}"))
    except StoreError as error:
        print(error.message, "| try:", error.hint)
    print(store.incidents.get(stored.id).incident.id == stored.id)
"""
LOCKER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


def sqlite_error(name: str) -> sqlite3.Error:
    """Return an error as SQLite raises it."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = name
    return error


def test_a_file_at_its_size_limit(tmp_path: Path) -> None:
    """SQLite reports an I/O error; the message names the limit, and what was stored is there."""
    command = [sys.executable, "-c", LIMITED_WRITER, str(tmp_path / "triage.db"), str(900_000)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    message, is_there = done.stdout.splitlines()
    assert message.startswith("the file reached the largest size that this process may write"), done.stderr
    assert "ulimit -f" in message
    assert is_there == "True"


@pytest.mark.parametrize("name", ["SQLITE_IOERR_WRITE", "SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"])
@pytest.mark.parametrize(
    ("code", "message"), [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk quota is used up")]
)
def test_a_full_disk_is_called_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, message: str
) -> None:
    """Whatever SQLite calls it, a disk that takes no bytes is full, and free space is the way out."""

    def refuse(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    error = store_errors.explain_error(sqlite_error(name), tmp_path / "triage.db")
    assert error.message.startswith(message)
    assert "free some space" in error.hint


def test_a_failing_disk_is_not_called_full(tmp_path: Path) -> None:
    """An I/O error on a disk with space says to check the disk."""
    error = store_errors.explain_error(sqlite_error("SQLITE_IOERR_READ"), tmp_path / "triage.db")
    assert error.message.startswith("the disk failed")
    assert "dmesg" in error.hint


@pytest.mark.parametrize("name", ["SQLITE_CORRUPT", "SQLITE_CORRUPT_INDEX", "SQLITE_NOTADB"])
def test_damage_names_the_salvage(tmp_path: Path, name: str) -> None:
    """The hint of every kind of damage is the command that reads what is left."""
    error = store_errors.explain_error(sqlite_error(name), tmp_path / "triage.db")
    assert "triage db export --salvage" in error.hint


def test_a_locked_store_names_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint has the number and name of the process that holds the lock."""
    monkeypatch.setattr("triage.store.sqlite.BUSY_SECONDS", 0.05)
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        command = [sys.executable, "-c", LOCKER, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as locker:
            assert locker.stdout is not None
            assert locker.stdout.readline() == "locked\n"
            with pytest.raises(StoreError, match="another process has locked the store") as caught:
                store.incidents.add(known_diagnosis("a"))
            locker.communicate()
        assert f"the process {locker.pid} (python" in caught.value.hint or "fuser" in caught.value.hint
        assert store.incidents.add(known_diagnosis("a")).is_new


def test_a_store_opened_for_reading(tmp_path: Path) -> None:
    """It reads, sees what others write, and a write is an error of its own class."""
    path = tmp_path / "triage.db"
    with Store.open(path) as writer, Store.open(path, read_only=True) as reader:
        assert reader.search.count_incidents() == 0
        writer.incidents.add(known_diagnosis("a"))
        assert reader.search.count_incidents() == 1
        with pytest.raises(ReadOnlyStoreError, match="it was opened for reading"):
            reader.incidents.add(known_diagnosis("b"))
    with pytest.raises(StoreError, match="does not exist"):
        Store.open(tmp_path / "missing.db", read_only=True)


@pytest.mark.parametrize(("file", "directory", "text"), [(0o400, 0o700, "this file"), (0o600, 0o500, "its directory")])
def test_what_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: int, directory: int, text: str
) -> None:
    """The message says whether it is the file or its directory, also where the tests run as root."""
    path = tmp_path / "place" / "triage.db"
    with Store.open(path) as store:
        store.incidents.add(known_diagnosis("a"))
    modes = {path: file, path.parent: directory}
    monkeypatch.setattr(os, "access", lambda item, mode: bool(modes.get(Path(item), 0o700) & mode << 6))
    with Store.open(path) as store:
        assert not store.connections.writable
        assert store.search.count_incidents() == 1
        with pytest.raises(ReadOnlyStoreError, match=f"you may not write {text}") as caught:
            store.incidents.add(known_diagnosis("b"))
    assert "--no-store" in caught.value.hint


def test_a_read_only_store_that_somebody_else_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that took the file for unchangeable is opened again when the file changes."""
    path = tmp_path / "triage.db"
    with Store.open(path) as writer:
        writer.incidents.add(known_diagnosis("a"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
        reader = Store.open(path)
        assert reader.search.count_incidents() == 1
    with reader:
        version = reader.service_data.get_data_version()
        with Store.open(path) as writer:
            writer.incidents.add(known_diagnosis("b"))
        assert reader.search.count_incidents() == 2
        assert reader.service_data.get_data_version() != version


def test_a_store_that_was_moved(tmp_path: Path) -> None:
    """A file that is gone while it is open is not called read-only."""
    error = store_errors.explain_error(sqlite_error("SQLITE_READONLY_DBMOVED"), tmp_path / "triage.db")
    assert "moved or deleted" in error.message


def test_a_store_that_may_not_be_opened(tmp_path: Path) -> None:
    """The hint names the file and asks who may read and write it."""
    error = store_errors.explain_error(sqlite_error("SQLITE_CANTOPEN"), tmp_path / "triage.db")
    assert error.message.startswith("the store cannot be opened")
    assert str(tmp_path / "triage.db") in error.hint


def test_an_error_that_is_not_listed_is_quoted(tmp_path: Path) -> None:
    """What SQLite said is not lost, and the hint is the check of the file."""
    error = store_errors.explain_error(sqlite_error("SQLITE_NOLFS"), tmp_path / "triage.db")
    assert "disk I/O error" in error.message
    assert "triage db check" in error.hint


@pytest.mark.parametrize(("flag", "says"), [(os.ST_RDONLY, "mounted read-only"), (0, "it was opened for reading")])
def test_a_file_system_that_is_mounted_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: int, says: str
) -> None:
    """SQLite's refusal to write is traced to the mount, and to nothing else where that is writable."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flag))
    error = store_errors.explain_error(sqlite_error("SQLITE_READONLY"), tmp_path / "triage.db")
    assert says in error.message


def test_what_is_read_only_where_nothing_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without statvfs and an owner without a name do not stop the message."""
    path = tmp_path / "triage.db"
    path.touch()

    def refuse(*_: object) -> None:
        raise KeyError("uid not found: 54321")

    def fail(_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "statvfs", fail)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(Path, "owner", refuse)
    error = store_errors.explain_read_only(path)
    assert "you may not write this file" in error.message
    assert "become its owner" in error.hint


def test_a_lock_whose_owner_the_system_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where /proc/locks cannot be read, the hint is the command that names the process."""

    def refuse(*_: object, **__: object) -> str:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "read_text", refuse)
    assert "fuser" in store_errors.explain_error(sqlite_error("SQLITE_BUSY"), tmp_path / "triage.db").hint
