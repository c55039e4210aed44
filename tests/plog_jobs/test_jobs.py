"""The composed plog jobs: each diagnosis is the answer that was written before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from tests.plog_jobs.jobs import OPEN, SET_ASIDE, Answer
from triage.testing.plogs import PlogJob

JOBS = (*OPEN, *SET_ASIDE)


@pytest.mark.parametrize("compose", JOBS, ids=[compose.__name__ for compose in JOBS])
def test_answer(compose: Callable[[], tuple[PlogJob, Answer]], tmp_path: Path) -> None:
    """Root, suspects, confidence and reasons are what the files allow."""
    job, answer = compose()
    job.write(tmp_path / "job")
    diagnosis = triage.ingest(tmp_path / "job")
    root = diagnosis.root_cause
    assert root is not None
    assert root.signature in (answer.roots or (None,))
    assert set(root.ranks) == set(answer.ranks)
    assert answer.limits[0] <= root.confidence <= answer.limits[1]
    reasons = " ".join([root.title, *root.why])
    assert [part for part in answer.mentions if part not in reasons] == []


@pytest.mark.parametrize("compose", JOBS, ids=[compose.__name__ for compose in JOBS])
def test_order_of_files_does_not_matter(compose: Callable[[], tuple[PlogJob, Answer]], tmp_path: Path) -> None:
    """The answer is the same when the files are handed in one by one, in reverse."""
    job, _ = compose()
    job.write(tmp_path / "job")
    files = sorted((path for path in (tmp_path / "job").rglob("*.log")), reverse=True)
    whole, single = triage.ingest(tmp_path / "job").root_cause, triage.ingest(files).root_cause
    assert whole is not None
    assert single is not None
    assert (single.signature, single.ranks) == (whole.signature, whole.ranks)
