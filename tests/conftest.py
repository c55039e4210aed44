"""Fixtures for all tests: a catalog cache of their own, and the shipped catalog, loaded once."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.effort import EXAMPLES, THOROUGH_EXAMPLES, is_thorough
from tests.local_cluster import Cluster, start_cluster
from triage.base import forks
from triage.catalog.load import load
from triage.catalog.model import Catalog
from triage.store import Store

ROOT = Path(__file__).resolve().parents[1]
_scratch: tempfile.TemporaryDirectory[str] | None = None


def pytest_configure() -> None:
    """Keep tests away from the user's cache, settings and store; processes that tests start inherit this."""
    global _scratch
    _scratch = tempfile.TemporaryDirectory(prefix="triage-tests-")
    os.environ["TRIAGE_CACHE"] = _scratch.name
    os.environ["TRIAGE_CONFIG"] = ""
    os.environ.pop("TRIAGE_CATALOG", None)
    os.environ["TRIAGE_STORE"] = "off"  # tests that need a store name one
    os.environ.pop("TRIAGE_REDACT", None)
    # A busy machine is slow; that is not a failure.
    hypothesis.settings.register_profile(
        "any-machine",
        max_examples=THOROUGH_EXAMPLES if is_thorough() else EXAMPLES,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("any-machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that none runs alone at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_unconfigure() -> None:
    if _scratch is not None:
        _scratch.cleanup()


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """Return the shipped catalog."""
    return load((), strict=False)


@pytest.fixture
def warm_cache(catalog: Catalog, tmp_path: Path) -> Path:
    """A cache for one test, in which the shipped catalog is compiled already: compiling takes seconds."""
    own = tmp_path / "cache"
    own.mkdir(mode=0o700)
    for file in Path(os.environ["TRIAGE_CACHE"]).glob("catalog-*"):
        shutil.copy2(file, own)
    return own


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with an empty store. A copy of it needs no wait for the disk, as each migration does."""
    path = tmp_path_factory.mktemp("empty") / "triage.db"
    Store.open(path).close()
    return path


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Dask cluster of two processes of this machine."""
    with start_cluster() as started:
        yield started


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of forked pids, which grows. Idle threads of the test runner do not prevent forking."""
    pids: list[int] = []
    fork = os.fork

    def fork_and_record() -> int:
        pid = fork()
        pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", fork_and_record)
    monkeypatch.setattr(forks.threading, "active_count", lambda: 1)
    return pids
