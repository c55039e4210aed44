"""An empty store in each kind of database. Tests of SQLite's file have the mark `sqlite_only`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from triage.store import Store

if TYPE_CHECKING:
    from tests.store.postgres_server import PostgresServer

Place = Callable[[str], str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses a store once for each kind of database."""
    if "database" in metafunc.fixturenames:
        is_sqlite = metafunc.definition.get_closest_marker("sqlite_only") is not None
        metafunc.parametrize("database", ["sqlite"] if is_sqlite else ["sqlite", "postgres"])


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of PostgreSQL, one for all tests of a process."""
    pytest.importorskip("psycopg")
    from tests.store.postgres_server import PostgresServer, find_programs

    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    server = PostgresServer(programs)
    yield server
    server.close()


@pytest.fixture
def place(database: str, empty_store: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """A function that returns where the store of a name is: an empty one, the same for the same name."""
    places: dict[str, str] = {}

    def get_place(name: str) -> str:
        if name not in places and database == "postgres":
            places[name] = request.getfixturevalue("postgres_server").create_database()
        elif name not in places:
            places[name] = str(shutil.copy2(empty_store, tmp_path / f"{name}.db"))
        return places[name]

    return get_place


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    """An empty store."""
    with Store.open(place("triage")) as opened:
        yield opened
