"""triage.service.connection_limits, with real sockets on loopback: 127.0.0.2 is the attacker, 127.0.0.1 all others."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.server_process import ServerProcess, run_server, wait_for

ATTACKER = "127.0.0.2"
HALF_HEADERS = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
COMPLETE = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
STALLED_BODY = b"POST /api/v1/ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" + (
    b"Content-Length: 1000\r\n\r\n{"
)


def connect(server: ServerProcess, address: str = ATTACKER, send: bytes = b"") -> socket.socket:
    """Return a connection from an address, after sending some bytes."""
    url = httpx.URL(server.url)
    client = socket.create_connection((url.host, int(url.port or 0)), timeout=30, source_address=(address, 0))
    with contextlib.suppress(ConnectionError):
        client.sendall(send)
    return client


@contextlib.contextmanager
def many_connections(
    server: ServerProcess, count: int, send: bytes, address: str = ATTACKER
) -> Iterator[list[socket.socket]]:
    """Hold so many connections open."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(connect(server, address, send)) for _ in range(count)]


def ask(client: socket.socket) -> bytes:
    """Send a request and return its whole response; the connection stays open."""
    client.settimeout(30)
    client.sendall(COMPLETE)
    answer = b""
    while not answer.endswith(b"}}") and (part := client.recv(4096)):
        answer += part
    return answer


def can_send(client: socket.socket, data: bytes) -> bool:
    """Whether the server has not closed the connection; it need not read."""
    try:
        client.sendall(data)
    except TimeoutError:
        return True
    except ConnectionError:
        return False
    return True


def is_closed(client: socket.socket) -> bool:
    """Whether the server closed the connection."""
    client.settimeout(0.01)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def health_statuses(server: ServerProcess, count: int = 20) -> set[int]:
    """Return the statuses of requests, each on a connection of its own."""
    return {httpx.get(f"{server.url}/api/v1/health", timeout=30, trust_env=False).status_code for _ in range(count)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the default limits, without workers."""
    with run_server(tmp_path_factory.mktemp("served") / "triage.db", "--workers", "0") as running:
        yield running


@pytest.fixture(scope="module")
def impatient_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that waits a second for headers and for readers, without workers."""
    place = tmp_path_factory.mktemp("impatient")
    with run_server(place / "triage.db", "--workers", "0", web_slow_seconds=1) as running:
        yield running


@pytest.mark.parametrize("address", [ATTACKER, "127.0.0.1"])
def test_half_open_connections_do_not_stop_others(server: ServerProcess, address: str) -> None:
    """ASVS 15.2.2: with 1,200 connections that never finish their headers, /health answers, also to their address."""
    with many_connections(server, 1200, HALF_HEADERS, address) as connections:
        assert health_statuses(server) == {200}
        wait_for(lambda: sum(map(is_closed, connections)) >= 1000, 30)
    assert any(event["event"] == "connections dropped" for event in server.read_log())


def test_silent_connections_of_many_addresses_do_not_stop_others(server: ServerProcess) -> None:
    """ASVS 15.2.2: above web.connections silent ones are dropped: /health answers beside 8 addresses with 150 each."""
    with contextlib.ExitStack() as stack:
        for number in range(8):
            stack.enter_context(many_connections(server, 150, b"", f"127.0.1.{number + 1}"))
        assert health_statuses(server) == {200}


def test_stalled_requests_do_not_stop_others(server: ServerProcess) -> None:
    """ASVS 15.2.2: with 200 clients that stop in the middle of a body, pages, /health and uploads of others answer."""
    with many_connections(server, 200, STALLED_BODY):
        assert health_statuses(server) == {200}
        assert server.client.get("/incidents", headers={"Accept": "text/html"}).status_code == 200
        answer = server.client.post("/api/v1/uploads", files={"file": ("rank0.log", b"text\n")})
        assert answer.status_code == 202, answer.text


def test_requests_of_one_address_are_not_counted_for_another(tmp_path: Path) -> None:
    """ASVS 2.4.1: nobody is signed in on loopback, so that the limit of requests is that of each address."""
    with run_server(tmp_path / "triage.db", "--workers", "0", web_requests_a_minute=30, web_processes=1) as server:
        with connect(server) as attacker:
            assert [ask(attacker).startswith(b"HTTP/1.1 200") for _ in range(31)] == [True] * 30 + [False]
        assert health_statuses(server, 3) == {200}


def test_busy_connections_of_one_client_are_limited(tmp_path: Path) -> None:
    """ASVS 15.2.2: requests at work are never dropped: above the limit the new connection of that client is closed."""
    with (
        run_server(tmp_path / "triage.db", "--workers", "0", web_client_connections=5) as server,
        many_connections(server, 5, STALLED_BODY) as busy,
    ):
        time.sleep(0.3)
        with connect(server, send=HALF_HEADERS) as late, connect(server, "127.0.0.3", HALF_HEADERS) as other:
            wait_for(lambda: is_closed(late), 5)
            assert not is_closed(other)
        assert not any(map(is_closed, busy))
        assert health_statuses(server, 3) == {200}


@pytest.mark.parametrize("send", [b"", HALF_HEADERS])
def test_slow_headers_end_the_connection(impatient_server: ServerProcess, send: bytes) -> None:
    """ASVS 15.2.2: headers have web.slow_seconds in all, however they drip; a client in time stays connected."""
    with connect(impatient_server, send=send) as slow, connect(impatient_server) as good:
        assert ask(good).startswith(b"HTTP/1.1 200")
        deadline = time.monotonic() + 10
        while not is_closed(slow):
            assert time.monotonic() < deadline
            with contextlib.suppress(ConnectionError):
                slow.sendall(b"x" if send else b"")
            time.sleep(0.2)
        assert ask(good).startswith(b"HTTP/1.1 200")


def test_a_second_request_has_the_same_time(impatient_server: ServerProcess) -> None:
    """ASVS 15.2.2: a connection that was of use is closed when the headers of its next request do not end."""
    with connect(impatient_server) as client:
        assert ask(client).startswith(b"HTTP/1.1 200")
        client.sendall(HALF_HEADERS)
        wait_for(lambda: is_closed(client), 10)


def test_clients_that_read_nothing_are_dropped(impatient_server: ServerProcess) -> None:
    """ASVS 15.2.2: a client that asks for many large answers and reads none is closed after web.slow_seconds."""
    request = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connect(impatient_server) as client:
        client.settimeout(1)
        wait_for(lambda: not can_send(client, request * 50), 60)
        assert health_statuses(impatient_server, 3) == {200}


def upload(server: ServerProcess, content: bytes, declared: int) -> httpx.Response:
    """Send the beginning of an upload that declares so many bytes."""
    digest = hashlib.sha256(content).hexdigest()
    headers = {
        "Content-Type": "application/octet-stream",
        "Upload-Offset": "0",
        "Upload-Length": str(declared),
    }
    return server.client.patch(f"/api/v1/uploads/{digest}", content=content, headers=headers)


def test_declared_bytes_have_a_quota(tmp_path: Path) -> None:
    """ASVS 5.2.4: after four partial uploads of 2 GiB the fifth is refused (429); when one is gone, another fits."""
    with run_server(tmp_path / "triage.db", "--workers", "0", tasks_disk_free=0) as server:
        answers = [upload(server, b"%d" % number, 2 << 30) for number in range(6)]
        assert [answer.status_code for answer in answers] == [200] * 4 + [429] * 2
        error = answers[-1].json()["error"]
        assert error["code"] == "upload-quota"
        assert "24 hours" in error["hint"]
        assert upload(server, b"0", 2 << 30).status_code == 409  # it may continue, at another offset
        (tmp_path / "uploads" / "parts" / hashlib.sha256(b"0").hexdigest()).unlink()  # as after tasks.partial_hours
        assert upload(server, b"complete", 8).json()["complete"]
        assert upload(server, b"new", 2 << 30).status_code == 200


def test_uploads_in_progress_have_a_limit(tmp_path: Path) -> None:
    """ASVS 5.2.4: stalled uploads count until they end; then others are accepted."""
    head = b"PATCH /api/v1/uploads/%064x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
    head += b"Upload-Offset: 0\r\nUpload-Length: 1000\r\nContent-Length: 1000\r\n\r\nx"
    with run_server(tmp_path / "triage.db", "--workers", "0", tasks_client_open_uploads=3) as server:
        assert server.client.get("/api/v1/limits").json()["client_open_uploads"] == 3
        with contextlib.ExitStack() as stack:
            for number in range(3):
                stack.enter_context(connect(server, send=head % number))
            wait_for(lambda: len(list((tmp_path / "uploads" / "parts").iterdir())) == 3, 10)
            answer = upload(server, b"one more", 8)
            assert answer.status_code == 429
            assert answer.json()["error"]["code"] == "too-many-uploads"
            form = server.client.post("/api/v1/uploads", files={"file": ("rank0.log", b"text\n")})
            assert form.status_code == 429
        wait_for(lambda: upload(server, b"one more", 8).status_code == 200, 10)
