from __future__ import annotations

import pytest

from triage.catalog import build, signature_files
from triage.catalog.check import check_files


def test_the_shipped_catalog_has_no_errors() -> None:
    """Every shipped signature is readable, findable, and true to its samples."""
    pytest.importorskip("triage.evidence")
    errors = [str(problem) for problem in check_files() if problem.severity == "error"]
    assert errors == []


def test_the_healthy_corpus_is_healthy() -> None:
    """The healthy lines have 60 to 150 KB and no text of a failure."""
    text = build.read_healthy_lines(signature_files.find_shipped_directory())
    assert 60_000 < len(text.encode()) < 150_000
    for failure_text in (
        "Traceback",
        "NCCL WARN",
        "Segmentation fault",
        "out of memory",
        "Killed",
        "SIGABRT",
        "EI0006",
    ):
        assert failure_text not in text
