"""The made-up healthy jobs of samples/clean: however much in them looks like a failure, nothing is wrong with any of
them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import triage
from triage.cli.proof import known_gaps

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
CLEAN = SAMPLES / "clean"
JOBS = sorted(CLEAN.iterdir())

# Jobs that an expert calls healthy and triage does not yet, with the reason: samples/clean-gaps.txt. Whoever mends it
# takes the line out.
KNOWN_GAPS = known_gaps(CLEAN)


def _cases() -> list[object]:
    marks = {name: pytest.mark.xfail(strict=True, reason=reason) for name, reason in KNOWN_GAPS.items()}
    return [pytest.param(job, id=job.stem, marks=marks.get(job.stem, ())) for job in JOBS]


@pytest.mark.parametrize("job", _cases())
def test_a_healthy_job_is_clean(job: Path) -> None:
    """The verdict is clean, and no finding that is still standing says that something failed."""
    found = triage.ingest(job)
    standing = [
        finding for finding in (*found.findings, *found.unknown) if finding.role in ("cause", "symptom", "either")
    ]
    assert [
        (finding.signature, finding.evidence[0].text[:200] if finding.evidence else "") for finding in standing
    ] == []
    assert found.root_cause is None
    assert found.verdict == "clean"


def test_the_script_writes_the_same_bytes(tmp_path: Path) -> None:
    """samples/build/clean.py, run again, gives exactly what lies in samples/clean."""
    subprocess.run(
        [sys.executable, "-B", str(SAMPLES / "build" / "clean.py"), "-o", str(tmp_path / "clean")], check=True
    )
    assert _contents(tmp_path / "clean") == _contents(CLEAN)


def test_the_corpus_is_broad_and_small() -> None:
    """At least thirty jobs of at least fifteen kinds, in less than a megabyte."""
    assert len(JOBS) >= 30
    assert len({job.stem.rsplit("-", 1)[0] for job in JOBS}) >= 15
    assert sum(len(data) for data in _contents(CLEAN).values()) < 1_000_000


def test_gaps_are_of_jobs_that_are_there() -> None:
    """Every known gap names a job of the corpus, and they stay few."""
    assert set(KNOWN_GAPS) <= {job.stem for job in JOBS}
    assert len(KNOWN_GAPS) <= 8


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
