"""A worker stores the result of a task, or why it failed."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import job_path
from triage.service.work import job_files, sandbox
from triage.service.work.worker import Worker
from triage.settings import Settings
from triage.settings.sections import StoreSettings, TaskSettings
from triage.store import Store


@pytest.fixture
def settings(path: Path) -> Settings:
    """Settings with a store."""
    return Settings(store=StoreSettings(path=path), tasks=TaskSettings(seconds=60))


def store_upload(settings: Settings, path: Path) -> dict[str, Any]:
    """Put a file where uploads are. Returns the payload of its task."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    root = job_files.upload_directory(settings)
    job_files.make_upload_directories(root)
    target = job_files.blob_path(root, digest)
    target.parent.mkdir(exist_ok=True)
    shutil.copy(path, target)
    return {"place": {"files": [{"name": path.name, "digest": digest, "bytes": path.stat().st_size}]}, "name": "a job"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A recorded job as an archive."""
    path = tmp_path / "job.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(job_path("disk_full_tee"), "job")
    return path


def test_a_changed_verdict_names_who_sent_the_job(settings: Settings, store: Store, archive: Path) -> None:
    """The same job sent again by somebody else, with another answer, is in the audit log with that person."""
    task = store.tasks.add("ingest", store_upload(settings, archive), actor="alice")
    assert Worker(settings, store).do_next_task()
    result = store.tasks.get(task.id).result
    assert result is not None
    stored = store.incidents.get(result["incident"])
    incident, old = stored.incident, stored.diagnosis
    store.incidents.replace_diagnosis(
        store.incidents.find_number(incident.id),
        dataclasses.replace(old, verdict="clean", root_cause=None, findings=(), unknown=()),
        "retriage",
        actor="bob",
    )
    store.tasks.add("ingest", store_upload(settings, archive), actor="carol")
    assert Worker(settings, store).do_next_task()
    entries = [item for item in store.audit.list_entries(subject=incident.id) if item.action == "change verdict"]
    assert [(item.actor, item.details["before"], item.details["after"]) for item in entries] == [
        ("carol", "clean", f"known {incident.signature}"),
        ("bob", f"known {incident.signature}", "clean"),
    ]


def test_task_becomes_an_incident(settings: Settings, store: Store, archive: Path) -> None:
    """A task stores the incident, its origin, the lines around the evidence and the environment."""
    task = store.tasks.add("ingest", store_upload(settings, archive), actor="somebody")
    assert Worker(settings, store).do_next_task()
    done = store.tasks.get(task.id)
    assert (done.state, done.attempts, done.error) == ("done", 1, None)
    assert done.result is not None
    stored = store.incidents.get(done.result["incident"])
    assert stored.diagnosis.job.name == "a job"
    num = store.incidents.find_number(stored.incident.id)
    assert store.connections.read("SELECT * FROM origin WHERE incident = ?", (num,))
    context = store.service_data.get_document(num, "context")
    assert context is not None
    fact = next(fact for fact in stored.diagnosis.root_cause.evidence if fact.line)  # type: ignore[union-attr]
    piece = next(p for p in context["sources"][fact.source] if p["line"] <= fact.line < p["line"] + len(p["lines"]))  # type: ignore[operator]
    assert fact.text.split("\n")[0][:40] in piece["lines"][fact.line - piece["line"]]  # type: ignore[operator]
    assert store.service_data.get_document(num, "environment")["schema"] == "triage.environment/1"  # type: ignore[index]
    assert list((job_files.upload_directory(settings) / "jobs").iterdir()) == []


def test_files_of_killed_attempts_are_removed(settings: Settings, store: Store, archive: Path) -> None:
    """The attempt after a kill removes what the killed one left, and nothing of other tasks."""
    task = store.tasks.add("ingest", store_upload(settings, archive), actor="somebody")
    assert store.tasks.claim("killed") is not None
    store.tasks.requeue_orphans(1, now=time.time() + 60)
    root = job_files.upload_directory(settings)
    for name in (f"{task.id}-1", "t-other-1"):
        job_files.task_directory(root, name).mkdir()
        job_files.partial_path(root, f"result-{name}").write_text("half")
    assert Worker(settings, store).do_next_task()
    assert store.tasks.get(task.id).state == "done"
    assert [path.name for path in (root / "jobs").iterdir()] == ["t-other-1"]
    assert [path.name for path in (root / "parts").iterdir()] == ["result-t-other-1"]


@pytest.mark.parametrize(("hours", "stays"), [(23.9, True), (24.1, False)])
def test_old_directories_of_tasks_are_removed(settings: Settings, store: Store, hours: float, stays: bool) -> None:
    """A directory of a task whose last attempt was killed is removed after a day."""
    worker, path = Worker(settings, store), job_files.upload_directory(settings) / "jobs" / "t-killed-3"
    path.mkdir()
    (path / "rank0.log").write_text("x\n")
    os.utime(path, (time.time() - hours * 3600,) * 2)
    worker.do_next_task()
    assert path.exists() == stays


def test_unreadable_file_fails_the_task(settings: Settings, store: Store, tmp_path: Path) -> None:
    """A task without readable files fails at its first attempt, with a hint."""
    path = tmp_path / "train.py"
    path.write_text("print('hello')\n")
    payload = store_upload(settings, path)
    payload["place"]["files"][0]["name"] = "nothing.bin"
    path.write_bytes(b"7z\xbc\xaf\x27\x1c\x00\x04")
    payload = store_upload(settings, path)
    task = store.tasks.add("ingest", payload, actor="somebody")
    Worker(settings, store).do_next_task()
    done = store.tasks.get(task.id)
    assert (done.state, done.attempts) == ("failed", 1)
    assert done.error is not None
    assert done.error["hint"]


def test_a_task_is_given_back_after_its_files_are_removed(
    settings: Settings, store: Store, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that claims it next works in a directory of the same name, which nobody may remove then."""
    task = store.tasks.add("ingest", store_upload(settings, archive), actor="somebody")
    directory = job_files.task_directory(job_files.upload_directory(settings), f"{task.id}-1")
    directory.mkdir(parents=True)
    release, existed = store.tasks.release, []
    monkeypatch.setattr(store.tasks, "release", lambda item: (existed.append(directory.exists()), release(item)))
    monkeypatch.setattr(sandbox, "run_limited", lambda *_, **__: sandbox.Outcome("stopped", {}))
    worker = Worker(settings, store)
    worker._request_stop(15, None)
    assert worker.do_next_task()
    assert existed == [False]
    assert store.tasks.get(task.id).state == "queued"
