"""The corpus and hostile requests sent to a running service: no error of the server, and nothing left behind."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.hostile.build import CASES, good_log
from tests.hostile.requests import CASES as REQUESTS, RequestCase
from tests.hostile.uploads import SETTINGS, measure_memory, send_corpus
from tests.service.server_process import ServerProcess, run_server, wait_for

EVERY = 9
"""One case in so many is sent by the tests; `make hostile` sends all."""
MOST_LEFT = 128 << 20
"""Bytes by which the service may have grown at the end: caches of the store and of the catalog."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running service whose directory has a directory of its own."""
    place = tmp_path_factory.mktemp("served") / "data"
    place.mkdir()
    with run_server(place / "triage.db", **SETTINGS) as process:
        yield process


def list_files(directory: Path) -> set[Path]:
    """Return what is in a directory, without the data of the service itself."""
    return {path for path in directory.rglob("*") if "data" not in path.parts}


def test_the_corpus_as_uploads(server: ServerProcess) -> None:
    """Every upload is diagnosed as the good log in it; processes, files and memory are afterwards as before."""
    good = good_log()
    assert send_corpus(server, CASES[:1], good) == []
    place = server.store.parent.parent
    before = measure_memory(server.process.pid), sorted(server.children()), list_files(place)
    assert send_corpus(server, CASES[1::EVERY], good) == []
    assert (sorted(server.children()), list_files(place)) == before[1:]
    assert not list(Path("/tmp").glob("triage-escaped*"))
    wait_for(lambda: measure_memory(server.process.pid) < before[0] + MOST_LEFT, 30)


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case.name)
def test_a_hostile_request_is_refused(server: ServerProcess, case: RequestCase) -> None:
    """It is answered with one of the expected statuses, never with 5xx, and the next client is served."""
    answer = send(server, case.data)
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    assert (int(match[1]) if match else 0) in case.statuses, answer[:300]
    assert b"root:x:0" not in answer
    assert server.client.get("/api/v1/health").status_code == 200
    assert not Path("/tmp/triage-escaped.log").exists()


def send(server: ServerProcess, data: bytes) -> bytes:
    """Return the first bytes of the answer; nothing where the connection is closed without one."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    answer, deadline = b"", time.monotonic() + 30
    with socket.create_connection((host, int(port)), timeout=15) as connection:
        with suppress(ConnectionError, TimeoutError):
            connection.sendall(data)
        with suppress(ConnectionError, TimeoutError):
            while (piece := connection.recv(1 << 16)) and time.monotonic() < deadline:
                answer += piece
    return answer
