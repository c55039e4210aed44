"""What hostile clients and hostile files get: matrices, each naming the requirement of ASVS 5.0 that it proves
(docs/security.md maps them).
"""

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
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from tests.service.serving import Server, eventually, serving
from triage.base.errors import OptionError
from triage.service.app import create_app
from triage.service.crosssite import forged
from triage.service.failure import ServiceError
from triage.service.headers import POLICY
from triage.service.limits import Buckets
from triage.service.log import say
from triage.service.work import files
from triage.settings import Settings
from triage.settings.sources import Source
from triage.settings.store import Store as StoreSection
from triage.settings.tasks import Tasks
from triage.settings.web import Web
from triage.store import Store

ROOT = Path(__file__).resolve().parents[2]
KIB = 1 << 10
BROKEN = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: <script>alert(1)</script>\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real one with small limits."""
    place = tmp_path_factory.mktemp("served")
    with serving(
        place / "triage.db",
        tasks_upload_bytes=3 << 20,
        tasks_upload_files=5,
        web_slow_seconds=1.5,
        tasks_seconds=20,
        web_changes_a_minute=10_000,
    ) as found:
        yield found


def raw(server: Server, data: bytes, *, wait: float = 10.0) -> bytes:
    """What comes back for bytes as they are, until the server closes or `wait` seconds have passed."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=wait) as connection:
        connection.sendall(data)
        out = b""
        try:
            while piece := connection.recv(1 << 16):
                out += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return out


def finished(server: Server, task: str) -> dict[str, object]:
    """The task, once it has ended."""

    def ended() -> dict[str, object] | None:
        found: dict[str, object] = server.client.get(f"/api/v1/tasks/{task}").json()
        return found if found["state"] in ("done", "failed", "cancelled") else None

    found: dict[str, object] = eventually(ended)
    return found


@pytest.mark.parametrize("size", [3 << 20 | 1, (3 << 20) + (2 << 20)], ids=["by one byte", "by far"])
@pytest.mark.parametrize("told", [True, False], ids=["Content-Length", "chunked"])
def test_oversize_uploads_are_refused(server: Server, size: int, told: bool) -> None:
    """ASVS 5.2.1: bytes are counted as they come, whatever the headers say; nothing of it stays."""
    form = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.log"\r\n\r\n' + b"x" * size + b"\r\n--b--\r\n"
    )
    content = form if told else (form[start : start + 65536] for start in range(0, len(form), 65536))
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    try:
        status = server.client.post("/api/v1/uploads", content=content, headers=headers).status_code
    except (httpx.WriteError, httpx.ReadError):  # it closed while we were still sending
        status = 413
    assert status == 413
    assert [
        path for path in (server._store.parent / "uploads" / "parts").iterdir() if path.name.startswith("form-")
    ] == []


def test_oversize_requests_are_refused(server: Server) -> None:
    """ASVS 15.2.2: what is no upload may hold a megabyte, told or not."""
    assert server.client.post("/api/v1/ingest", content=b"x" * (1 << 20 | 1)).status_code == 413
    pieces = (b" " * 65536 for _ in range(17))
    assert (
        server.client.post("/api/v1/ingest", content=pieces, headers={"Content-Type": "application/json"}).status_code
        == 413
    )


def test_too_many_files_are_refused(server: Server) -> None:
    """ASVS 5.2.4: the number of files is limited, and the number of parts of a form."""
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
        archive.writestr(name, BROKEN)
    return out.getvalue()


EVIL = {
    "dots": _tar((tarfile.TarInfo("../../evil.log"), BROKEN.encode())),
    "absolute": _tar((tarfile.TarInfo("/tmp/triage-evil.log"), BROKEN.encode())),
    "symlink": _tar(
        _link("rank0.log", "/etc/passwd", tarfile.SYMTYPE), (tarfile.TarInfo("rank1.log"), BROKEN.encode())
    ),
    "hard link": _tar(
        _link("rank0.log", "/etc/passwd", tarfile.LNKTYPE), (tarfile.TarInfo("rank1.log"), BROKEN.encode())
    ),
    "device": _tar(_link("rank0.log", "", tarfile.CHRTYPE), (tarfile.TarInfo("rank1.log"), BROKEN.encode())),
    "zip dots": _zip("../../evil.log"),
}


@pytest.mark.parametrize("data", EVIL.values(), ids=EVIL.keys())
def test_archives_lead_nowhere(server: Server, data: bytes) -> None:
    """ASVS 5.2.5, 5.3.3: links, devices and paths of an archive are read from nothing and written nowhere."""
    before = {path for path in server._store.parent.rglob("*") if "uploads" not in path.parts}
    answer = server.client.post("/api/v1/uploads", files={"file": ("job.tar.gz", data)})
    found = finished(server, answer.json()["id"])
    assert found["state"] in ("done", "failed")
    assert {path for path in server._store.parent.rglob("*") if "uploads" not in path.parts} - before <= {
        server._store.with_name("triage.db-wal")
    }
    assert not Path("/tmp/triage-evil.log").exists()
    assert "root:x:0" not in server.client.get("/api/v1/search", params={"q": "root bash nologin"}).text


def test_a_bomb_ends_its_task_only(server: Server) -> None:
    """ASVS 5.2.3: a gigabyte of zeros in a small file costs its own task, in its limits; the service goes on."""
    bomb = zlib.compressobj(9, wbits=31)
    data = b"".join([*(bomb.compress(bytes(1 << 24)) for _ in range(64)), bomb.flush()])
    assert len(data) < 2 << 20
    task = server.client.post("/api/v1/uploads", files={"file": ("bomb.log.gz", data)}).json()["id"]
    began = time.monotonic()
    assert server.client.get("/api/v1/incidents").status_code == 200
    assert finished(server, task)["state"] in ("done", "failed")
    assert time.monotonic() - began < 60


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
def test_names_of_files_are_never_paths(name: str) -> None:
    """ASVS 5.3.2: of a name that a client sends only letters, digits and a few signs are kept, and no directory."""
    clean = files.harmless(name)
    assert re.fullmatch(r"[A-Za-z0-9_@:+=][A-Za-z0-9._@:+=-]{0,199}", clean)
    assert "/" not in clean


@given(st.lists(st.text(), min_size=1, max_size=8))
def test_names_of_files_stay_apart(names: list[str]) -> None:
    """ASVS 5.3.2: whatever the names are, each file gets one of its own."""
    clean = files.harmless_all(names)
    assert len(set(clean)) == len(names)
    assert all(not name.startswith((".", "-")) and "/" not in name for name in clean)


ADDRESSES = [
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


@pytest.mark.parametrize("job", ADDRESSES)
def test_no_address_and_no_path_comes_from_a_client(tmp_path: Path, job: str) -> None:
    """ASVS 1.3.6, 5.3.2: a job is the name of an entry in a configured directory; links out of it lead nowhere."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "link-out").symlink_to("/etc")
    with pytest.raises(ServiceError) as caught:
        files.source_path({"slurm": Source(path=tmp_path / "jobs")}, "slurm", job)
    assert caught.value.status in (400, 404)


@pytest.mark.parametrize("place", ["http://example.org/", "s3://bucket/x", "relative/dir"])
def test_sources_are_directories_of_this_machine(place: str, store: Store) -> None:
    """ASVS 1.3.6: not even the configuration can make the service fetch from elsewhere."""
    from triage.service import access

    with pytest.raises(OptionError):
        access.check(Settings(sources={"x": Source(path=Path(place))}), store)


SITES = [
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


@pytest.mark.parametrize(("method", "headers", "expected"), SITES)
def test_other_sites_change_nothing(method: str, headers: dict[str, str], expected: bool) -> None:
    """ASVS 3.5.1: by Sec-Fetch-Site, else by Origin; programs with a token and no cookie are no browsers."""
    assert forged(method, Headers({"host": "here", **headers}), frozenset({"https://public"})) is expected


def test_the_refusal_stands_before_every_address(client: TestClient) -> None:
    """ASVS 3.5.1: whatever would change something is refused when another site sends it."""
    for path in ("/api/v1/ingest", "/api/v1/uploads", "/auth/token", "/auth/sign-out", "/api/v1/clusters/u-1/ignore"):
        answer = client.post(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross-site")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "", "[::2]", "evil@127.0.0.2"]
)
def test_other_names_are_refused(client: TestClient, host: str) -> None:
    """ASVS 3.5.8: a name that another made point here (DNS rebinding) opens nothing."""
    assert client.get("/api/v1/incidents", headers={"Host": host}).status_code in (400, 421)


@pytest.mark.parametrize(
    "address", ["/api/v1/incidents", "/api/v1/nope", "/api/v1/incidents/i-none", "/static/main.js", "/api/v1/health"]
)
def test_every_answer_has_its_headers(client: TestClient, address: str) -> None:
    """ASVS 3.4.3, 3.4.4, 3.4.5, 3.4.6, 3.4.8, 3.5.8: a strict policy, nosniff, no framing, no referrer and no window
    for others, on errors too.
    """
    headers = client.get(address).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "'none'" in POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


def test_log_text_is_only_a_file(client: TestClient) -> None:
    """ASVS 3.2.1, 5.4.1: raw lines and reports come as attachments under harmless names, and in a sandbox."""
    incident = client.get("/api/v1/incidents").json()["incidents"][0]["id"]
    raw_ = client.get(f"/api/v1/incidents/{incident}/evidence/0/raw")
    assert raw_.headers["content-type"] == "text/plain; charset=utf-8"
    for answer in (
        raw_,
        *(
            client.get(f"/api/v1/incidents/{incident}/report", params={"format": name})
            for name in ("text", "html", "markdown")
        ),
    ):
        assert re.fullmatch(r'attachment; filename="[\w.-]+"', answer.headers["content-disposition"])
        assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PUT", "PROPFIND", "OPTIONS", "PATCH"])
def test_methods_that_nobody_uses_are_refused(client: TestClient, method: str) -> None:
    """ASVS 4.1.4: only the methods of the document; none of them is answered with what was sent."""
    answer = client.request(method, "/api/v1/incidents", headers={"X-Planted": "planted"})
    assert answer.status_code == 405
    assert "planted" not in answer.text


LARGE = [
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * (17 * KIB) + b"\r\n\r\n",
    b"GET /" + b"a" * (17 * KIB) + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"X%d: 1\r\n" % n for n in range(200)) + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * (80 * KIB),
]


@pytest.mark.parametrize("data", LARGE, ids=["one header", "the address", "many headers", "without an end"])
def test_large_headers_are_refused(server: Server, data: bytes) -> None:
    """ASVS 15.2.2: 16 KiB and a hundred headers are enough."""
    assert b" 431 " in raw(server, data)[:60]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX:",
        b"POST /api/v1/ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["nothing", "half a header", "half a body"],
)
def test_slow_clients_are_cut_off(server: Server, data: bytes) -> None:
    """ASVS 15.2.2: who sends nothing for a while loses the connection, before, in and after the headers."""
    began = time.monotonic()
    answer = raw(server, data, wait=30)
    assert time.monotonic() - began < 25
    assert answer == b"" or b" 408 " in answer[:60]


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["two lengths", "NUL in a header", "folded", "TLS"],
)
def test_broken_requests_are_refused(server: Server, data: bytes) -> None:
    """ASVS 4.2.1: what two readers could understand in two ways is refused."""
    assert raw(server, data)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 421")
    assert server.client.get("/api/v1/health").status_code == 200


def test_requests_of_one_client_are_limited() -> None:
    """ASVS 2.4.1: a minute's worth at once, then as they come back; others are not touched, and a flood of names costs
    no memory.
    """
    now = [0.0]
    buckets = Buckets(60, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(60)] == [0.0] * 60
    assert buckets.take("a") == pytest.approx(1.0)
    assert buckets.take("b") == 0.0
    now[0] += 1
    assert buckets.take("a") == 0.0
    for number in range(30_000):
        buckets.take(f"c{number}")
    assert len(buckets._all) <= 10_001


def test_a_client_that_asks_too_much_is_told_to_wait(path: Path, store: Store) -> None:
    """ASVS 2.4.1: 429 with Retry-After."""
    web = Web(requests_a_minute=5)
    with TestClient(
        create_app(Settings(store=StoreSection(path=path), web=web), store), base_url="http://127.0.0.1"
    ) as found:
        answers = [found.get("/api/v1/incidents") for _ in range(7)]
    assert [answer.status_code for answer in answers[:5]] == [200] * 5
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["Retry-After"]) >= 1


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.text(max_size=60),
    name=st.sampled_from(["q", "job", "host", "signature", "cluster", "domain", "since", "until", "after"]),
)
def test_any_words_are_safe(client: TestClient, words: str, name: str) -> None:
    """ASVS 1.2.4: whatever stands in a filter or a search is text to SQL, and never a 5xx."""
    words = words.encode("utf-8", "ignore").decode()
    assert client.get("/api/v1/search", params={"q": words}).status_code in (200, 422)
    assert client.get("/api/v1/incidents", params={name: words}).status_code in (200, 400, 422)
    assert client.get("/api/v1/stats", params={"q": words}).status_code == 200


def test_a_memory_hog_ends_alone(path: Path, store: Store) -> None:
    """ASVS 5.2.3, 15.2.2: a task over its memory or time fails with a reason, and its process is gone."""
    from triage.service.work import cage

    def hog(_: object) -> None:
        bytearray(1 << 34)

    def sleeper(_: object) -> None:
        time.sleep(60)

    ended = cage.run(hog, memory=1 << 30, seconds=30, threads=1, alive=lambda _: True)
    assert ended.how == "memory"
    ended = cage.run(sleeper, memory=1 << 30, seconds=1.0, threads=1, alive=lambda _: True)
    assert ended.how == "time"
    assert ended.error["hint"]
    ended = cage.run(
        lambda _: os.kill(os.getpid(), signal.SIGKILL), memory=1 << 30, seconds=30, threads=1, alive=lambda _: True
    )
    assert ended.how == "killed"
    ended = cage.run(sleeper, memory=1 << 30, seconds=30, threads=1, alive=lambda _: False)
    assert ended.how == "stopped"


def test_no_client_writes_lines_of_our_log(capsys: pytest.CaptureFixture[str]) -> None:
    """ASVS 16.4.1: one JSON object a line, whatever the values hold."""
    say("test", name='a\n{"event": "forged"}\r\n\x1b[31m\u2028')
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "\x1b" not in lines[0]


def test_errors_tell_nothing_of_the_inside(app: FastAPI) -> None:
    """ASVS 16.5.1, 16.5.4: a bug answers 500 in the one shape, without a trace."""

    def broken() -> None:
        raise ZeroDivisionError("secret inside")

    app.add_api_route("/api/v1/broken", broken)
    app.router.routes.insert(0, app.router.routes.pop())
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as found:
        answer = found.get("/api/v1/broken")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "bug"
    assert "inside" not in answer.text
    assert answer.headers["x-request-id"] in answer.json()["error"]["hint"]
    assert answer.headers["content-security-policy"] == POLICY


def test_secrets_of_uploads_are_not_kept_in_the_store(path: Path, store: Store, tmp_path: Path) -> None:
    """ASVS 14.2.4: neither the diagnosis nor the lines around it hold a secret that stood in the log."""
    from tests.service.work.test_worker import sent
    from triage.service.work.worker import Worker

    secret = "hf_" + "Q" * 34
    log = tmp_path / "rank0.log"
    log.write_text(f"export HF_TOKEN={secret}\n" + BROKEN + f"token {secret}\n")
    wanted = Settings(store=StoreSection(path=path), tasks=Tasks())
    store.tasks.add("ingest", sent(wanted, log), actor="a")
    Worker(wanted, store).step()
    num = store.connections.read("SELECT max(num) AS n FROM incident")[0]["n"]
    assert secret not in str(store.beside.document(num, "context"))
    assert "alert(1)" in str(store.beside.document(num, "context"))
    assert secret not in "\n".join(store.connections.get().iterdump())
