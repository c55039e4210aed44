"""The made-up healthy jobs of samples/clean: none has a failure, although many lines look like one.

Those of samples/clean-unproved.txt stop without a proof of a good end.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import triage
from triage.cli.proof import known_false_alarms

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
CLEAN = SAMPLES / "clean"
JOBS = sorted(CLEAN.iterdir())

# Healthy jobs that triage wrongly reports as failed, with the reason, from samples/clean-gaps.txt. Remove the line of
# a job when it is fixed.
FALSE_ALARMS = known_false_alarms(CLEAN)
_LINES = (SAMPLES / "clean-unproved.txt").read_text(encoding="utf-8").splitlines()
UNPROVED = {line.split(": ", 1)[0] for line in _LINES if not line.startswith("#")}


def _job_params() -> list[object]:
    marks = {name: pytest.mark.xfail(strict=True, reason=reason) for name, reason in FALSE_ALARMS.items()}
    return [pytest.param(job, id=job.stem, marks=marks.get(job.stem, ())) for job in JOBS]


@pytest.mark.parametrize("job", _job_params())
def test_a_healthy_job_is_no_failure(job: Path) -> None:
    """The verdict is clean with a proof of a good end and inconclusive without, and no finding states a failure."""
    diagnosis = triage.ingest(job)
    failures = [
        finding
        for finding in (*diagnosis.findings, *diagnosis.unknown)
        if finding.role in ("cause", "symptom", "either")
    ]
    assert [
        (finding.signature, finding.evidence[0].text[:200] if finding.evidence else "") for finding in failures
    ] == []
    assert diagnosis.root_cause is None
    assert diagnosis.verdict == ("inconclusive" if job.stem in UNPROVED else "clean")


def test_the_script_writes_the_same_bytes(tmp_path: Path) -> None:
    """samples/build/clean.py writes exactly the files of samples/clean."""
    subprocess.run(
        [sys.executable, "-B", str(SAMPLES / "build" / "clean.py"), "-o", str(tmp_path / "clean")], check=True
    )
    assert _contents(tmp_path / "clean") == _contents(CLEAN)


def test_healthy_jobs_have_many_kinds_and_are_small() -> None:
    """At least thirty jobs of at least fifteen kinds, in less than a megabyte."""
    assert len(JOBS) >= 30
    assert len({job.stem.rsplit("-", 1)[0] for job in JOBS}) >= 15
    assert sum(len(data) for data in _contents(CLEAN).values()) < 1_000_000


def test_false_alarms_name_existing_jobs() -> None:
    """Every known false alarm names a job of samples/clean, and there are at most eight; most jobs prove their end."""
    assert {job.stem for job in JOBS} >= UNPROVED
    assert len(UNPROVED) * 2 <= len(JOBS)
    assert set(FALSE_ALARMS) <= {job.stem for job in JOBS}
    assert len(FALSE_ALARMS) <= 8


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
