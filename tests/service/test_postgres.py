"""Several `triage serve` on one database of PostgreSQL: tasks, tokens, caches, and a server that goes away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service import server_process
from tests.service.server_process import ServerProcess, run_server, wait_for
from triage.store import Store

pytest.importorskip("psycopg")

from tests.store.postgres_server import PostgresServer, find_programs

FAILURE = b"[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: nothing in shard %d\n"


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PostgresServer]:
    """A server of PostgreSQL that the test may stop; logs of the nodes go to the directory of the test."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    monkeypatch.setattr(server_process, "LOGS", tmp_path)
    server = PostgresServer(programs)
    yield server
    server.close()


def upload(server: ServerProcess, number: int, **headers: str) -> str:
    """Upload a job; return the id of its task."""
    files = {"file": ("rank0.log", FAILURE % number)}
    answer = server.client.post("/api/v1/uploads", files=files, headers=headers)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def total(server: ServerProcess, **headers: str) -> int:
    """Return how many incidents a node shows."""
    answer = server.client.get("/api/v1/incidents", headers=headers)
    return int(answer.json()["total"]) if answer.status_code == 200 else -answer.status_code


def test_two_nodes_share_a_database(postgres: PostgresServer, tmp_path: Path) -> None:
    """What one node takes another analyses; both show it at once; a revoked token counts at once on both."""
    url = postgres.create_database()
    with Store.open(url) as store:
        secret, token = store.tokens.create("ci", ["read", "ingest"], actor="ann")
    headers = {"Authorization": f"Bearer {secret}"}
    shared = {"tasks_uploads": tmp_path / "uploads", "web_sign_in": "required"}
    with run_server(url, "--workers", "0", **shared) as web, run_server(url, "--workers", "1", **shared) as other:
        assert (total(web, **headers), total(other, **headers)) == (0, 0)
        task = upload(web, 1, **headers)
        wait_for(lambda: other.client.get(f"/api/v1/tasks/{task}", headers=headers).json()["state"] == "done")
        assert (total(web, **headers), total(other, **headers)) == (1, 1)
        assert any(item["event"] == "task ends" for item in other.read_log())
        with Store.open(url) as store:
            store.tokens.revoke(token.name, actor="ann")
        assert (total(web, **headers), total(other, **headers)) == (-401, -401)


def test_a_database_that_goes_away(postgres: PostgresServer, tmp_path: Path) -> None:
    """While it is away the node answers 503 with what to do, and lives; afterwards everything works again."""
    url = postgres.create_database()
    with run_server(url, "--workers", "1", tasks_uploads=tmp_path / "uploads") as server:
        task = upload(server, 1)
        wait_for(lambda: server.client.get(f"/api/v1/tasks/{task}").json()["state"] == "done")
        postgres.stop()
        answer = server.client.get("/api/v1/incidents")
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "store-failed"
        assert "the store cannot be used now" in server.client.get("/", headers={"Accept": "text/html"}).text
        assert any("cannot be reached" in item.get("error", "") for item in server.read_log())
        assert server.client.get("/api/v1/health").status_code == 200
        postgres.start()
        assert total(server) == 1
        task = upload(server, 2)
        wait_for(lambda: server.client.get(f"/api/v1/tasks/{task}").json()["state"] == "done")
        assert total(server) == 2


def test_no_process_shows_the_password(postgres: PostgresServer, tmp_path: Path) -> None:
    """A password in the settings is in no log, on no page of the status, and in no argument of a child."""
    postgres.execute("CREATE ROLE with_password LOGIN SUPERUSER PASSWORD 's3cret'")
    url = postgres.create_database().replace("triage@", "with_password:s3cret@")
    with run_server(url, "--workers", "1", tasks_uploads=tmp_path / "uploads") as server:
        assert total(server) == 0
        for page in ("/api/v1/status", "/status"):
            assert "s3cret" not in server.client.get(page, headers={"Accept": "text/html"}).text
        for pid in (server.process.pid, *server.children()):
            assert b"s3cret" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        log = "".join(path.read_text() for path in tmp_path.glob("serve-*.log"))
    assert "with_password@" in log
    assert "s3cret" not in log
