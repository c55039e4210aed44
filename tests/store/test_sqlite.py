"""triage.store.sqlite"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from tests.store.factories import known_diagnosis
from triage.base.errors import OptionError, StoreError
from triage.store import Store, store_location

pytestmark = pytest.mark.sqlite_only


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    """The file's mode is 0600."""
    with Store.open(tmp_path / "new" / "triage.db") as store:
        assert stat.S_IMODE(store.connections.path.stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_path_of_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The option, the variable and the data directory apply in this order; a directory means a file in it."""
    assert store_location() is None
    assert store_location(tmp_path) == tmp_path / "triage.db"
    monkeypatch.setenv("TRIAGE_STORE", str(tmp_path / "x.db"))
    assert store_location() == tmp_path / "x.db"
    assert store_location("y.db") == Path("y.db")
    monkeypatch.setenv("TRIAGE_STORE", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert store_location() == tmp_path / "triage" / "triage.db"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert store_location() == Path("/home/somebody/.local/share/triage/triage.db")


def test_off_means_no_store() -> None:
    """With TRIAGE_STORE=off, opening the store is an error."""
    with pytest.raises(OptionError, match="TRIAGE_STORE is off"):
        Store.open()


def test_reading_creates_no_store(tmp_path: Path) -> None:
    """Without `create` a missing store is an error and is not created."""
    with pytest.raises(StoreError, match="does not exist"):
        Store.open(tmp_path / "triage.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_nothing(store: Store) -> None:
    """An error within a write rolls back all of it."""

    def fail() -> None:
        with store.connections.write() as db:
            db.execute("INSERT INTO setting VALUES ('a', '1')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.connections.read("SELECT * FROM setting") == []


def test_threads_have_their_own_connections(store: Store) -> None:
    """Writers in threads wait for each other, and all rows are stored."""
    threads = [threading.Thread(target=lambda n=n: store.incidents.add(known_diagnosis(f"job {n}"))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.search.count_incidents() == 8


@pytest.mark.parametrize("content", [b"\0" * 4096, b"not a database, but long enough to be looked at " * 20])
def test_a_file_that_is_not_a_store(tmp_path: Path, content: bytes) -> None:
    """Such a file is an error and stays unchanged."""
    path = tmp_path / "triage.db"
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        Store.open(path)
    assert caught.value.hint
    assert path.read_bytes() == content


def test_a_database_of_another_program(tmp_path: Path) -> None:
    """Such a database is an error and stays unchanged."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(StoreError, match="another program"):
        Store.open(path)


def test_a_damaged_store(tmp_path: Path) -> None:
    """Noise in the middle of the file is reported as damage, with what to do."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        for number in range(50):
            store.incidents.add(known_diagnosis(f"job {number}"))
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[8192 : len(data) - 8192] = os.urandom(len(data) - 16384)
    path.write_bytes(data)

    def use() -> None:
        with Store.open(path) as store:
            for number in range(50):
                store.incidents.get(known_diagnosis(f"job {number}").job.id)
                store.incidents.add(known_diagnosis(f"more {number}"))

    with pytest.raises(StoreError) as caught:
        use()
    assert "damaged" in caught.value.message
    assert "db check" in caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_store(tmp_path: Path) -> None:
    """It can be read; the error of a write says what to do."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        stored = store.incidents.add(known_diagnosis("a"))
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        with Store.open(path, create=False) as store:
            assert store.incidents.get(stored.id).incident.id == stored.id
            with pytest.raises(StoreError, match="is read-only"):
                store.incidents.add(known_diagnosis("b"))
    finally:
        tmp_path.chmod(0o700)


def test_a_busy_store_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error after too long a wait says that another process has locked the store."""
    monkeypatch.setattr("triage.store.sqlite.BUSY_SECONDS", 0.05)
    path = tmp_path / "triage.db"
    with (
        Store.open(path) as one,
        Store.open(path) as other,
        one.connections.write(),
        pytest.raises(StoreError, match="has locked"),
    ):
        other.incidents.add(known_diagnosis("a"))
