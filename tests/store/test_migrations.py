"""triage.store.migrations: old stores are migrated, newer ones are errors, and each step is applied once."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.factories import inconclusive_diagnosis, known_diagnosis
from triage.base.errors import StoreError
from triage.store import Store, migrations
from triage.store.sqlite import SqliteConnections

pytestmark = pytest.mark.sqlite_only
OLD = sorted((Path(__file__).parent / "old").glob("*.db"), key=lambda path: int(path.stem[1:]))


def test_the_version_is_the_number_of_steps() -> None:
    """The version constant equals the number of steps."""
    assert len(migrations.STEPS) == migrations.VERSION


def test_every_old_version_has_a_store() -> None:
    """There is a store of each released version."""
    assert [path.stem for path in OLD] == [f"v{number}" for number in range(1, migrations.VERSION)]


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_old_stores_are_migrated(path: Path, tmp_path: Path) -> None:
    """A migrated store has its data and the schema of a new one."""
    shutil.copy(path, tmp_path / "triage.db")
    with Store.open(tmp_path / "triage.db") as store, Store.open(tmp_path / "new.db") as new:
        assert schema(store) == schema(new)
        assert store.search.search_text("shard")[0].incident.cluster == "u-7f3a9c"
        assert store.incidents.add(known_diagnosis("new")).is_new
        assert store.outbox.put("test", "a", "a", {})


def test_an_old_store_takes_an_inconclusive_diagnosis(tmp_path: Path) -> None:
    """After the fifth step the verdict `inconclusive` is stored and read, and the old incidents stay."""
    shutil.copy(OLD[-1], tmp_path / "triage.db")
    with Store.open(tmp_path / "triage.db") as store:
        before = store.search.count_incidents()
        stored = store.incidents.add(inconclusive_diagnosis("new"))
        assert store.incidents.get(stored.id).diagnosis.inconclusive == inconclusive_diagnosis("new").inconclusive
        assert store.search.count_incidents() == before + 1
        assert store.connections.read("PRAGMA integrity_check")[0][0] == "ok"


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_old_incidents_keep_their_ids(path: Path, tmp_path: Path) -> None:
    """A job with a digest of all its content is another incident than one that was known by the ends of its files."""
    shutil.copy(path, tmp_path / "triage.db")
    with Store.open(tmp_path / "triage.db") as store:
        (old, *_) = before = store.search.list_incidents()
        assert len(old.job) == len("j-") + 12
        diagnosis = store.incidents.get(old.id).diagnosis
        job = dataclasses.replace(diagnosis.job, id=old.job + 52 * "0")
        new = store.incidents.add(dataclasses.replace(diagnosis, job=job))
        assert (new.is_new, new.id) == (True, f"i-{old.job[2:]}0000")
        assert store.incidents.get(old.id).incident.job == old.job
        assert len(store.search.list_incidents()) == len(before) + 1


def schema(store: Store) -> list[tuple[object, ...]]:
    return [
        tuple(row)
        for row in store.connections.read("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2")
    ]


def test_a_newer_store_is_an_error(tmp_path: Path) -> None:
    """A store of a newer version is not changed."""
    with Store.open(tmp_path / "triage.db") as store:
        store.connections.get().execute(f"PRAGMA user_version = {migrations.VERSION + 1}")
    with pytest.raises(StoreError, match="newer triage"):
        Store.open(tmp_path / "triage.db")


def test_a_step_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either all steps are applied or none."""

    def broken(database: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(migrations, "STEPS", (migrations.create_knowledge_tables, broken))
    connections = SqliteConnections(tmp_path / "triage.db")
    with pytest.raises(ZeroDivisionError):
        migrations.migrate(connections)
    assert connections.read("SELECT * FROM sqlite_master") == []
    connections.close()


def test_concurrent_creation(tmp_path: Path) -> None:
    """Processes that start together in an empty place all find a complete store."""
    path = str(tmp_path / "triage.db")
    code = f"from triage.store import Store; s = Store.open({path!r}); print(s.search.count_incidents())"
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0] for process in running] == ["0\n"] * 4


def test_an_ingest_into_a_ready_store_does_not_import_sqlite_utils(tmp_path: Path) -> None:
    """sqlite-utils, which is slow to import, is loaded for migrations only."""
    Store.open(tmp_path / "triage.db").close()
    code = (
        "import sys; from triage.store import Store; from tests.store.factories import known_diagnosis\n"
        f"Store.open({str(tmp_path / 'triage.db')!r}).incidents.add(known_diagnosis('a'))\n"
        "print([name for name in ('sqlite_utils', 'click', 'numpy', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout == "[]\n"
