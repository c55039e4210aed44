"""triage.store.postgres: errors of a server and what to do, lost connections, migrations, tasks, backups."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.store.conftest import Place
from tests.store.factories import dump_tables, known_diagnosis, unknown_diagnosis
from tests.store.postgres_server import PostgresServer, find_programs
from triage.base.errors import OptionError, ReadOnlyStoreError, StoreError
from triage.cli import main
from triage.store import Store, maintenance
from triage.store.location import DatabaseUrl
from triage.store.postgres import connection as postgres_connection, errors, migrations
from triage.store.postgres.pool import Pool

SECRET = "s3cret-p%40ss"
Attempt = Callable[[], object]


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """The address of an empty store."""
    return postgres_server.create_database()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    server = PostgresServer(programs)
    yield server
    server.close()


def error_of(attempt: Attempt) -> StoreError:
    """Return the error of an attempt."""
    with pytest.raises(StoreError) as caught:
        attempt()
    return caught.value


def test_a_wrong_password(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says where a password comes from and shows none; PGPASSWORD, .pgpass and the address all work."""
    postgres_server.execute("DROP ROLE IF EXISTS with_password")
    postgres_server.execute("CREATE ROLE with_password LOGIN SUPERUSER PASSWORD 's3cret-p@ss'")
    store = postgres_server.create_database()
    plain = store.replace("triage@", "with_password@")
    error = error_of(lambda: Store.open(plain.replace("with_password@", "with_password:wr0ng-one@")))
    assert "refuses this user or password" in error.message
    assert ".pgpass" in error.hint
    assert "wr0ng-one" not in f"{error} {error.hint} {error!r}"
    Store.open(plain.replace("with_password@", f"with_password:{SECRET}@")).close()
    monkeypatch.setenv("PGPASSWORD", "s3cret-p@ss")
    Store.open(plain).close()
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pgpass").write_text("*:*:*:with_password:s3cret-p@ss\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    Store.open(plain).close()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@/x?host=/nowhere",
        f"postgresql://ann@/x?host=/nowhere&password={SECRET}",
        f"postgresql://ann:{SECRET}@/x?no_such_option={SECRET}",
        f"postgresql://ann:{SECRET}@[broken/x",
        f"postgresql://ann:{SECRET}@/x?host=/nowhere&%zz={SECRET}",
    ],
)
def test_no_message_has_the_password(url: str) -> None:
    """Neither the text of an error, nor its hint or place, nor the name of the location."""
    error = error_of(lambda: Store.open(url))
    for text in (str(error), error.hint, repr(error.args), str(DatabaseUrl(url)), repr(DatabaseUrl(url))):
        assert SECRET not in text
        assert "s3cret" not in text
    assert error.hint


def test_a_server_that_is_away() -> None:
    """The error says that the server cannot be reached and what to check."""
    error = error_of(lambda: Store.open("postgresql://ann@/x?host=/nowhere"))
    assert "cannot be reached" in error.message
    assert "pg_isready" in error.hint


def test_a_missing_database(postgres_server: PostgresServer) -> None:
    """The error says how to create it."""
    error = error_of(lambda: Store.open(postgres_server.url("no_such_database")))
    assert "no such database" in error.message
    assert "createdb" in error.hint


def test_a_stopped_server_comes_back(own_server: PostgresServer) -> None:
    """While it is away each command says so; then an open store reads and writes again, and nothing is lost."""
    with Store.open(own_server.create_database()) as store:
        stored = store.incidents.add(known_diagnosis("a"))
        for mode in ("fast", "immediate"):
            own_server.stop(mode)
            error = error_of(lambda: store.incidents.get(stored.id))
            assert "cannot be reached" in error.message
            assert error.hint
            assert "cannot be reached" in error_of(lambda: store.incidents.add(known_diagnosis("b"))).message
            own_server.start()
            assert store.incidents.get(stored.id).incident.id == stored.id
            own_server.stop(mode)
            own_server.start()
            assert store.incidents.add(known_diagnosis(f"after {mode}")).is_new  # on a connection that broke meanwhile
        assert store.search.count_incidents() == 3


def cut(server: PostgresServer, url: str) -> None:
    """End all connections to a database, as a broken network does."""
    name = url.partition("/@/")[2] or url.rpartition("/store")[2].partition("?")[0]
    server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'store{name}'")


def test_a_connection_cut_in_a_transaction(postgres_server: PostgresServer, url: str) -> None:
    """Nothing of the transaction is stored, the error says so, and the next one works on a new connection."""
    with Store.open(url) as store:

        def write() -> None:
            with store.connections.write() as db:
                db.execute("INSERT INTO setting VALUES ('a', '1')")
                cut(postgres_server, url)
                db.execute("INSERT INTO setting VALUES ('b', '2')")

        error = error_of(write)
        assert "server was stopped" in error.message or "connection to the server broke" in error.message
        assert store.connections.read("SELECT * FROM setting") == []
        assert store.incidents.add(known_diagnosis("a")).is_new


def test_a_connection_cut_at_the_end(postgres_server: PostgresServer, url: str) -> None:
    """It is not known then whether the transaction was stored, and the error says what to do."""
    with Store.open(url) as store:

        def write() -> None:
            with store.connections.write() as db:
                db.execute("INSERT INTO setting VALUES ('a', '1')")
                cut(postgres_server, url)

        error = error_of(write)
        assert "not known whether this was stored" in error.message
        assert "do it again" in error.hint


def test_idle_connections_that_were_cut(postgres_server: PostgresServer, url: str) -> None:
    """Reading and writing go on as if nothing had happened: they are repeated on a new connection."""
    with Store.open(url) as store:
        stored = store.incidents.add(known_diagnosis("a"))
        cut(postgres_server, url)
        assert store.incidents.get(stored.id).incident.id == stored.id
        cut(postgres_server, url)
        assert store.incidents.add(known_diagnosis("b")).is_new


def test_a_full_disk(postgres_server: PostgresServer, url: str) -> None:
    """The error of the server says that nothing was stored; with free space again, writing works."""
    with Store.open(url) as store:
        body = (
            "'BEGIN RAISE EXCEPTION ''could not extend file: No space left on device'' USING ERRCODE = ''53100''; END'"
        )
        store.connections.execute(f"CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS {body}")
        store.connections.execute("CREATE TRIGGER full_disk BEFORE INSERT ON report EXECUTE FUNCTION fill()")
        error = error_of(lambda: store.incidents.add(known_diagnosis("a")))
        assert "disk is full; nothing of this was stored" in error.message
        assert "free some space" in error.hint
        store.connections.execute("DROP TRIGGER full_disk ON report")
        assert store.search.count_incidents() == 0
        assert store.incidents.add(known_diagnosis("a")).is_new


def test_a_read_only_server(postgres_server: PostgresServer, url: str) -> None:
    """A standby, or a user who may only read, shows everything; a write says which server to name."""
    with Store.open(url) as store:
        stored = store.incidents.add(known_diagnosis("a"))
    name = url.rpartition("/store")[2].partition("?")[0]
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP ROLE IF EXISTS reader")
        database.execute("CREATE ROLE reader LOGIN")
        database.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    reader = url.replace("triage@", "reader@")
    postgres_server.execute(f"ALTER DATABASE store{name} SET default_transaction_read_only = on")
    try:
        for place in (url, reader):
            with Store.open(place) as store:
                assert not store.connections.writable
                assert store.incidents.get(stored.id).incident.id == stored.id
                error = error_of(lambda store=store: store.incidents.add(known_diagnosis("b")))  # type: ignore[misc]
                assert isinstance(error, ReadOnlyStoreError)
                assert "target_session_attrs" in error.hint
    finally:
        postgres_server.execute(f"ALTER DATABASE store{name} RESET default_transaction_read_only")
    with Store.open(url, read_only=True) as store, pytest.raises(ReadOnlyStoreError):
        store.incidents.add(known_diagnosis("b"))
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP OWNED BY reader")
        database.execute("DROP ROLE reader")


def test_permissions(postgres_server: PostgresServer, url: str) -> None:
    """Who may only read sees a store that is read-only; who may change rows of all tables needs nothing more."""
    tables = "ON ALL TABLES IN SCHEMA public TO"
    with psycopg.connect(url, autocommit=True) as database:
        for role, rights in (("looks", "SELECT"), ("changes", "SELECT, INSERT, UPDATE, DELETE")):
            database.execute(f"CREATE ROLE {role} LOGIN")  # type: ignore[call-overload]
            database.execute(f"GRANT {rights} {tables} {role}")  # type: ignore[call-overload]
    with Store.open(url.replace("triage@", "changes@")) as store:
        stored = store.incidents.add(known_diagnosis("a"))
        store.tasks.add("ingest", {}, actor="ann")
        assert store.tasks.claim("w") is not None
    with Store.open(url.replace("triage@", "looks@")) as store:
        assert not store.connections.writable
        assert store.incidents.get(stored.id).incident.id == stored.id
        assert isinstance(error_of(lambda: store.incidents.add(known_diagnosis("b"))), ReadOnlyStoreError)


def test_an_ingest_without_its_store(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The diagnosis is shown with a warning when the server is away; the password is in neither."""
    (tmp_path / "rank0.log").write_text("[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: bad shard\n")
    url = "postgresql://ann:s3cret@/x?host=/nowhere"
    assert main(["ingest", str(tmp_path), "--store", url]) == 0
    captured = capsys.readouterr()
    assert "bad shard" in captured.out
    assert "not stored" in captured.out + captured.err
    assert "s3cret" not in captured.out + captured.err
    assert main(["db", "export", "--salvage", "--store", url]) == 2
    assert "pg_dump" in capsys.readouterr().err


def test_settings_hide_the_password(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`triage config show` shows the address without it."""
    pytest.importorskip("pydantic_settings")
    monkeypatch.setenv("TRIAGE_STORE", "postgresql://ann:s3cret@db/x")
    assert main(["config", "show"]) == 0
    out = capsys.readouterr().out
    assert "postgresql://ann@db/x" in out
    assert "s3cret" not in out


def test_a_server_that_becomes_read_only(postgres_server: PostgresServer, url: str) -> None:
    """A store that was open for writing gets the same error after a failover to a standby."""
    with Store.open(url) as store:

        def write() -> None:
            with store.connections.write() as db:
                db.execute("SET TRANSACTION READ ONLY")
                db.execute("INSERT INTO setting VALUES ('a', '1')")

        assert isinstance(error_of(write), ReadOnlyStoreError)


def test_an_error_that_somebody_hides(url: str) -> None:
    """The server stores nothing of a transaction in which a statement failed, and the end of the block says so."""
    with Store.open(url) as store:

        def write() -> None:
            with store.connections.write() as db:
                db.execute("INSERT INTO setting VALUES ('a', '1')")
                with pytest.raises(psycopg.Error):
                    db.execute("SELECT no_such_column")

        assert "nothing of this was stored" in error_of(write).message
        assert store.connections.read("SELECT * FROM setting") == []


def test_a_locked_store(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error after too long a wait says that another process has locked the store; reading does not wait."""
    monkeypatch.setattr(postgres_connection, "_OPTIONS", "SET lock_timeout = '50ms'")
    with Store.open(url) as one, Store.open(url) as other, one.connections.write() as db:
        db.execute("INSERT INTO setting VALUES ('a', '1')")
        error = error_of(lambda: other.incidents.add(known_diagnosis("a")))
        assert "has locked the store" in error.message
        assert "pg_stat_activity" in error.hint
        assert other.connections.read("SELECT * FROM setting") == []


def test_too_many_threads(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gets no connection in time learns why; threads that wait a moment get one."""
    monkeypatch.setattr("triage.store.postgres.pool.WAIT_SECONDS", 0.01)
    pool = Pool(lambda: psycopg.connect(url, autocommit=True), 1)
    taken = pool.take()
    assert "are in use" in error_of(pool.take).message
    pool.give_back(taken)
    assert pool.take() is taken
    pool.give_back(taken)
    pool.drop_idle()
    assert taken.closed


def test_two_nodes_migrate_at_once(postgres_server: PostgresServer) -> None:
    """Eight stores that are opened on an empty database at once apply each step once."""
    postgres_server.execute("CREATE DATABASE fresh")
    with ThreadPoolExecutor(8) as threads:
        for store in threads.map(lambda _: Store.open(postgres_server.url("fresh")), range(8)):
            steps = store.connections.read("SELECT version FROM schema_version ORDER BY version")
            assert [row["version"] for row in steps] == list(range(1, migrations.VERSION + 1))
            store.close()
    assert len(list((Path(migrations.__file__).parent / "steps").glob("*.sql"))) == migrations.VERSION


def test_a_step_that_fails_leaves_nothing(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration is one transaction."""
    postgres_server.execute("CREATE DATABASE half")
    steps = migrations.read_step(1)
    monkeypatch.setattr(migrations, "read_step", lambda _: [*steps, "SELECT no_such_function()"])
    assert "no_such_function" in error_of(lambda: Store.open(postgres_server.url("half"))).message
    assert postgres_server.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "half") == [(0,)]


def test_a_newer_schema(url: str) -> None:
    """An older node says what to do."""
    with Store.open(url) as store:
        store.connections.execute("INSERT INTO schema_version (version) VALUES (?)", (migrations.VERSION + 1,))
    error = error_of(lambda: Store.open(url))
    assert "written by a newer triage" in error.message
    assert "update triage" in error.hint


def test_a_node_works_while_another_adds_a_column(url: str) -> None:
    """Statements that the server has prepared are prepared again; a task whose claim fails once is claimed next."""
    with Store.open(url) as store:
        store.service_data.save_upload("d" * 64, 1)
        store.tokens.create("ci", ["read"], actor="ann")
        for number in range(8):
            store.tasks.add("ingest", {"n": number}, actor="ann")
            store.tokens.list_tokens()
            assert store.service_data.get_upload("d" * 64) is not None
            if number < 7:
                assert store.tasks.claim("w") is not None
        with psycopg.connect(url, autocommit=True) as newer:
            for table in ("task", "token", "upload", "incident", "audit"):
                newer.execute(f"ALTER TABLE {table} ADD COLUMN later TEXT NOT NULL DEFAULT ''")  # type: ignore[call-overload]
        assert len(store.tokens.list_tokens()) == 1
        assert store.service_data.get_upload("d" * 64) is not None
        with contextlib.suppress(StoreError):
            store.tasks.claim("w")
        store.tasks.claim("w")
        assert store.tasks.counts() == {"running": 8}
        assert store.incidents.add(known_diagnosis("a")).is_new


def test_reading_creates_no_tables(postgres_server: PostgresServer) -> None:
    """Without `create` a database without a store is an error and stays empty; so is a missing schema."""
    postgres_server.execute("CREATE DATABASE empty")
    error = error_of(lambda: Store.open(postgres_server.url("empty"), create=False))
    assert "has no store" in error.message
    assert postgres_server.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "empty") == [(0,)]
    other = postgres_server.url("empty", more="&options=-csearch_path%3Dnowhere")
    assert "schema of the store does not exist" in error_of(lambda: Store.open(other)).message


def test_a_store_in_a_schema(postgres_server: PostgresServer) -> None:
    """Two stores in one database do not see each other."""
    postgres_server.execute("CREATE DATABASE shared")
    postgres_server.execute("CREATE SCHEMA one", "shared")
    postgres_server.execute("CREATE SCHEMA two", "shared")
    places = [postgres_server.url("shared", more=f"&options=-csearch_path%3D{name}") for name in ("one", "two")]
    with Store.open(places[0]) as one, Store.open(places[1]) as two:
        one.incidents.add(unknown_diagnosis("a"))
        assert (one.search.count_incidents(), two.search.count_incidents()) == (1, 0)
        assert 0 < two.connections.size_bytes() < one.connections.size_bytes() + 1


def test_waiting_tasks_wake_a_worker(url: str) -> None:
    """A worker that waits is woken by a new task, long before it would look by itself."""
    with Store.open(url) as worker, Store.open(url) as web:
        worker.tasks.wait(60)  # the first returns at once: what came before is looked for
        claimed: list[object] = []

        def wait() -> None:
            worker.tasks.wait(60)
            claimed.append(worker.tasks.claim("w"))

        thread = threading.Thread(target=wait)
        thread.start()
        task = web.tasks.add("ingest", {}, actor="ann")
        thread.join(timeout=30)
        assert [getattr(item, "id", None) for item in claimed] == [task.id]


def test_claims_do_not_wait_for_each_other(url: str) -> None:
    """A worker leaves out the task that another is claiming, and takes the next one, also while an ingest writes."""
    with Store.open(url) as store, Store.open(url) as other:
        first, second = (store.tasks.add("ingest", {"n": n}, actor="ann", now=float(n)) for n in (1, 2))
        with store.connections.write() as db:
            db.execute("UPDATE task SET owner = 'one' WHERE id = ?", (first.id,))
            claimed = other.tasks.claim("two")
            assert claimed is not None
            assert claimed.id == second.id
            assert other.tasks.beat(claimed, {"done": 1})


def test_many_workers_claim_each_task_once(url: str) -> None:
    """Eight workers that claim forty tasks get each of them once."""
    with Store.open(url) as store, ThreadPoolExecutor(8) as threads:
        tasks = {store.tasks.add("ingest", {"n": n}, actor="ann").id for n in range(40)}
        claimed = [task.id for task in threads.map(lambda n: store.tasks.claim(f"w{n}"), range(40)) if task is not None]
        rest = iter(lambda: store.tasks.claim("late"), None)
        claimed += [task.id for task in rest if task is not None]
        assert sorted(claimed) == sorted(tasks)


def test_the_data_version(url: str) -> None:
    """It changes with every commit of another process, and stays while nothing happens."""
    with Store.open(url) as store, Store.open(url) as other:
        before = store.connections.data_version()
        assert store.connections.data_version() == before
        other.incidents.add(known_diagnosis("a"))
        assert store.connections.data_version() != before


def test_backup_and_restore(postgres_server: PostgresServer, url: str, tmp_path: Path) -> None:
    """What pg_dump writes and pg_restore reads is the same store, with new numbers for new rows."""
    with Store.open(url) as store:
        for number in range(3):
            store.incidents.add(unknown_diagnosis(f"job {number}"))
        before = dump_tables(store)
    programs = find_programs()
    assert programs is not None
    dump = tmp_path / "triage.dump"
    subprocess.run([programs / "pg_dump", "--format=custom", f"--file={dump}", url], check=True)
    postgres_server.execute("CREATE DATABASE restored")
    restored = postgres_server.url("restored")
    subprocess.run([programs / "pg_restore", "--no-owner", f"--dbname={restored}", dump], check=True)
    with Store.open(restored, create=False) as store:
        assert dump_tables(store) == before
        assert maintenance.check_store(store.connections) == []
        assert store.search.search_text("shard bad")
        assert store.incidents.add(known_diagnosis("new")).is_new


def test_what_makes_no_sense(url: str) -> None:
    """Commands for files say what to use instead; old incidents are deleted here too."""
    with Store.open(url) as store:
        with pytest.raises(OptionError, match="needs no `triage db vacuum`") as caught:
            maintenance.vacuum(store.connections)
        assert "autovacuum" in caught.value.hint
        with pytest.raises(OptionError, match="does not shrink"):
            maintenance.prune(store.connections, store.incidents, size=1)
        store.incidents.add(known_diagnosis("a"))
        assert maintenance.prune(store.connections, store.incidents, days=1, now=4e9).incidents == 1
        assert maintenance.summarize(store.connections)["version"] == migrations.VERSION
        store.incidents.add(known_diagnosis("b"))
        store.connections.execute("DELETE FROM page")
        assert "not in the full-text index" in "\n".join(maintenance.check_store(store.connections))


def test_unknown_states_have_a_hint() -> None:
    """An error that the table does not know still says what to do."""
    error = errors.explain_error(psycopg.errors.DivisionByZero("division by zero"), DatabaseUrl("postgresql:///x"))
    assert error.message == "the store failed: division by zero"
    assert error.hint


@pytest.mark.sqlite_only
def test_a_file_needs_no_psycopg(place: Place) -> None:
    """An ingest into a file imports nothing of PostgreSQL; without psycopg its store says what to install."""
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from tests.store.factories import known_diagnosis\n"
        "from triage.store import Store\n"
        f"with Store.open({place('a')!r}) as store: store.incidents.add(known_diagnosis('a'))\n"
        "assert not [name for name in sys.modules if 'postgres' in name], sys.modules\n"
        "try: Store.open('postgresql:///x')\n"
        "except Exception as error: print(type(error).__name__, error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2], env={**os.environ}
    )
    assert done.stdout.startswith("OptionError pip install 'triage-kb[postgres]'"), done.stderr
