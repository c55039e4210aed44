"""A function that diagnoses many small jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import triage
from tests.shared_catalog import OPTIONS, share_catalog
from triage.model.diagnosis import Diagnosis

Diagnose = Callable[[dict[str, str]], Diagnosis]


@pytest.fixture(scope="package")
def _shared_catalog() -> Iterator[None]:
    with share_catalog():
        yield


@pytest.fixture
def diagnose(tmp_path: Path, _shared_catalog: None) -> Diagnose:
    """Return a function that diagnoses a job of these files, by name. The files of the call before are replaced."""

    def diagnose_files(files: dict[str, str]) -> Diagnosis:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return triage.ingest(tmp_path, OPTIONS)

    return diagnose_files
