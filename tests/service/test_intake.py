"""From bytes to an incident over the API: forms, pieces, sources, alerts, and following the task."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.service.conftest import dumps, job
from triage.service.app import create_app
from triage.service.work import files
from triage.service.work.worker import Worker
from triage.settings import Settings
from triage.settings.sources import Source
from triage.settings.store import Store as StoreSection
from triage.store import Store

ARCHIVED = "disk_full_tee"
BYTES = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def wanted(path: Path, tmp_path: Path) -> Settings:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "1234").symlink_to(job(ARCHIVED))
    (jobs / "1235").mkdir()
    (jobs / "1235" / "rank0.log").write_text(
        "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: 1235 broke\n"
    )
    one = Source(path=job(), one=True)
    return Settings(store=StoreSection(path=path), sources={"slurm": Source(path=jobs), "last": one})


@pytest.fixture
def open_(wanted: Settings, store: Store) -> Iterator[TestClient]:
    with TestClient(create_app(wanted, store), base_url="http://127.0.0.1:8321") as client:
        yield client


@pytest.fixture(scope="module")
def archive() -> bytes:
    return packed(job(ARCHIVED))


def done(client: TestClient, wanted: Settings, store: Store, task: str) -> str:
    """Let a worker do the task; its incident."""
    Worker(wanted, store).step()
    found = client.get(f"/api/v1/tasks/{task}").json()
    assert (found["state"], found["error"]) == ("done", None)
    return str(found["result"]["incident"])


def test_a_form_becomes_an_incident(open_: TestClient, wanted: Settings, store: Store, archive: bytes) -> None:
    """202 with a task and where to follow it; then the verdict, the lines around the evidence, the environment, and
    every report.
    """
    answer = open_.post("/api/v1/uploads", files={"file": ("job.tar.gz", archive)}, data={"name": "a job"})
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/api/v1/tasks/{answer.json()['id']}"
    incident = done(open_, wanted, store, answer.json()["id"])
    report = open_.get(f"/api/v1/incidents/{incident}").json()
    assert report["root_cause"]["signature"] == "checkpoint.no-space"
    assert report["job"]["name"] == "a job"
    pieces = open_.get(f"/api/v1/incidents/{incident}/evidence").json()["evidence"]
    number = next(piece["number"] for piece in pieces if piece["line"])
    context = open_.get(f"/api/v1/incidents/{incident}/evidence/{number}/context", params={"around": 3}).json()
    first = context["lines"][pieces[number]["line"] - context["line"]]
    assert pieces[number]["text"].split("\n")[0][:30] in first
    raw = open_.get(f"/api/v1/incidents/{incident}/evidence/{number}/raw", params={"around": 3}).text
    assert raw == "\n".join(context["lines"]) + "\n"
    assert open_.get(f"/api/v1/incidents/{incident}/environment").json()["schema"] == "triage.environment/1"
    assert open_.get(f"/api/v1/incidents/{incident}/flight").status_code == 404


def packed(path: Path) -> bytes:
    """A directory as people send it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.add(path, "job")
    return out.getvalue()


def test_dumps_become_a_matrix(open_: TestClient, wanted: Settings, store: Store, tmp_path: Path) -> None:
    """Flight Recorder dumps that are uploaded: the calls of each group as `triage flight` gives them, with the rank
    that is missing.
    """
    made = {"file": ("dumps.tar.gz", packed(dumps(tmp_path / "dumps")))}
    incident = done(open_, wanted, store, open_.post("/api/v1/uploads", files=made).json()["id"])
    matrix = open_.get(f"/api/v1/incidents/{incident}/flight").json()
    assert matrix["schema"] == "triage.flight/1"
    root = open_.get(f"/api/v1/incidents/{incident}").json()["root_cause"]
    assert [fault["ranks"] for fault in matrix["faults"] if not fault["explained_by"]] == [root["ranks"]] != [[]]


def test_the_content_says_which_job_it_is(open_: TestClient, wanted: Settings, store: Store) -> None:
    """Other logs of the same file name are another job; the same content sent again is the same one, whatever it is
    called.
    """
    log = "[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: the tokenizer is gone\n"
    found = []
    for text, name in ((log, "rank0.log"), ("a second run\n" + log, "rank0.log"), (log, "rank0-again.log")):
        task = open_.post("/api/v1/uploads", files={"file": (name, text)}).json()
        assert task["name"] == name
        found.append(done(open_, wanted, store, task["id"]))
    assert found[0] == found[2] != found[1]
    told = [open_.get(f"/api/v1/incidents/{incident}").json()["job"] for incident in found[:2]]
    assert len({job["path"] for job in told}) == 2
    assert not [job for job in told if str(files.uploads(wanted)) in job["path"]]
    cluster = open_.get(f"/api/v1/incidents/{found[0]}").json()["root_cause"]["cluster"]
    assert open_.get(f"/api/v1/clusters/{cluster}").json()["jobs"] == 2


def test_pieces_go_on_where_they_broke_off(open_: TestClient, wanted: Settings, store: Store, archive: bytes) -> None:
    """By the SHA-256 of the content: pieces, a wrong offset, a file that is there already, other content; then an
    ingest of it.
    """
    digest, half = hashlib.sha256(archive).hexdigest(), len(archive) // 2
    address, length = f"/api/v1/uploads/{digest}", {"Upload-Length": str(len(archive)), **BYTES}
    assert open_.head(address).status_code == 404
    first = open_.patch(address, content=archive[:half], headers={"Upload-Offset": "0", **length})
    assert (first.status_code, first.json()["received"], first.json()["complete"]) == (200, half, False)
    assert open_.head(address).headers["upload-offset"] == str(half)
    wrong = open_.patch(address, content=archive[half:], headers={"Upload-Offset": "0", **length})
    assert (wrong.status_code, wrong.headers["upload-offset"]) == (409, str(half))
    asked = {"files": [{"sha256": digest, "name": "job.tar.gz"}]}
    assert open_.post("/api/v1/ingest", json=asked).json()["error"]["code"] == "missing-upload"
    last = open_.patch(address, content=archive[half:], headers={"Upload-Offset": str(half), **length})
    assert (last.status_code, last.json()["complete"]) == (200, True)
    again = open_.patch(address, content=archive, headers={"Upload-Offset": "0", **length})
    assert (again.status_code, again.json()["complete"]) == (200, True)
    task = open_.post("/api/v1/ingest", json=asked).json()["id"]
    assert open_.post("/api/v1/ingest", json=asked).json()["id"] == task
    done(open_, wanted, store, task)
    false = open_.patch(
        f"/api/v1/uploads/{'0' * 64}", content=b"xx", headers={"Upload-Offset": "0", "Upload-Length": "2", **BYTES}
    )
    assert (false.status_code, false.json()["error"]["code"]) == (422, "wrong-digest")
    assert open_.head(f"/api/v1/uploads/{'0' * 64}").status_code == 404
    more = open_.patch(
        f"/api/v1/uploads/{'1' * 64}", content=b"xxx", headers={"Upload-Offset": "0", "Upload-Length": "2", **BYTES}
    )
    assert more.status_code == 413


def test_a_source_is_named_and_never_shown(open_: TestClient, wanted: Settings, store: Store) -> None:
    """A job of a directory that was set up, or a directory that is one job; where it lies is told to nobody."""
    said = open_.get("/api/v1/sources")
    assert said.json() == {"sources": [{"name": "last", "one": True}, {"name": "slurm", "one": False}]}
    task = open_.post("/api/v1/ingest", json={"source": "slurm", "job": "1235"}).json()["id"]
    incident = done(open_, wanted, store, task)
    assert open_.get(f"/api/v1/incidents/{incident}").json()["verdict"] == "unknown"
    one = done(open_, wanted, store, open_.post("/api/v1/ingest", json={"source": "last"}).json()["id"])
    assert open_.get(f"/api/v1/incidents/{one}").json()["root_cause"]["signature"] == "data.worker-killed"
    for body, status in (
        ({"source": "slurm"}, 400),
        ({"source": "slurm", "job": "1234"}, 404),  # a link that leads out
        ({"source": "none", "job": "1"}, 404),
        ({"source": "last", "job": "x"}, 400),
        ({}, 400),
    ):
        assert open_.post("/api/v1/ingest", json=body).status_code == status, body


def test_events_follow_a_task_to_its_end(open_: TestClient, store: Store) -> None:
    """Server-sent events: the state as it changes, and the stream ends with the task."""
    task = store.tasks.add("ingest", {"place": {}}, actor="local")
    store.tasks.cancel(task.id, actor="local")
    with open_.stream("GET", f"/api/v1/tasks/{task.id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: ")]
    assert [event["state"] for event in events] == ["cancelled"]


def test_a_task_that_waits_can_be_stopped(open_: TestClient, wanted: Settings, store: Store) -> None:
    """It is cancelled at once, and no worker takes it."""
    task = open_.post("/api/v1/ingest", json={"source": "slurm", "job": "1235"}).json()["id"]
    assert open_.delete(f"/api/v1/tasks/{task}").json()["state"] == "cancelled"
    assert not Worker(wanted, store).step()


def test_alertmanager_begins_an_ingest(open_: TestClient, store: Store) -> None:
    """Of each firing alert its job; what has no job is told, what is resolved or waits already begins nothing."""
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
    answer = open_.post("/api/v1/alerts/slurm", json=body)
    assert answer.status_code == 202
    assert [task["name"] for task in answer.json()["tasks"]] == ["1235"]
    assert [item["job"] for item in answer.json()["skipped"]] == ["", "../../etc"]
    again = open_.post("/api/v1/alerts/slurm", json=body).json()
    assert again["tasks"][0]["id"] == answer.json()["tasks"][0]["id"]
    assert open_.post("/api/v1/alerts/slurm", json={**body, "version": "3"}).status_code == 422
    assert store.tasks.counts() == {"queued": 1}


def test_numbers_for_prometheus(open_: TestClient) -> None:
    """Incidents, tasks by state, and answers by status and time, in a form that its client reads."""
    parser = pytest.importorskip("prometheus_client.parser")
    open_.get("/api/v1/incidents")
    open_.get("/api/v1/incidents/none")
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(open_.get("/api/v1/metrics").text)
        for sample in family.samples
    }
    assert found[("triage_incidents",)] == 3
    assert found[("triage_tasks", ("state", "queued"))] == 0
    assert found[("triage_http_responses_total", ("status", "2xx"))] == 1
    assert found[("triage_http_responses_total", ("status", "4xx"))] == 1
    assert found[("triage_http_response_seconds_bucket", ("le", "+Inf"))] == 2


def test_it_says_whether_it_can_work(open_: TestClient, wanted: Settings, store: Store) -> None:
    """Ready while store, catalog and uploads are there and nobody waits for ever; else 503 with the reason."""
    assert open_.get("/api/v1/ready").json()["status"] == "ok"
    store.tasks.add("ingest", {}, actor="a", now=1.0)
    root = files.uploads(wanted)
    root.rename(root.with_name("away"))
    answer = open_.get("/api/v1/ready")
    assert answer.status_code == 503
    assert {name for name, said in answer.json()["checks"].items() if said != "ok"} == {"tasks", "uploads"}
