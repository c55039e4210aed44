"""The file: made for its owner only, written all or nothing, and every failure of it is a sentence with the next step."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from tests.store.making import known
from triage.base.errors import OptionError, StoreError
from triage.store import Store, place


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    """Logs of others are nobody's business."""
    with Store.open(tmp_path / "new" / "triage.db") as store:
        assert stat.S_IMODE(store.connections.path.stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The option, the variable, the data directory, in this order; a directory stands for a file in it."""
    assert place() is None
    assert place(tmp_path) == tmp_path / "triage.db"
    monkeypatch.setenv("TRIAGE_STORE", str(tmp_path / "x.db"))
    assert place() == tmp_path / "x.db"
    assert place("y.db") == Path("y.db")
    monkeypatch.setenv("TRIAGE_STORE", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert place() == tmp_path / "triage" / "triage.db"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert place() == Path("/home/somebody/.local/share/triage/triage.db")


def test_off_is_no_store() -> None:
    """TRIAGE_STORE=off, as in these tests, is an error for those who need a store."""
    with pytest.raises(OptionError, match="TRIAGE_STORE is off"):
        Store.open()


def test_nothing_is_made_for_those_who_only_read(tmp_path: Path) -> None:
    """Without `create` a store that is not there is an error, and is still not there."""
    with pytest.raises(StoreError, match="no store yet"):
        Store.open(tmp_path / "triage.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_nothing(store: Store) -> None:
    """An error in the middle of a write takes back all of it."""

    def fail() -> None:
        with store.connections.write() as db:
            db.execute("INSERT INTO setting VALUES ('a', '1')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.connections.read("SELECT * FROM setting") == []


def test_threads_have_their_own_connections(store: Store) -> None:
    """Writers in threads wait for each other, and all of it is stored."""
    threads = [threading.Thread(target=lambda n=n: store.incidents.add(known(f"job {n}"))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.search.count() == 8


@pytest.mark.parametrize("content", [b"\0" * 4096, b"not a database, but long enough to be looked at " * 20])
def test_a_file_that_is_no_store(tmp_path: Path, content: bytes) -> None:
    """Refused, and left as it is."""
    path = tmp_path / "triage.db"
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        Store.open(path)
    assert caught.value.hint
    assert path.read_bytes() == content


def test_a_database_of_another_program(tmp_path: Path) -> None:
    """It is not ours to write into."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(StoreError, match="another program"):
        Store.open(path)


def test_a_damaged_store(tmp_path: Path) -> None:
    """Pages of noise in the middle are told as damage, with the next step."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        for number in range(50):
            store.incidents.add(known(f"job {number}"))
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[8192 : len(data) - 8192] = os.urandom(len(data) - 16384)
    path.write_bytes(data)

    def use() -> None:
        with Store.open(path) as store:
            for number in range(50):
                store.incidents.get(known(f"job {number}").job.id)
                store.incidents.add(known(f"more {number}"))

    with pytest.raises(StoreError) as caught:
        use()
    assert "damaged" in caught.value.message
    assert "db check" in caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_may_not_be_written(tmp_path: Path) -> None:
    """It can be read; writing says what to do."""
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        stored = store.incidents.add(known("a"))
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        with Store.open(path, create=False) as store:
            assert store.incidents.get(stored.id).incident.id == stored.id
            with pytest.raises(StoreError, match="may not be written"):
                store.incidents.add(known("b"))
    finally:
        tmp_path.chmod(0o700)


def test_a_busy_store_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits too long is told that another holds it."""
    monkeypatch.setattr("triage.store.connection.BUSY_SECONDS", 0.05)
    path = tmp_path / "triage.db"
    with (
        Store.open(path) as one,
        Store.open(path) as other,
        one.connections.write(),
        pytest.raises(StoreError, match="has held"),
    ):
        other.incidents.add(known("a"))
