"""A store with recorded jobs in it, and the service on it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

import triage
from triage.service.app import create_app
from triage.service.work import analysis
from triage.service.work.files import ready
from triage.settings import Settings
from triage.settings.sources import Source
from triage.settings.store import Store as StoreSection
from triage.store import Store

ROOT = Path(__file__).resolve().parents[2]
JOBS = ("dataloader_worker_killed_tee", "exception_one_rank_tee", "sigkill_perrank")


def job(name: str = JOBS[0]) -> Path:
    """A recorded job."""
    return ROOT / "samples" / "jobs" / name / "job"


def keep(store: Store, place: Path, path: Path, name: str) -> str:
    """Diagnose and store it as a worker does, with the documents beside it; the incident's id. `place` is for what is
    in between.
    """
    ready(place / "work")
    wanted, out, here = Settings(sources={name: Source(path=path, one=True)}), place / "out", Path.cwd()
    try:
        analysis.ingest(wanted, place / "work", {"place": {"source": name}, "name": name}, "one", out, lambda _: None)
    finally:
        os.chdir(here)
    diagnosis, documents = analysis.read_back(out)
    with store.connections.write() as db:
        found = store.incidents.add(diagnosis)
        for kind, document in documents.items():
            store.beside.put_document(db, found.id, kind, document)
    return found.id


def dumps(directory: Path) -> Path:
    """Flight Recorder dumps of a recorded hang, without the file that says what is wrong."""
    directory.mkdir()
    for dump in (ROOT / "samples" / "flight" / "never_joined").glob("fr_rank_?"):
        shutil.copy(dump, directory)
    return directory


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three incidents, made once; take a copy."""
    path = tmp_path_factory.mktemp("stored") / "triage.db"
    with Store.open(path) as store:
        for name in JOBS:
            store.incidents.add(triage.ingest(job(name)))
        store.connections.get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def path(stored: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copy(stored, tmp_path / "triage.db"))


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


@pytest.fixture
def app(path: Path, store: Store) -> FastAPI:
    """The service on loopback, with no configuration."""
    return create_app(Settings(store=StoreSection(path=path)), store)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as found:
        yield found
