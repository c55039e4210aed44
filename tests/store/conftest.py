from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(tmp_path / "triage.db") as opened:
        yield opened
