"""A store with recorded jobs, and the service on it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

import triage
from triage.service.app import create_app
from triage.service.work import analysis, sandbox, worker
from triage.service.work.job_files import make_upload_directories
from triage.settings import Settings
from triage.settings.sections import Source, StoreSettings
from triage.store import Store

ROOT = Path(__file__).resolve().parents[2]
JOBS = ("dataloader_worker_killed_tee", "exception_one_rank_tee", "sigkill_perrank")


class RoomySandbox:
    """The sandbox of tasks with as much more memory as the process of the tests has, which their own starts with."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sandbox, name)

    def run_limited(self, work: sandbox.Work, *, memory: int, **more: Any) -> sandbox.Outcome:
        """Do the work; the address space of a test process is not that of a server."""
        own = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        return sandbox.run_limited(work, memory=memory + own, **more)


@pytest.fixture(autouse=True)
def roomy_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks run beside whatever the tests before left in this process."""
    monkeypatch.setattr(worker, "sandbox", RoomySandbox())


def job_path(name: str = JOBS[0]) -> Path:
    """Return the path of a recorded job."""
    return ROOT / "samples" / "jobs" / name / "job"


def store_job(store: Store, scratch: Path, path: Path, name: str, *labels: str) -> str:
    """Diagnose and store a job with its documents as a worker does. Returns the id of the incident."""
    make_upload_directories(scratch / "work")
    settings, out, cwd = Settings(sources={name: Source(path=path, one=True)}), scratch / "out", Path.cwd()
    payload = {"place": {"source": name}, "name": name, "labels": list(labels)}
    try:
        analysis.analyse(settings, scratch / "work", payload, "one", out, lambda _: None)
    finally:
        os.chdir(cwd)
    diagnosis, documents = analysis.read_result(out)
    with store.connections.write() as db:
        incident = store.incidents.add(diagnosis)
        for kind, document in documents.items():
            store.service_data.save_document(db, incident.id, kind, document)
    return incident.id


def copy_flight_dumps(directory: Path) -> Path:
    """Copy Flight Recorder dumps of a recorded hang, without the file that says what is wrong."""
    directory.mkdir()
    for dump in (ROOT / "samples" / "flight" / "never_joined").glob("fr_rank_?"):
        shutil.copy(dump, directory)
    return directory


@pytest.fixture(scope="session")
def store_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three incidents, made once; tests use copies."""
    path = tmp_path_factory.mktemp("stored") / "triage.db"
    with Store.open(path) as store:
        for name in JOBS:
            store.incidents.add(triage.ingest(job_path(name)))
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def path(store_template: Path, tmp_path: Path) -> Path:
    """A copy of the store for one test."""
    return Path(shutil.copy(store_template, tmp_path / "triage.db"))


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


@pytest.fixture
def app(path: Path, store: Store) -> FastAPI:
    """The service on loopback without configuration."""
    return create_app(Settings(store=StoreSettings(path=path)), store)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as test_client:
        yield test_client
