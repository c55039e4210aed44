"""Jobs in which nothing failed, although their files hold the words of failures."""

from __future__ import annotations

import pytest

from tests.endings.conftest import Diagnose
from tests.endings.corpus import HealthyJob, load_healthy_jobs

JOBS = load_healthy_jobs()
FEWEST_JOBS = 60


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_healthy_job_is_no_failure(job: HealthyJob, diagnose: Diagnose) -> None:
    """It is clean where its files prove a good end, otherwise inconclusive; never a failure."""
    diagnosis = diagnose(job.files)
    assert diagnosis.root_cause is None
    assert diagnosis.verdict == ("clean" if job.clean else "inconclusive")


def test_healthy_jobs_are_many() -> None:
    """At least 60 jobs, with and without a proof of a good end, each of many lines."""
    assert len(JOBS) >= FEWEST_JOBS
    assert len({job.name for job in JOBS}) == len(JOBS)
    assert 2 * min(sum(job.clean for job in JOBS), sum(not job.clean for job in JOBS)) >= len(JOBS) // 2
    assert min(sum(text.count("\n") for text in job.files.values()) for job in JOBS) >= 200
