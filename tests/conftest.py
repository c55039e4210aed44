"""For all tests: a catalog cache of their own, and the shipped catalog, loaded once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import hypothesis
import pytest

from triage.base import forks
from triage.catalog.load import load
from triage.catalog.model import Catalog

ROOT = Path(__file__).resolve().parents[1]
_scratch: tempfile.TemporaryDirectory[str] | None = None


def pytest_configure() -> None:
    """No test reads or writes the user's cache or store; set so early that processes started by tests inherit it."""
    global _scratch
    _scratch = tempfile.TemporaryDirectory(prefix="triage-tests-")
    os.environ["TRIAGE_CACHE"] = _scratch.name
    os.environ["TRIAGE_CONFIG"] = ""
    os.environ.pop("TRIAGE_CATALOG", None)
    os.environ["TRIAGE_STORE"] = "off"  # and no test writes into the user's store; those that want one name it
    os.environ.pop("TRIAGE_REDACT", None)
    # A machine that does other things as well is slow, which is no failure.
    hypothesis.settings.register_profile(
        "any-machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("any-machine")


def pytest_unconfigure() -> None:
    if _scratch is not None:
        _scratch.cleanup()


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The catalog that ships."""
    return load((), strict=False)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pids of what is forked. Threads of the test's runner, which are idle, hinder nothing."""
    pids: list[int] = []
    fork = os.fork

    def noting() -> int:
        pid = fork()
        pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", noting)
    monkeypatch.setattr(forks.threading, "active_count", lambda: 1)
    return pids
