"""Facts of a restarted job belong to attempts, and each attempt is diagnosed."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.diagnose import attempts
from triage.diagnose.time_order import Clocks
from triage.testing.jobs import JobBuilder

from .factories import fact

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"
MARK = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"


def test_attempts_follow_from_the_restart_line_then_time_else_the_last() -> None:
    """In the launcher's file the place decides, in others the time, and what has none belongs to the last attempt."""
    facts = [
        fact("a", source="console.log", offset=1),
        fact(MARK, source="console.log", offset=5, time=100.0),
        fact("b", source="console.log", offset=9),
        fact("c", source="dmesg", time=90.0),
        fact("d", source="dmesg", time=110.0),
        fact("e", source="rank0.log"),
        fact("f", source="logs/attempt_0/1/stderr.log"),
    ]
    placed, last = attempts.assign_attempts(facts, {}, Clocks())
    assert last == 1
    assert [one.origin.attempt for one in placed] == [0, 0, 1, 0, 1, 1, 0]


def test_a_requeue_is_a_restart_where_training_went_on() -> None:
    """Slurm writes the same line when a job ends for good."""
    line = fact(
        "slurmstepd: error: *** JOB 7 ON a CANCELLED AT x DUE TO JOB REQUEUE ***",
        kind="scheduler",
        source="slurm-7.out",
        offset=5,
    )
    after = fact("b", source="slurm-7.out", offset=9)
    assert attempts.assign_attempts([line, after], {"slurm-7.out": 7}, Clocks())[1] == 1
    assert attempts.assign_attempts([line, after], {"slurm-7.out": 3}, Clocks())[1] == 0


@pytest.mark.parametrize(
    "line",
    [
        "(TrainController pid=71) [FailurePolicy] RETRY",
        "train.service: Scheduled restart job, restart counter is at 2.",
        "[watchdog.sh] exit code 1, restarting training from step 400",
        "supervisor: relaunching all processes in 10 s",
    ],
)
def test_other_launchers_restart_where_training_went_on(line: str) -> None:
    """An announcement without training below it is only that, even if its own line names a step."""
    facts = [fact(line, source="driver.log", offset=5), fact("b", source="driver.log", offset=9)]
    assert attempts.assign_attempts(facts, {"driver.log": 5}, Clocks())[1] == 0
    assert attempts.assign_attempts(facts, {"driver.log": 7}, Clocks())[1] == 1
    assert attempts.assign_attempts(facts, {"driver.log": 3}, Clocks())[1] == 0


@pytest.mark.parametrize("layout", ["tee", "redirects"])
def test_a_job_that_finished_after_a_restart_is_clean_and_mentions_the_failure(layout: str, tmp_path: Path) -> None:
    """The failure of the first attempt stands in the findings, and says that a later attempt finished."""
    job = JobBuilder(tmp_path, layout=layout).steps(5)  # type: ignore[arg-type]
    job.rank(2).traceback(OOM)
    job.restart().steps(9).finish()
    diagnosis = triage.ingest(job.write())
    assert (diagnosis.verdict, diagnosis.root_cause) == ("clean", None)
    (oom,) = [finding for finding in diagnosis.findings if finding.signature == "cuda.out-of-memory"]
    assert oom.ranks == (2,)
    assert "Ended attempt 0; a later attempt finished" in oom.why


@pytest.mark.parametrize("layout", ["tee", "redirects"])
def test_the_last_attempt_decides_and_earlier_ones_are_mentioned(layout: str, tmp_path: Path) -> None:
    """Attempt 0 ended out of memory, attempt 1 of something else: that is the root, and the other stands beside it."""
    job = JobBuilder(tmp_path, layout=layout).steps(5)  # type: ignore[arg-type]
    job.rank(2).traceback(OOM)
    job.restart().steps(3)
    job.rank(1).traceback("ValueError: record 7 is empty")
    diagnosis = triage.ingest(job.write())
    root = diagnosis.root_cause
    assert root is not None
    assert (root.signature, root.ranks) == (None, (1,))
    assert "Attempt 0 failed with cuda.out-of-memory" in root.why
    (oom,) = [finding for finding in diagnosis.findings if finding.signature == "cuda.out-of-memory"]
    assert any("Ended attempt 0, which was restarted" in reason for reason in oom.why)


def test_a_restart_by_a_script_is_an_attempt(tmp_path: Path) -> None:
    """A failure before the line of the script that starts all ranks again is over once the job finishes."""
    job = JobBuilder(tmp_path, layout="tee").steps(5)
    job.rank(2).traceback(OOM)
    job.console("[run.sh] train.py ended with exit code 1, restarting training from step 4").steps(9, first=4).finish()
    diagnosis = triage.ingest(job.write())
    assert (diagnosis.verdict, diagnosis.root_cause) == ("clean", None)


@pytest.mark.parametrize(
    ("earlier", "present", "expected"),
    [
        ("w-0.previous.log", "w-0.log", True),
        ("logs/previous/w-0.log", "logs/w-0.log", True),
        ("w-0-prev.log", "w-0.log", True),
        ("w-0.previous.log", "w-1.log", False),
        ("w-0.log", "w-0.log", False),
        ("previously.log", "ly.log", False),
    ],
)
def test_the_log_of_a_container_before_its_restart(earlier: str, present: str, expected: bool) -> None:
    """It is over where the present log of the same container shows progress."""
    assert attempts.is_before_restart(earlier, {present}) is expected
    assert not attempts.is_before_restart(earlier, ())


@pytest.mark.parametrize("went_on_after", [True, False])
def test_a_failure_before_a_restart_ended_nothing(tmp_path: Path, went_on_after: bool) -> None:
    """A worker that came too early was restarted: the job has no cause as long as the worker trains since."""
    (tmp_path / "w-0.previous.log").write_text(
        'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n    main()\n'
        "ValueError: host not found: Name or service not known\n"
    )
    steps = "".join(f"step={step} loss=0.5\n" for step in range(9)) if went_on_after else "starting\n"
    (tmp_path / "w-0.log").write_text(steps)
    assert triage.ingest(tmp_path).verdict == ("inconclusive" if went_on_after else "known")
