"""Hostile clients and hostile files. Each docstring names its requirement of ASVS 5.0; docs/security.md lists them."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from tests.service.server_process import ServerProcess, run_server, wait_for
from triage.base.errors import OptionError
from triage.service.app import CONTENT_POLICY, create_app
from triage.service.csrf import is_cross_site
from triage.service.errors import ServiceError
from triage.service.limits import HEADER_BYTES, HEADER_COUNT, TokenBuckets
from triage.service.log import write_event
from triage.service.work import job_files
from triage.settings import Settings
from triage.settings.sections import Source, StoreSettings, TaskSettings, WebSettings
from triage.store import Store

ROOT = Path(__file__).resolve().parents[2]
FAILURE = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: <script>alert(1)</script>\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server with small limits."""
    directory = tmp_path_factory.mktemp("served")
    with run_server(
        directory / "triage.db",
        tasks_upload_bytes=3 << 20,
        tasks_upload_files=5,
        web_slow_seconds=1.5,
        tasks_seconds=20,
        web_changes_a_minute=10_000,
    ) as process:
        yield process


def send_raw(server: ServerProcess, data: bytes, *, wait: float = 10.0) -> bytes:
    """Return the answer to these bytes, until the server closes the connection or `wait` seconds pass."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=wait) as connection:
        connection.sendall(data)
        answer = b""
        with suppress(TimeoutError, ConnectionResetError):
            while piece := connection.recv(1 << 16):
                answer += piece
    return answer


def wait_for_task(server: ServerProcess, task: str) -> dict[str, object]:
    """Return the task after its end."""

    def ended_task() -> dict[str, object] | None:
        current: dict[str, object] = server.client.get(f"/api/v1/tasks/{task}").json()
        return current if current["state"] in ("done", "failed", "cancelled") else None

    ended: dict[str, object] = wait_for(ended_task)
    return ended


@pytest.mark.parametrize("size", [3 << 20 | 1, (3 << 20) + (2 << 20)], ids=["by one byte", "by far"])
@pytest.mark.parametrize("has_length", [True, False], ids=["Content-Length", "chunked"])
def test_oversize_uploads_are_refused(server: ServerProcess, size: int, has_length: bool) -> None:
    """ASVS 5.2.1: uploads are limited by the bytes that come, and a refused upload leaves no file."""
    form = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.log"\r\n\r\n' + b"x" * size + b"\r\n--b--\r\n"
    )
    content = form if has_length else (form[start : start + 65536] for start in range(0, len(form), 65536))
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    try:
        status = server.client.post("/api/v1/uploads", content=content, headers=headers).status_code
    except (httpx.WriteError, httpx.ReadError):  # the server closed the connection before the end
        status = 413
    assert status == 413
    assert [
        path for path in (server.store.parent / "uploads" / "parts").iterdir() if path.name.startswith("form-")
    ] == []


def test_oversize_requests_are_refused(server: ServerProcess) -> None:
    """ASVS 15.2.2: other request bodies are limited to 1 MiB, with and without Content-Length."""
    assert server.client.post("/api/v1/ingest", content=b"x" * (1 << 20 | 1)).status_code == 413
    pieces = (b" " * 65536 for _ in range(17))
    assert (
        server.client.post("/api/v1/ingest", content=pieces, headers={"Content-Type": "application/json"}).status_code
        == 413
    )


def test_too_many_files_are_refused(server: ServerProcess) -> None:
    """ASVS 5.2.4: the number of files and of form parts is limited."""
    several = [("file", (f"{number}.log", b"x")) for number in range(6)]
    assert server.client.post("/api/v1/uploads", files=several).status_code == 400
    many = [("file", (f"{number}.log", b"x")) for number in range(60)]
    assert server.client.post("/api/v1/uploads", files=many).status_code == 413


def _tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _link(name: str, to: str, kind: bytes) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, to
    return member, b""


def _zip(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, FAILURE)
    return out.getvalue()


HOSTILE_ARCHIVES = {
    "dots": _tar((tarfile.TarInfo("../../evil.log"), FAILURE.encode())),
    "absolute": _tar((tarfile.TarInfo("/tmp/triage-evil.log"), FAILURE.encode())),
    "symlink": _tar(
        _link("rank0.log", "/etc/passwd", tarfile.SYMTYPE), (tarfile.TarInfo("rank1.log"), FAILURE.encode())
    ),
    "hard link": _tar(
        _link("rank0.log", "/etc/passwd", tarfile.LNKTYPE), (tarfile.TarInfo("rank1.log"), FAILURE.encode())
    ),
    "device": _tar(_link("rank0.log", "", tarfile.CHRTYPE), (tarfile.TarInfo("rank1.log"), FAILURE.encode())),
    "zip dots": _zip("../../evil.log"),
}


@pytest.mark.parametrize("data", HOSTILE_ARCHIVES.values(), ids=HOSTILE_ARCHIVES.keys())
def test_archive_paths_and_links_are_ignored(server: ServerProcess, data: bytes) -> None:
    """ASVS 5.2.5, 5.3.3: links, devices and paths in an archive are neither read nor written."""
    before = {path for path in server.store.parent.rglob("*") if "uploads" not in path.parts}
    answer = server.client.post("/api/v1/uploads", files={"file": ("job.tar.gz", data)})
    assert wait_for_task(server, answer.json()["id"])["state"] in ("done", "failed")
    assert {path for path in server.store.parent.rglob("*") if "uploads" not in path.parts} - before <= {
        server.store.with_name("triage.db-wal")
    }
    assert not Path("/tmp/triage-evil.log").exists()
    assert "root:x:0" not in server.client.get("/api/v1/search", params={"q": "root bash nologin"}).text


def test_compression_bomb_ends_only_its_task(server: ServerProcess) -> None:
    """ASVS 5.2.3: a small file with a gigabyte of zeros stays within the limits of its task; the service continues."""
    bomb = zlib.compressobj(9, wbits=31)
    data = b"".join([*(bomb.compress(bytes(1 << 24)) for _ in range(64)), bomb.flush()])
    assert len(data) < 2 << 20
    task = server.client.post("/api/v1/uploads", files={"file": ("bomb.log.gz", data)}).json()["id"]
    started = time.monotonic()
    assert server.client.get("/api/v1/incidents").status_code == 200
    assert wait_for_task(server, task)["state"] in ("done", "failed")
    assert time.monotonic() - started < 60


NAMES = [
    "../../etc/passwd",
    "/etc/passwd",
    "..\\..\\boot.ini",
    "a\0b",
    "CON",
    "-rf",
    ".ssh",
    "a" * 500,
    "\u202etxt.exe",
    "$(reboot)",
    "",
    ".",
]


@pytest.mark.parametrize("name", NAMES)
def test_file_names_are_never_paths(name: str) -> None:
    """ASVS 5.3.2: only letters, digits and a few other characters of a file name are kept, and no directory."""
    clean = job_files.safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_@:+=][A-Za-z0-9._@:+=-]{0,199}", clean)
    assert "/" not in clean


@given(st.lists(st.text(), min_size=1, max_size=8))
def test_file_names_stay_distinct(names: list[str]) -> None:
    """ASVS 5.3.2: each file gets a distinct safe name."""
    clean = job_files.safe_names(names)
    assert len(set(clean)) == len(names)
    assert all(not name.startswith((".", "-")) and "/" not in name for name in clean)


HOSTILE_JOB_NAMES = [
    *(
        f"{kind}://example.org/x"
        for kind in ("http", "https", "ftp", "s3", "gs", "abfs", "file", "github", "reference", "sftp", "smb", "data")
    ),
    *(
        "simplecache::http://169.254.169.254/",
        "file:///etc/passwd",
        "zip://x::file:///etc/passwd",
        "..",
        "../other",
        "a/../../b",
        "/etc",
        "~",
        "",
    ),
    *("a\nb", "%2e%2e%2f", "slurm/../..", "\\\\host\\share", "link-out"),
]


@pytest.mark.parametrize("job", HOSTILE_JOB_NAMES)
def test_clients_cannot_send_addresses_or_paths(tmp_path: Path, job: str) -> None:
    """ASVS 1.3.6, 5.3.2: a job is an entry of a configured directory; addresses, paths and links out are refused."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "link-out").symlink_to("/etc")
    with pytest.raises(ServiceError) as caught:
        job_files.source_path({"slurm": Source(path=tmp_path / "jobs")}, "slurm", job)
    assert caught.value.status in (400, 404)


@pytest.mark.parametrize("address", ["http://example.org/", "s3://bucket/x", "relative/dir"])
def test_sources_are_local_directories(address: str, store: Store) -> None:
    """ASVS 1.3.6: the settings accept no addresses and no relative paths as sources."""
    from triage.service import access

    with pytest.raises(OptionError):
        access.check_settings(Settings(sources={"x": Source(path=Path(address))}), store)


CROSS_SITE_CASES = [
    ("GET", {"sec-fetch-site": "cross-site"}, False),
    ("HEAD", {"origin": "https://evil"}, False),
    ("POST", {"sec-fetch-site": "same-origin", "origin": "http://here"}, False),
    ("POST", {"sec-fetch-site": "none"}, False),
    ("POST", {"sec-fetch-site": "cross-site"}, True),
    ("POST", {"sec-fetch-site": "same-site"}, True),
    ("POST", {"sec-fetch-site": "cross-site", "origin": "http://here"}, True),
    ("POST", {"origin": "http://here"}, False),
    ("POST", {"origin": "http://here:81"}, True),
    ("POST", {"origin": "https://evil"}, True),
    ("POST", {"origin": "null"}, True),
    ("POST", {}, False),
    ("POST", {"authorization": "Bearer x", "origin": "https://evil"}, False),
    ("POST", {"authorization": "Bearer x", "cookie": "a=b", "origin": "https://evil"}, True),
    ("DELETE", {"sec-fetch-site": "cross-site"}, True),
    ("PATCH", {"origin": "https://evil"}, True),
    ("POST", {"sec-fetch-site": "cross-site", "origin": "https://public"}, False),
]


@pytest.mark.parametrize(("method", "headers", "expected"), CROSS_SITE_CASES)
def test_cross_site_requests_are_recognised(method: str, headers: dict[str, str], expected: bool) -> None:
    """ASVS 3.5.1: Sec-Fetch-Site, else Origin, decides; requests with a token and no cookie are from programs."""
    assert is_cross_site(method, Headers({"host": "here", **headers}), frozenset({"https://public"})) is expected


def test_cross_site_requests_are_refused(client: TestClient) -> None:
    """ASVS 3.5.1: changing requests from another site are refused at every address."""
    for path in ("/api/v1/ingest", "/api/v1/uploads", "/auth/token", "/auth/sign-out", "/api/v1/clusters/u-1/ignore"):
        answer = client.post(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross-site")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "", "[::2]", "evil@127.0.0.2"]
)
def test_other_host_names_are_refused(client: TestClient, host: str) -> None:
    """ASVS 3.5.8: other host names that point here (DNS rebinding) are refused."""
    assert client.get("/api/v1/incidents", headers={"Host": host}).status_code in (400, 421)


@pytest.mark.parametrize(
    "address", ["/api/v1/incidents", "/api/v1/nope", "/api/v1/incidents/i-none", "/static/main.js", "/api/v1/health"]
)
def test_every_response_has_security_headers(client: TestClient, address: str) -> None:
    """ASVS 3.4.3, 3.4.4, 3.4.5, 3.4.6, 3.4.8, 3.5.8: all security headers are there, also on errors."""
    headers = client.get(address).headers
    assert headers["content-security-policy"] == CONTENT_POLICY
    assert "unsafe" not in CONTENT_POLICY
    assert "'none'" in CONTENT_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


def test_log_text_is_an_attachment(client: TestClient) -> None:
    """ASVS 3.2.1, 5.4.1: raw lines and reports are sandboxed attachments with safe names."""
    incident = client.get("/api/v1/incidents").json()["incidents"][0]["id"]
    raw_lines = client.get(f"/api/v1/incidents/{incident}/evidence/0/raw")
    assert raw_lines.headers["content-type"] == "text/plain; charset=utf-8"
    for answer in (
        raw_lines,
        *(
            client.get(f"/api/v1/incidents/{incident}/report", params={"format": name})
            for name in ("text", "html", "markdown")
        ),
    ):
        assert re.fullmatch(r'attachment; filename="[\w.-]+"', answer.headers["content-disposition"])
        assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PUT", "PROPFIND", "OPTIONS", "PATCH"])
def test_undocumented_methods_are_refused(client: TestClient, method: str) -> None:
    """ASVS 4.1.4: undocumented methods answer 405, and echo nothing of the request."""
    answer = client.request(method, "/api/v1/incidents", headers={"X-Planted": "planted"})
    assert answer.status_code == 405
    assert "planted" not in answer.text


LARGE_HEADERS = [
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * (HEADER_BYTES + 1024) + b"\r\n\r\n",
    b"GET /" + b"a" * (HEADER_BYTES + 1024) + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"X%d: 1\r\n" % n for n in range(HEADER_COUNT)) + b"\r\n",
]


@pytest.mark.parametrize("data", LARGE_HEADERS, ids=["one header", "the address", "many headers"])
def test_large_headers_are_refused(server: ServerProcess, data: bytes) -> None:
    """ASVS 15.2.2: headers of more than 16 KiB are refused, and more than a hundred headers."""
    assert b" 431 " in send_raw(server, data, wait=3)[:60]


def test_endless_headers_are_refused(server: ServerProcess) -> None:
    """ASVS 15.2.2: headers without an end are refused."""
    data = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * (5 * HEADER_BYTES)
    assert send_raw(server, data, wait=3).startswith(b"HTTP/1.1 400 ")


def test_stalled_bodies_are_refused(server: ServerProcess) -> None:
    """ASVS 15.2.2: a request whose body stops coming is answered 408, and its connection is closed."""
    data = b"POST /api/v1/ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    started = time.monotonic()
    assert b" 408 " in send_raw(server, data, wait=30)[:60]
    assert time.monotonic() - started < 25


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["two lengths", "NUL in a header", "folded", "TLS"],
)
def test_malformed_requests_are_refused(server: ServerProcess, data: bytes) -> None:
    """ASVS 4.2.1: malformed requests, and requests with two lengths, are refused."""
    assert send_raw(server, data)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 421")
    assert server.client.get("/api/v1/health").status_code == 200


def test_token_buckets() -> None:
    """ASVS 2.4.1: a client has its tokens of a minute; they refill, and many clients cost no more memory."""
    now = [0.0]
    buckets = TokenBuckets(60, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(60)] == [0.0] * 60
    assert buckets.take("a") == pytest.approx(1.0)
    assert buckets.take("b") == 0.0
    now[0] += 1
    assert buckets.take("a") == 0.0
    for number in range(30_000):
        buckets.take(f"c{number}")
    assert len(buckets._buckets) <= 10_001


def test_too_many_requests_are_refused(path: Path, store: Store) -> None:
    """ASVS 2.4.1: too many requests answer 429 with Retry-After."""
    web = WebSettings(requests_a_minute=5)
    with TestClient(
        create_app(Settings(store=StoreSettings(path=path), web=web), store), base_url="http://127.0.0.1"
    ) as client:
        answers = [client.get("/api/v1/incidents") for _ in range(7)]
    assert [answer.status_code for answer in answers[:5]] == [200] * 5
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["Retry-After"]) >= 1


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.text(max_size=60),
    name=st.sampled_from(["q", "job", "host", "signature", "cluster", "domain", "since", "until", "after"]),
)
def test_search_text_is_never_sql(client: TestClient, query: str, name: str) -> None:
    """ASVS 1.2.4: any text in a filter or a search is only text for SQL, and never a 5xx."""
    query = query.encode("utf-8", "ignore").decode()
    assert client.get("/api/v1/search", params={"q": query}).status_code in (200, 422)
    assert client.get("/api/v1/incidents", params={name: query}).status_code in (200, 400, 422)
    assert client.get("/api/v1/stats", params={"q": query}).status_code == 200


def test_sandbox_limits() -> None:
    """ASVS 5.2.3, 15.2.2: work above its memory or time fails with a reason, and its process ends."""
    from triage.service.work import sandbox

    def use_memory(_: object) -> None:
        bytearray(1 << 34)

    def sleep(_: object) -> None:
        time.sleep(60)

    outcome = sandbox.run_limited(use_memory, memory=1 << 30, seconds=30, threads=1, heartbeat=lambda _: True)
    assert outcome.kind == "memory"
    outcome = sandbox.run_limited(sleep, memory=1 << 30, seconds=1.0, threads=1, heartbeat=lambda _: True)
    assert outcome.kind == "time"
    assert outcome.error["hint"]
    outcome = sandbox.run_limited(
        lambda _: os.kill(os.getpid(), signal.SIGKILL), memory=1 << 30, seconds=30, threads=1, heartbeat=lambda _: True
    )
    assert outcome.kind == "killed"
    outcome = sandbox.run_limited(sleep, memory=1 << 30, seconds=30, threads=1, heartbeat=lambda _: False)
    assert outcome.kind == "stopped"


def test_log_lines_cannot_be_forged(capsys: pytest.CaptureFixture[str]) -> None:
    """ASVS 16.4.1: each log line is one JSON object, whatever its values are."""
    write_event("test", name='a\n{"event": "forged"}\r\n\x1b[31m\u2028')
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "\x1b" not in lines[0]


def test_bugs_answer_without_a_trace(app: FastAPI) -> None:
    """ASVS 16.5.1, 16.5.4: a bug answers 500 with the request id and without a trace; the service continues."""

    def broken() -> None:
        raise ZeroDivisionError("secret inside")

    app.add_api_route("/api/v1/broken", broken)
    app.router.routes.insert(0, app.router.routes.pop())
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        answer = client.get("/api/v1/broken")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "bug"
    assert "inside" not in answer.text
    assert answer.headers["x-request-id"] in answer.json()["error"]["hint"]
    assert answer.headers["content-security-policy"] == CONTENT_POLICY


def test_secrets_of_uploads_are_not_stored(path: Path, store: Store, tmp_path: Path) -> None:
    """ASVS 14.2.4: neither the diagnosis nor the stored lines contain a secret from the log."""
    from tests.service.work.test_worker import store_upload
    from triage.service.work.worker import Worker

    secret = "hf_" + "Q" * 34
    log = tmp_path / "rank0.log"
    log.write_text(f"export HF_TOKEN={secret}\n" + FAILURE + f"token {secret}\n")
    settings = Settings(store=StoreSettings(path=path), tasks=TaskSettings())
    store.tasks.add("ingest", store_upload(settings, log), actor="a")
    Worker(settings, store).do_next_task()
    num = store.connections.read("SELECT max(num) AS n FROM incident")[0]["n"]
    assert secret not in str(store.service_data.get_document(num, "context"))
    assert "alert(1)" in str(store.service_data.get_document(num, "context"))
    assert secret not in "\n".join(store.connections.get().iterdump())
