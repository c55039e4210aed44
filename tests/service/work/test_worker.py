"""Tasks done in processes of their own: what comes of them, and what does not happen."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import job
from triage.service.work import files
from triage.service.work.worker import Worker
from triage.settings import Settings
from triage.settings.store import Store as StoreSection
from triage.settings.tasks import Tasks
from triage.store import Store


@pytest.fixture
def settings(path: Path) -> Settings:
    return Settings(store=StoreSection(path=path), tasks=Tasks(seconds=60))


def sent(settings: Settings, path: Path) -> dict[str, Any]:
    """A file as if it had been uploaded; its place in a payload."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    root = files.uploads(settings)
    files.ready(root)
    target = files.blob(root, digest)
    target.parent.mkdir(exist_ok=True)
    shutil.copy(path, target)
    return {"place": {"files": [{"name": path.name, "digest": digest, "bytes": path.stat().st_size}]}, "name": "a job"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "job.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(job("disk_full_tee"), "job")
    return path


def test_a_task_becomes_an_incident(settings: Settings, store: Store, archive: Path) -> None:
    """The incident, where it came from, the lines around its evidence and its environment are stored with the end of
    the task.
    """
    task = store.tasks.add("ingest", sent(settings, archive), actor="somebody")
    assert Worker(settings, store).step()
    done = store.tasks.get(task.id)
    assert (done.state, done.attempts, done.error) == ("done", 1, None)
    assert done.result is not None
    found = store.incidents.get(done.result["incident"])
    assert found.diagnosis.job.name == "a job"
    num = store.incidents.number(found.incident.id)
    assert store.beside.origin(num) is not None
    context = store.beside.document(num, "context")
    assert context is not None
    fact = next(fact for fact in found.diagnosis.root_cause.evidence if fact.line)  # type: ignore[union-attr]
    piece = next(p for p in context["sources"][fact.source] if p["line"] <= fact.line < p["line"] + len(p["lines"]))  # type: ignore[operator]
    assert fact.text.split("\n")[0][:40] in piece["lines"][fact.line - piece["line"]]  # type: ignore[operator]
    assert store.beside.document(num, "environment")["schema"] == "triage.environment/1"  # type: ignore[index]
    assert list((files.uploads(settings) / "jobs").iterdir()) == []


def test_what_cannot_be_read_is_refused_with_a_hint(settings: Settings, store: Store, tmp_path: Path) -> None:
    """The task fails at once, with what the command line would say."""
    path = tmp_path / "train.py"
    path.write_text("print('hello')\n")
    payload = sent(settings, path)
    payload["place"]["files"][0]["name"] = "nothing.bin"
    path.write_bytes(b"")
    payload = sent(settings, path)
    task = store.tasks.add("ingest", payload, actor="somebody")
    Worker(settings, store).step()
    done = store.tasks.get(task.id)
    assert (done.state, done.attempts) == ("failed", 1)
    assert done.error is not None
    assert done.error["hint"]
