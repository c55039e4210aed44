"""triage.service.store_condition: the service on a store that is read-only or damaged."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.service.server_process import ROOT, run_server, wait_for
from triage.service.app import create_app
from triage.service.store_condition import StoreCondition, check_condition
from triage.settings import Settings
from triage.settings.sections import StoreSettings
from triage.store import Store

PAGE = {"Accept": "text/html"}
READ_ONLY_SERVE = """
import sys
from pathlib import Path
from tests.service.server_process import run_server
with run_server(Path(sys.argv[1]) / "triage.db", "--workers", "2", web_processes=2) as server:
    page = server.client.get("/incidents", headers={"Accept": "text/html"})
    upload = server.client.post("/api/v1/uploads", files={"file": ("rank0.log", b"text")})
    ready = server.client.get("/api/v1/ready")
    print(page.status_code, "The store is read-only" in page.text, upload.status_code, ready.status_code, ready.json())
    print([event["event"] for event in server.read_log()])
"""


@pytest.fixture
def read_only_client(path: Path) -> Iterator[TestClient]:
    """The service on a store that was opened for reading."""
    settings = Settings(store=StoreSettings(path=path))
    with (
        Store.open(path, read_only=True) as store,
        TestClient(create_app(settings, store), base_url="http://127.0.0.1:8321") as client,
    ):
        yield client


def write_damage(path: Path) -> None:
    """Overwrite a page in the middle of the store."""
    data = bytearray(path.read_bytes())
    place = len(data) // 2 // 4096 * 4096
    data[place : place + 4096] = random.Random(3).randbytes(4096)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "address", ["/incidents", "/inbox", "/search?q=cuda", "/stats", "/audit", "/status", "/upload"]
)
def test_pages_of_a_read_only_store(read_only_client: TestClient, address: str) -> None:
    """Every page is shown and says that nothing can be changed."""
    answer = read_only_client.get(address, headers=PAGE)
    assert answer.status_code == 200
    assert "The store is read-only: nothing can be uploaded or changed." in answer.text


def test_writable_stores_have_no_such_notice(client: TestClient) -> None:
    """The pages of a store that can be written do not say it, and changes are not refused."""
    assert "read-only" not in client.get("/incidents", headers=PAGE).text
    assert client.get("/api/v1/status").json()["store_condition"] == "writable"
    assert client.post("/api/v1/clusters/u-1/ignore", json={}).status_code == 404


def test_the_api_of_a_read_only_store(read_only_client: TestClient) -> None:
    """It reads, is ready, and names the condition in status, readiness and metrics."""
    assert read_only_client.get("/api/v1/incidents").json()["total"] == 3
    ready = read_only_client.get("/api/v1/ready")
    assert (ready.status_code, ready.json()["checks"]["store"]) == (200, "read-only")
    assert read_only_client.get("/api/v1/status").json()["store_condition"] == "read-only"
    assert "triage_store_writable 0" in read_only_client.get("/api/v1/metrics").text


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("POST", "/api/v1/uploads"),
        ("PATCH", f"/api/v1/uploads/{'0' * 64}"),
        ("POST", "/api/v1/ingest"),
        ("POST", "/api/v1/clusters/u-1/name"),
        ("DELETE", "/api/v1/tasks/t-1"),
        ("POST", "/upload"),
        ("POST", "/hooks/slack"),
    ],
)
def test_changes_of_a_read_only_store_are_refused(read_only_client: TestClient, method: str, address: str) -> None:
    """A change is answered with 503, a code of its own and what to do, before anything is read of it."""
    answer = read_only_client.request(method, address, content=b"x")
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert error["code"] == "store-read-only"
    assert "ask the operator" in error["hint"]


def test_people_choose_a_theme_and_sign_in_and_out_on_a_read_only_store(path: Path) -> None:
    """What needs no write works, and a signed-out cookie is refused."""
    with Store.open(path) as store:
        token, _ = store.tokens.create("anna", ["read"], actor="a")
    settings = Settings(store=StoreSettings(path=path))
    with (
        Store.open(path, read_only=True) as store,
        TestClient(create_app(settings, store), base_url="http://127.0.0.1:8321") as client,
    ):
        client.post("/auth/token", data={"token": token}, follow_redirects=False)
        copy = {"Cookie": f"triage_session={client.cookies['triage_session']}"}
        assert client.get("/api/v1/me").json()["name"] == "anna"
        assert client.post("/theme", data={"choice": "dark"}, follow_redirects=False).status_code == 303
        assert client.post("/auth/sign-out", follow_redirects=False).status_code == 303
        client.cookies.clear()
        assert client.get("/api/v1/me", headers=copy).status_code == 401


def test_serve_on_a_read_only_file_system(path: Path, tmp_path: Path) -> None:
    """Real processes on a read-only mount: pages, API and readiness answer, the log says it, no worker is started."""
    place = tmp_path / "place"
    place.mkdir()
    with Store.open(Path(shutil.move(path, place / "triage.db"))) as store:
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    script = f'mount --bind "{place}" "{place}" && mount -o remount,ro,bind "{place}" || exit 77; '
    script += f'cd "{ROOT}"; "{sys.executable}" -c "$1" "{place}"'
    # The log of the server is beside the store, so it goes elsewhere here.
    body = READ_ONLY_SERVE.replace(
        "with run_server",
        f"import tests.service.server_process as s\ns.LOGS = Path({str(tmp_path)!r})\nwith run_server",
    )
    command = ["unshare", "--map-root-user", "--user", "--mount", "sh", "-c", script, "sh", body]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("file systems may not be mounted here")
    assert done.returncode == 0, done.stderr
    answers, events = done.stdout.splitlines()
    assert answers.startswith("200 True 503 200 {'status': 'ok'")
    assert "the store is read-only" in events
    assert "process failed" not in events
    assert "bug" not in events


def test_the_check_finds_damage(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sound store stays writable; a damaged one changes the condition and the log says what to do."""
    condition = StoreCondition()
    check_condition(path, condition, 60)
    assert condition.get() == "writable"
    write_damage(path)
    check_condition(path, condition, 60)
    assert condition.get() == "damaged"
    assert "triage db export --salvage" in capsys.readouterr().err


def test_a_check_that_takes_too_long_is_stopped(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The check ends after its time and says that it is not complete; no damage is assumed."""
    with Store.open(path) as store, store.connections.write() as db:
        db.executemany("INSERT INTO setting VALUES (?, ?)", [(f"key {n}", "x" * 100) for n in range(50_000)])
    condition = StoreCondition()
    check_condition(path, condition, 0.0)
    assert condition.get() == "writable"
    assert "store checked in part" in capsys.readouterr().err


def test_damage_after_a_crash_stops_changes(path: Path) -> None:
    """When a process is killed the store is checked again: readiness fails, changes are refused, pages say why."""
    with run_server(path, "--workers", "1") as server:
        wait_for(lambda: any(event["event"] == "store checked" for event in server.read_log()), 60)
        assert server.client.get("/api/v1/ready").status_code == 200
        write_damage(path)
        os.kill(server.children()[-1], signal.SIGKILL)
        wait_for(lambda: server.client.get("/api/v1/ready").status_code == 503, 60)
        assert server.client.get("/api/v1/ready").json()["checks"]["store"] == "damaged"
        answer = server.client.post("/api/v1/uploads", files={"file": ("rank0.log", b"text")})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store-damaged")
        assert server.client.get("/api/v1/health").status_code == 200
