"""The service reads what its operator allows, and nothing else."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from triage import pipeline
from triage.base.errors import InputError, OptionError
from triage.base.options import Options
from triage.remote import session
from triage.remote.guarded_http import is_public
from triage.remote.interface import RemoteRules
from triage.service.app import create_app
from triage.service.work.worker import Worker
from triage.settings import Settings, load
from triage.settings.remote import RemoteSettings
from triage.settings.sections import StoreSettings
from triage.store import Store

from .conftest import Bucket

JOB = Path(__file__).resolve().parents[2] / "samples" / "jobs" / "sigkill_perrank" / "job"


@pytest.fixture
def service(s3: Bucket, tmp_path: Path) -> Iterator[tuple[TestClient, Settings, Store]]:
    """A service that may read one prefix of the bucket."""
    path = tmp_path / "triage.db"
    settings = Settings(
        store=StoreSettings(path=path),
        remote=RemoteSettings(allow=(f"s3://{s3.name}/jobs/", "https://example.org/logs/")),
    )
    base = "http://127.0.0.1:8321"
    with Store.open(path) as store, TestClient(create_app(settings, store), base_url=base) as client:
        yield client, settings, store


def test_a_job_at_an_address_becomes_an_incident(service: tuple[TestClient, Settings, Store], s3: Bucket) -> None:
    """A client names an allowed address; the incident has its evidence and the lines around it."""
    client, settings, store = service
    address = s3.put_directory(JOB, "jobs/1234")
    answer = client.post("/api/v1/ingest", json={"address": address, "name": "a job"})
    assert answer.status_code == 202
    Worker(settings, store).do_next_task()
    ended = client.get(f"/api/v1/tasks/{answer.json()['id']}").json()
    assert (ended["state"], ended["error"]) == ("done", None)
    report = client.get(f"/api/v1/incidents/{ended['result']['incident']}").json()
    assert report["job"]["path"] == address
    assert report["verdict"] == pipeline.ingest([str(JOB)]).verdict
    incident = ended["result"]["incident"]
    pieces = client.get(f"/api/v1/incidents/{incident}/evidence").json()["evidence"]
    number = next(piece["number"] for piece in pieces if piece["line"])
    context = client.get(f"/api/v1/incidents/{incident}/evidence/{number}/context", params={"around": 3})
    assert context.status_code == 200
    assert context.json()["lines"]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("s3://another-bucket/jobs/1/", 403),
        ("s3://{bucket}/other/1/", 403),
        ("s3://{bucket}/jobs/../other/1/", 403),
        ("s3://{bucket}/jobs-of-others/1/", 403),
        ("https://example.org/logs/%2e%2e/secret", 403),
        ("https://example.org.evil.example/logs/1", 403),
        ("https://me:secret@example.org/logs/1", 400),
        ("https://example.org/logs/1?X-Amz-Signature=abc", 400),
        ("file:///etc/passwd", 403),
        ("/etc/passwd", 403),
        ("http://169.254.169.254/latest/meta-data/", 403),
    ],
)
def test_other_addresses_are_refused(
    service: tuple[TestClient, Settings, Store], s3: Bucket, address: str, status: int
) -> None:
    """What is not below an allowed address is refused before anything is read, and a secret is not repeated."""
    answer = service[0].post("/api/v1/ingest", json={"address": address.format(bucket=s3.name)})
    assert answer.status_code == status
    assert "me:secret" not in answer.text
    assert "Signature" not in answer.text


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("::1", False),
        ("fd00::1", False),
        ("fe80::1%eth0", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("224.0.0.1", False),
        ("nonsense", False),
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
    ],
)
def test_internal_addresses(address: str, public: bool) -> None:
    """Loopback, private, link-local, shared and metadata addresses are not public, in any notation."""
    assert is_public(address) is public


class _Log(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/rank_0.log")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        text = b"Traceback (most recent call last):\n  File 'x'\nValueError: no tokens\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text if self.command == "GET" else b"")

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web_server(s3: Bucket) -> Iterator[str]:
    """A server on loopback that knows no ranges."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Log)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_service_does_not_reach_internal_hosts(web_server: str, host: str) -> None:
    """A host that is or resolves to loopback is refused under the rules of a service, unless it is named."""
    address = web_server.replace("127.0.0.1", host) + "/rank_0.log"
    session.set_rules(RemoteRules(internal_hosts=()))
    with pytest.raises(InputError, match=r"not public|Permission denied"):
        pipeline.ingest([address], Options(addresses=True))
    session.set_rules(RemoteRules(internal_hosts=(host,)))
    assert pipeline.ingest([address], Options(addresses=True)).stats.files == 1


def test_a_service_follows_no_redirect(web_server: str) -> None:
    """A redirect leads where nothing was allowed; a user of the command line may follow it."""
    session.set_rules(RemoteRules(internal_hosts=("127.0.0.1",)))
    answer = None
    with suppress(InputError):
        answer = pipeline.ingest([f"{web_server}/moved"], Options(addresses=True))
    assert answer is None or answer.root_cause is None
    session.set_rules(RemoteRules())
    followed = pipeline.ingest([f"{web_server}/moved"], Options(addresses=True))
    assert followed.verdict == "unknown"


@pytest.mark.parametrize("address", ["s3://bucket/jobs", "/srv/jobs/", "https://me:secret@example.org/"])
def test_what_cannot_be_allowed(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """A prefix must be an address, end in a slash and hold no password."""
    monkeypatch.setenv("TRIAGE_REMOTE_ALLOW", f'["{address}"]')
    with pytest.raises(OptionError, match=r"remote\.allow"):
        load()
