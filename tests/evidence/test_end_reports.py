"""Sentences that report only an end."""

from __future__ import annotations

import pytest

from triage.evidence.end_reports import reports_only_end


@pytest.mark.parametrize(
    "line",
    [
        "Task failed.",
        "[run/7/fit (pid 42)] Step failed",
        "run.sh: training failed with status 1",
        "Error: exit status 2",
        "Exit_status=1",
        "Subject: Job 88121: <fit> in cluster <north> Exited",
        "Bash command failed. The command returned a non-zero exit code 4.",
        "airflow.exceptions.AirflowException: Bash command failed",
        "Terminated",
        "collect2: error: ld returned 1 exit status",
    ],
)
def test_a_report_of_an_end_has_no_word_of_its_own(line: str) -> None:
    """Parts of a job, words of ending, names in brackets and numbers say nothing of why."""
    assert reports_only_end(line)


@pytest.mark.parametrize(
    "line",
    [
        "Task failed: disk full",
        "ld: cannot find -lcudart, returned 1",
        "run.sh: checkpoint failed with status 1",
        "worker heartbeat failed",
        "job 7 was completed",
        "step 7 of 9",
        "Error:",
        "Step failed with:",
        "",
        "KeyboardInterrupt: terminated",
    ],
)
def test_any_other_word_says_more(line: str) -> None:
    """One word of another thing is a reason; without a word of ending nothing is reported; a colon announces more."""
    assert not reports_only_end(line)
