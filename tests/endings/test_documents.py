"""Documents, programs and data sets among the files of a job, and logs that have the names of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.endings.conftest import Diagnose
from tests.endings.corpus import HealthyJob, format_files, load_healthy_jobs

DOCUMENTS = Path(__file__).resolve().parent / "documents"
HEALTHY = load_healthy_jobs(DOCUMENTS / "healthy.yaml")
DEAD: list[dict[str, Any]] = yaml.safe_load((DOCUMENTS / "dead.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("job", HEALTHY, ids=lambda job: job.name)
def test_documents_are_no_failure(job: HealthyJob, diagnose: Diagnose) -> None:
    """The verdict is that of the logs alone."""
    diagnosis = diagnose(job.files)
    assert diagnosis.root_cause is None
    assert diagnosis.verdict == ("clean" if job.clean else "inconclusive")


@pytest.mark.parametrize("job", DEAD, ids=lambda job: job["name"])
def test_a_dead_job_is_found_beside_documents(job: dict[str, Any], diagnose: Diagnose) -> None:
    """A failure form that is the last word of a log is told, whatever the log is called."""
    diagnosis = diagnose(format_files(job["files"]))
    root = diagnosis.root_cause
    assert root is not None, diagnosis.warnings
    assert job["telling"] in " ".join([root.title, *(fact.text for fact in root.evidence)])


def test_what_is_left_out_is_named_with_its_reason(diagnose: Diagnose) -> None:
    """The warning says what each file is, and how to read it all the same."""
    (job,) = (job for job in HEALTHY if job.name == "error-table-csv-complete")
    (warning,) = (warning for warning in diagnose(job.files).warnings if warning.code == "no-output")
    assert "known_errors.csv (a data set)" in warning.message
    assert "name a file to read it" in warning.message


def test_documents_alone_are_inconclusive(diagnose: Diagnose) -> None:
    """They prove no good end and show no failure."""
    diagnosis = diagnose({"NOTES.txt": "The job of yesterday said 'Training complete'. We do not know more.\n"})
    assert diagnosis.verdict == "inconclusive"
    assert diagnosis.inconclusive is not None
    assert diagnosis.inconclusive.why[0] == "Nothing could be read: NOTES.txt is a document"
