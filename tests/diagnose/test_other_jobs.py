"""triage.diagnose.other_jobs"""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from tests.diagnose.factories import fact
from tests.shared_catalog import OPTIONS
from triage.diagnose.other_jobs import find_own_jobs, name_other_job
from triage.model import Evidence

OF_JOB_3 = "error: *** JOB 3 ON gpu-a01 CANCELLED AT 2026-11-28T06:20:33 DUE TO TIME LIMIT ***"


@pytest.mark.parametrize(
    ("text", "source", "other"),
    [
        (OF_JOB_3, "slurmd.log", "3"),
        (OF_JOB_3.replace("JOB 3", "STEP 3.0"), "slurmd.log", "3"),
        (OF_JOB_3.replace("JOB 3", "JOB 7"), "slurmd.log", ""),
        ("[3.0] get_exit_code task 2 died by signal: 11", "slurmd.gpu-a01.log", "3"),
        ("[3.0] get_exit_code task 2 died by signal: 11", "train.log", ""),  # may be a time, a version, a loss
        ("[7.batch] done with job", "slurmd.gpu-a01.log", ""),
        ("error: [job 15] prolog failed status=1:0", "slurmd.log", "15"),
        ("Killing JobId=3 on failed node gpu-a03", "slurmctld.log", "3"),
        ("Killing JobId=3 and JobId=7 on failed node gpu-a03", "slurmctld.log", ""),
        ("3            train      gpu        lab          4    TIMEOUT      0:0", "sacct.txt", "3"),
        ("3|train|TIMEOUT|0:0|", "sacct.txt", "3"),
        ("3 ranks did not answer before the timeout", "train.log", ""),
        ("Job <3>: TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "lsf.log", "3"),
    ],
)
def test_a_line_that_names_only_other_jobs_is_about_them(text: str, source: str, other: str) -> None:
    """A line that also names this job, or no job, may be about this one; so is each if the own number is unknown."""
    line = fact(text, source=source)
    assert name_other_job(line, frozenset("7")) == other
    assert name_other_job(line, frozenset()) == ""


@pytest.mark.parametrize(
    ("facts", "sources", "own"),
    [
        ([fact(OF_JOB_3)], ["/jobs/slurm-3.out"], {"3"}),
        ([fact(OF_JOB_3)], ["/jobs/slurmctld.log"], set()),
        ([fact(OF_JOB_3)], ["/jobs/slurm-2_3.out", "/jobs/33.log"], set()),  # a task of an array
        ([fact(OF_JOB_3)], ["/jobs/rank_3.log", "/jobs/slurmd.log"], set()),
        ([fact(OF_JOB_3.replace("3", "4813", 1))], ["/jobs/train_4813.err"], {"4813"}),
        ([fact(f"slurmstepd-gpu-a01: {OF_JOB_3}")], ["/jobs/train.log"], {"3"}),
        ([fact(f"slurmstepd: {OF_JOB_3}")], ["/jobs/slurm-1_4.out"], {"3"}),  # a task of the array 1
        ([fact("epoch 3 failed")], ["/jobs/slurm-3.out"], {"3"}),  # Slurm's own name, though no line has the number
        ([fact("epoch 3 failed")], ["/jobs/slurm-1_3.out", "/jobs/job-3.log"], set()),
    ],
)
def test_the_own_number_is_in_the_output_or_in_the_name_of_a_file(
    facts: list[Evidence], sources: list[str], own: set[str]
) -> None:
    """The log of a daemon alone does not tell which of its jobs is meant."""
    assert find_own_jobs(facts, sources) == own


def test_the_log_of_a_daemon_may_tell_of_other_jobs(tmp_path: Path) -> None:
    """The time limit of an earlier job does not explain why this one was cancelled."""
    (tmp_path / "slurm-7.out").write_text(
        "step 40 loss 1.2\nslurmstepd-gpu-a01: error: *** STEP 7.0 ON gpu-a01 CANCELLED AT 2026-11-28T06:43:23 ***\n"
    )
    (tmp_path / "slurmd.log").write_text(
        f"[2026-11-28T06:20:33.012] [3.batch] {OF_JOB_3}\n[2026-11-28T06:22:31.623] launch task StepId=7.0 request\n"
        "[2026-11-28T06:43:23.540] [7.0] error: *** STEP 7.0 ON gpu-a01 CANCELLED AT 2026-11-28T06:43:23 ***\n"
    )
    diagnosis = triage.ingest(tmp_path, OPTIONS)
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.signature == "slurm.cancelled"
    assert any("it is about job 3" in warning.message for warning in diagnosis.warnings)


@pytest.mark.parametrize(("day", "is_over"), [("26", True), ("28", False)])
def test_what_a_daemon_logged_days_before_the_job_did_not_end_it(tmp_path: Path, day: str, *, is_over: bool) -> None:
    """A line without a job's number counts only near the time of the job, as far as time zones tell."""
    (tmp_path / "train.log").write_text("2026-11-28 06:41:23,100 INFO step 40 loss 1.2\nKilled\n")
    line = "error: Unable to register: Unable to contact slurm controller (connect failure)"
    (tmp_path / "slurmd.log").write_text(f"[2026-11-{day}T01:20:33.012] {line}\n")
    warnings = triage.ingest(tmp_path, OPTIONS).warnings
    assert any("logged it long before" in warning.message for warning in warnings) == is_over
