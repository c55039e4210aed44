from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bots.factories import Bench
from tests.cli.conftest import command as command
from triage.store import Store
from triage.testing.slack import SlackServer

CHANNEL = "C1"


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(shutil.copy2(empty_store, tmp_path / "triage.db")) as opened:
        yield opened


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    """A local Slack with one channel."""
    with SlackServer() as server:
        server.add_channel(CHANNEL)
        yield server


@pytest.fixture
def bench(store: Store, slack: SlackServer) -> Bench:
    """A store whose failures go to that channel."""
    return Bench(store, slack)
