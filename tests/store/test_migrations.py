"""An old store becomes a new one, a newer one is refused, and steps are taken once whoever comes first."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.making import known
from triage.base.errors import StoreError
from triage.store import Store, migrations
from triage.store.connection import Connections

OLD = sorted((Path(__file__).parent / "old").glob("*.db"))


def test_versions_are_the_steps() -> None:
    """The number that is compared without importing the steps is their number."""
    assert len(migrations.STEPS) == migrations.VERSION


def test_an_old_store_of_every_version_is_kept() -> None:
    """Each released form of the file is one of the tests' files."""
    assert [path.stem for path in OLD] == [f"v{number}" for number in range(1, migrations.VERSION)]


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_old_stores_are_brought_up_to_date(path: Path, tmp_path: Path) -> None:
    """What was in it is still there, and everything works as in a new one."""
    shutil.copy(path, tmp_path / "triage.db")
    with Store.open(tmp_path / "triage.db") as store, Store.open(tmp_path / "new.db") as new:
        assert schema(store) == schema(new)
        assert store.search.text("shard")[0].incident.cluster == "u-7f3a9c"
        assert store.incidents.add(known("new")).new
        assert store.outbox.put("test", "a", "a", {})


def schema(store: Store) -> list[tuple[object, ...]]:
    return [
        tuple(row)
        for row in store.connections.read("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2")
    ]


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    """A version of which this triage knows nothing is left alone."""
    with Store.open(tmp_path / "triage.db") as store:
        store.connections.get().execute(f"PRAGMA user_version = {migrations.VERSION + 1}")
    with pytest.raises(StoreError, match="newer triage"):
        Store.open(tmp_path / "triage.db")


def test_a_step_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps or none."""

    def broken(database: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(migrations, "STEPS", (migrations.knowledge, broken))
    connections = Connections(tmp_path / "triage.db")
    with pytest.raises(ZeroDivisionError):
        migrations.bring_up_to_date(connections)
    assert connections.read("SELECT * FROM sqlite_master") == []
    connections.close()


def test_two_at_once_make_one_store(tmp_path: Path) -> None:
    """Processes that start together on an empty place all find a whole store."""
    code = f"from triage.store import Store; s = Store.open({str(tmp_path / 'triage.db')!r}); print(s.search.count())"
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0] for process in running] == ["0\n"] * 4


def test_an_ingest_into_a_ready_store_does_not_import_sqlite_utils(tmp_path: Path) -> None:
    """A tenth of a second that only migrations pay for."""
    Store.open(tmp_path / "triage.db").close()
    code = (
        "import sys; from triage.store import Store; from tests.store.making import known\n"
        f"Store.open({str(tmp_path / 'triage.db')!r}).incidents.add(known('a'))\n"
        "print([name for name in ('sqlite_utils', 'click', 'numpy', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout == "[]\n"
