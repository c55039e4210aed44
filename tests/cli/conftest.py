from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import triage.pipeline
from triage.cli import main
from triage.model import Audit
from triage.render import json

from .factories import diagnosis


class FakePipeline:
    """Replaces the pipeline: returns one verdict, and records its calls."""

    def __init__(self) -> None:
        self.verdict = "known"
        self.error: BaseException | None = None
        self.calls: list[tuple[list[str], triage.pipeline.Options]] = []

    def __call__(self, paths: list[str], options: triage.pipeline.Options, progress: object = None) -> object:
        self.calls.append((paths, options))
        if self.error is not None:
            raise self.error
        return diagnosis(self.verdict)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TRIAGE_DEBUG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePipeline:
    """Replace the functions of `triage.pipeline` that diagnose by a fake."""
    pipeline = FakePipeline()
    monkeypatch.setattr(triage.pipeline, "ingest", pipeline)
    monkeypatch.setattr(triage.pipeline, "ingest_with_audit", lambda *values: (pipeline(*values), Audit()))
    return pipeline


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A saved report."""
    path = tmp_path / "report.json"
    path.write_text(json.render(diagnosis()), encoding="utf-8")
    return path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line here: (status, standard output, standard error)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return call
