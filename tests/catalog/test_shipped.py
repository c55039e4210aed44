from __future__ import annotations

import pytest

from triage.catalog import build, files
from triage.catalog.check import check


def test_the_shipped_catalog_proves_itself() -> None:
    """Every shipped signature is readable, findable, and true to its samples."""
    pytest.importorskip("triage.evidence")
    errors = [str(problem) for problem in check() if problem.severity == "error"]
    assert errors == []


def test_the_shipped_corpus_is_of_use() -> None:
    """The healthy lines are there, between 60 and 150 KB, and no stored word of failure is among them."""
    text = build.healthy(files.shipped_directory())
    assert 60_000 < len(text.encode()) < 150_000
    for word in ("Traceback", "NCCL WARN", "Segmentation fault", "out of memory", "Killed", "SIGABRT", "EI0006"):
        assert word not in text
