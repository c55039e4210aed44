"""From an upload, a source or an alert to an incident, through the API."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.service.conftest import copy_flight_dumps, job_path
from triage.service.app import create_app
from triage.service.work import job_files
from triage.service.work.worker import Worker
from triage.settings import Settings
from triage.settings.sections import Source, StoreSettings
from triage.store import Store

ARCHIVED_JOB = "disk_full_tee"
BYTES = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def settings(path: Path, tmp_path: Path) -> Settings:
    """Settings with two sources."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "1234").symlink_to(job_path(ARCHIVED_JOB))
    (jobs / "1235").mkdir()
    (jobs / "1235" / "rank0.log").write_text(
        "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: 1235 broke\n"
    )
    one = Source(path=job_path(), one=True)
    return Settings(store=StoreSettings(path=path), sources={"slurm": Source(path=jobs), "last": one})


@pytest.fixture
def source_client(settings: Settings, store: Store) -> Iterator[TestClient]:
    with TestClient(create_app(settings, store), base_url="http://127.0.0.1:8321") as client:
        yield client


@pytest.fixture(scope="module")
def archive() -> bytes:
    return pack_directory(job_path(ARCHIVED_JOB))


def run_task(client: TestClient, settings: Settings, store: Store, task: str) -> str:
    """Let a worker do the task. Returns the id of the incident."""
    Worker(settings, store).do_next_task()
    ended = client.get(f"/api/v1/tasks/{task}").json()
    assert (ended["state"], ended["error"]) == ("done", None)
    return str(ended["result"]["incident"])


def test_form_upload_becomes_an_incident(
    source_client: TestClient, settings: Settings, store: Store, archive: bytes
) -> None:
    """A form answers 202 with a task; its incident has a verdict, lines around the evidence and an environment."""
    answer = source_client.post("/api/v1/uploads", files={"file": ("job.tar.gz", archive)}, data={"name": "a job"})
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/api/v1/tasks/{answer.json()['id']}"
    incident = run_task(source_client, settings, store, answer.json()["id"])
    report = source_client.get(f"/api/v1/incidents/{incident}").json()
    assert report["root_cause"]["signature"] == "checkpoint.no-space"
    assert report["job"]["name"] == "a job"
    pieces = source_client.get(f"/api/v1/incidents/{incident}/evidence").json()["evidence"]
    number = next(piece["number"] for piece in pieces if piece["line"])
    context = source_client.get(f"/api/v1/incidents/{incident}/evidence/{number}/context", params={"around": 3}).json()
    first = context["lines"][pieces[number]["line"] - context["line"]]
    assert pieces[number]["text"].split("\n")[0][:30] in first
    raw = source_client.get(f"/api/v1/incidents/{incident}/evidence/{number}/raw", params={"around": 3}).text
    assert raw == "\n".join(context["lines"]) + "\n"
    assert source_client.get(f"/api/v1/incidents/{incident}/environment").json()["schema"] == "triage.environment/1"
    assert source_client.get(f"/api/v1/incidents/{incident}/flight").status_code == 404


def pack_directory(path: Path) -> bytes:
    """Return a directory as a compressed archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.add(path, "job")
    return out.getvalue()


def test_flight_dumps_become_a_matrix(
    source_client: TestClient, settings: Settings, store: Store, tmp_path: Path
) -> None:
    """Uploaded Flight Recorder dumps become a flight matrix that shows the missing rank."""
    archive = {"file": ("dumps.tar.gz", pack_directory(copy_flight_dumps(tmp_path / "dumps")))}
    incident = run_task(
        source_client, settings, store, source_client.post("/api/v1/uploads", files=archive).json()["id"]
    )
    matrix = source_client.get(f"/api/v1/incidents/{incident}/flight").json()
    assert matrix["schema"] == "triage.flight/1"
    root = source_client.get(f"/api/v1/incidents/{incident}").json()["root_cause"]
    assert [fault["ranks"] for fault in matrix["faults"] if not fault["explained_by"]] == [root["ranks"]] != [[]]


def test_content_identifies_the_job(source_client: TestClient, settings: Settings, store: Store) -> None:
    """The same content is the same job under any file name; other content is another job."""
    log = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: the tokenizer is gone\n"
    incidents = []
    for text, name in ((log, "rank0.log"), ("a second run\n" + log, "rank0.log"), (log, "rank0-again.log")):
        task = source_client.post("/api/v1/uploads", files={"file": (name, text)}).json()
        assert task["name"] == name
        incidents.append(run_task(source_client, settings, store, task["id"]))
    assert incidents[0] == incidents[2] != incidents[1]
    jobs = [source_client.get(f"/api/v1/incidents/{incident}").json()["job"] for incident in incidents[:2]]
    assert len({job["path"] for job in jobs}) == 2
    assert not [job for job in jobs if str(job_files.upload_directory(settings)) in job["path"]]
    cluster = source_client.get(f"/api/v1/incidents/{incidents[0]}").json()["root_cause"]["cluster"]
    assert source_client.get(f"/api/v1/clusters/{cluster}").json()["jobs"] == 2


def test_interrupted_upload_continues(
    source_client: TestClient, settings: Settings, store: Store, archive: bytes
) -> None:
    """An upload by SHA-256 continues at its offset; wrong offsets, digests and lengths are refused."""
    digest, half = hashlib.sha256(archive).hexdigest(), len(archive) // 2
    address, length = f"/api/v1/uploads/{digest}", {"Upload-Length": str(len(archive)), **BYTES}
    assert source_client.head(address).status_code == 404
    first = source_client.patch(address, content=archive[:half], headers={"Upload-Offset": "0", **length})
    assert (first.status_code, first.json()["received"], first.json()["complete"]) == (200, half, False)
    assert source_client.head(address).headers["upload-offset"] == str(half)
    wrong = source_client.patch(address, content=archive[half:], headers={"Upload-Offset": "0", **length})
    assert (wrong.status_code, wrong.headers["upload-offset"]) == (409, str(half))
    body = {"files": [{"sha256": digest, "name": "job.tar.gz"}]}
    assert source_client.post("/api/v1/ingest", json=body).json()["error"]["code"] == "missing-upload"
    last = source_client.patch(address, content=archive[half:], headers={"Upload-Offset": str(half), **length})
    assert (last.status_code, last.json()["complete"]) == (200, True)
    again = source_client.patch(address, content=archive, headers={"Upload-Offset": "0", **length})
    assert (again.status_code, again.json()["complete"]) == (200, True)
    task = source_client.post("/api/v1/ingest", json=body).json()["id"]
    assert source_client.post("/api/v1/ingest", json=body).json()["id"] == task
    run_task(source_client, settings, store, task)
    wrong_digest = source_client.patch(
        f"/api/v1/uploads/{'0' * 64}", content=b"xx", headers={"Upload-Offset": "0", "Upload-Length": "2", **BYTES}
    )
    assert (wrong_digest.status_code, wrong_digest.json()["error"]["code"]) == (422, "wrong-digest")
    assert source_client.head(f"/api/v1/uploads/{'0' * 64}").status_code == 404
    too_long = source_client.patch(
        f"/api/v1/uploads/{'1' * 64}", content=b"xxx", headers={"Upload-Offset": "0", "Upload-Length": "2", **BYTES}
    )
    assert too_long.status_code == 413


def test_sources_are_named_without_their_path(source_client: TestClient, settings: Settings, store: Store) -> None:
    """Jobs are ingested from configured sources by name; paths are neither shown nor accepted."""
    answer = source_client.get("/api/v1/sources")
    assert answer.json() == {"sources": [{"name": "last", "one": True}, {"name": "slurm", "one": False}]}
    task = source_client.post("/api/v1/ingest", json={"source": "slurm", "job": "1235"}).json()["id"]
    incident = run_task(source_client, settings, store, task)
    assert source_client.get(f"/api/v1/incidents/{incident}").json()["verdict"] == "unknown"
    one = run_task(
        source_client, settings, store, source_client.post("/api/v1/ingest", json={"source": "last"}).json()["id"]
    )
    assert source_client.get(f"/api/v1/incidents/{one}").json()["root_cause"]["signature"] == "data.worker-killed"
    for body, status in (
        ({"source": "slurm"}, 400),
        ({"source": "slurm", "job": "1234"}, 404),  # a link out of the source
        ({"source": "none", "job": "1"}, 404),
        ({"source": "last", "job": "x"}, 400),
        ({}, 400),
    ):
        assert source_client.post("/api/v1/ingest", json=body).status_code == status, body


def test_event_stream_ends_with_the_task(source_client: TestClient, store: Store) -> None:
    """Server-sent events report the state of a task until it ends."""
    task = store.tasks.add("ingest", {"place": {}}, actor="local")
    store.tasks.cancel(task.id, actor="local")
    with source_client.stream("GET", f"/api/v1/tasks/{task.id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: ")]
    assert [event["state"] for event in events] == ["cancelled"]


def test_waiting_task_can_be_cancelled(source_client: TestClient, settings: Settings, store: Store) -> None:
    """A cancelled task that waits is never started."""
    task = source_client.post("/api/v1/ingest", json={"source": "slurm", "job": "1235"}).json()["id"]
    assert source_client.delete(f"/api/v1/tasks/{task}").json()["state"] == "cancelled"
    assert not Worker(settings, store).do_next_task()


def test_alert_starts_an_ingest(source_client: TestClient, store: Store) -> None:
    """Each firing alert ingests its job; alerts without a valid job are skipped, repeated ones do nothing."""
    alerts = [
        {
            "status": "firing",
            "labels": {"alertname": "JobFailed", "job": "1235"},
            "startsAt": "2026-11-21T03:00:00Z",
            "fingerprint": "a",
        },
        {"status": "firing", "labels": {"alertname": "JobFailed"}},
        {"status": "resolved", "labels": {"job": "1235"}},
        {"status": "firing", "labels": {"job": "../../etc"}},
    ]
    body = {
        "version": "4",
        "groupKey": "{}",
        "status": "firing",
        "receiver": "triage",
        "truncatedAlerts": 0,
        "alerts": alerts,
    }
    answer = source_client.post("/api/v1/alerts/slurm", json=body)
    assert answer.status_code == 202
    assert [task["name"] for task in answer.json()["tasks"]] == ["1235"]
    assert [item["job"] for item in answer.json()["skipped"]] == ["", "../../etc"]
    again = source_client.post("/api/v1/alerts/slurm", json=body).json()
    assert again["tasks"][0]["id"] == answer.json()["tasks"][0]["id"]
    assert source_client.post("/api/v1/alerts/slurm", json={**body, "version": "3"}).status_code == 422
    assert store.tasks.counts() == {"queued": 1}


def test_metrics_are_at_the_conventional_address(source_client: TestClient) -> None:
    """`/metrics` has the metrics of the API."""
    answer = source_client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "triage_incidents 3" in answer.text


def test_metrics_for_prometheus(source_client: TestClient) -> None:
    """Prometheus' client reads incidents, tasks by state, and responses by status and time."""
    parser = pytest.importorskip("prometheus_client.parser")
    source_client.get("/api/v1/incidents")
    source_client.get("/api/v1/incidents/none")
    values = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(source_client.get("/api/v1/metrics").text)
        for sample in family.samples
    }
    assert values[("triage_incidents",)] == 3
    assert values[("triage_tasks", ("state", "queued"))] == 0
    assert values[("triage_http_responses_total", ("status", "2xx"))] == 1
    assert values[("triage_http_responses_total", ("status", "4xx"))] == 1
    assert values[("triage_http_response_seconds_bucket", ("le", "+Inf"))] == 2


def test_readiness(source_client: TestClient, settings: Settings, store: Store) -> None:
    """The service is ready while store, catalog, uploads and workers are; else 503 with the reason."""
    assert source_client.get("/api/v1/ready").json()["status"] == "ok"
    store.tasks.add("ingest", {}, actor="a", now=1.0)
    root = job_files.upload_directory(settings)
    root.rename(root.with_name("away"))
    answer = source_client.get("/api/v1/ready")
    assert answer.status_code == 503
    assert {name for name, result in answer.json()["checks"].items() if result != "ok"} == {"tasks", "uploads"}
