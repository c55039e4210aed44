"""`make fuzz` after it was stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fuzz.__main__ import read_stopped_run


@pytest.mark.parametrize(
    ("executions", "commit", "findings", "goes_on"),
    [(99, "abc", [], True), (100, "abc", [], False), (99, "def", [], False), (99, "abc", ["crash-1"], False)],
)
def test_a_stopped_run_goes_on(
    tmp_path: Path, executions: int, commit: str, findings: list[str], goes_on: bool
) -> None:
    """Its executions count if they were of the same commit and found nothing, until there are as many as asked."""
    result = {"commit": commit, "executions": executions, "findings": findings}
    path = tmp_path / "fuzz.json"
    path.write_text(json.dumps({"harnesses": {"json": result}}))
    assert read_stopped_run(path, "json", "abc", 100) == (result if goes_on else {})
    assert read_stopped_run(path, "elf", "abc", 100) == {}
    assert read_stopped_run(tmp_path / "none.json", "json", "abc", 100) == {}
