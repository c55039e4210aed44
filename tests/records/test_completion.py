"""triage.records.completion: lines that say that something ended well, by their form."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.records import completion
from triage.records.completion import read_completion

PROGRAM = [
    "Training complete",
    "2026-03-02 04:08:22,001 INFO train: training finished",
    "training finished after 540 steps, 0 errors",
    "Finished training in 0:10:04",
    "rank 3: training finished",
    "rank 3 finished, exit 0",
    "================== 5 passed, 1 skipped in 0.12s ==================",
    "100% tests passed, 0 tests failed out of 5",
    "[INFO] BUILD SUCCESS",
    "worker 7 done.",
    "{'train_runtime': 482.1, 'train_loss': 2.113, 'epoch': 3.0}",
    "`Trainer.fit` stopped: `max_epochs=3` reached.",
    '{"level": "info", "msg": "training finished", "errors": 1}',
    '{"event": "training_complete"}',
    "training done, exit status 0, errors: 0",
    "[after training is done] datetime: 2026-03-04 06:22:10",
]
PROCESS = [
    "trainer-1 exited with code 0",
    "Process 31124 exits successfully.",
    "[launcher] attempt 1 finished with exit code 0",
    "(pid 3112) ended with status 0",
    "exit code: 0",
    "Exit-Code 0",
    "+ exit 0",
    "exit_status  0",
]
JOB = [
    "   JobState=COMPLETED Reason=None Dependency=(null)",
    "48211 llm70b gpu 64 COMPLETED 0:0",
    "48211|llm70b|COMPLETED|0:0||",
    "Subject: Job 48211: <llm70b> in cluster <hpc1> Done",
    "48211              train        gpu       acct         16  COMPLETED      0:0",
    "Successfully completed.",
    "  phase: Succeeded",
    "        reason: Completed",
    "worker-0   0/1     Completed   0   12m",
    "\t(1) Normal termination (return value 0)",
    "Training completed after 2 iterations at 2026-11-20 04:15:33. Total running time: 5min 30s",
    "mpirun: all 4 processes exited with status 0",
    "worker group successfully finished. Waiting 300 seconds for other agents to finish.",
    "systemd[1]: train-llm.service: Deactivated successfully.",
    "Job completed 4/4 pods Succeeded",
]
NOTHING = [
    "step 300/400 loss 2.31",
    "validation finished: val_error 0.141, 0 failures",
    "epoch 3 done",
    "training step 30 done in 3 s",
    "training 45% complete",
    "run 3 of 10 completed",
    "checkpoint save completed successfully",
    "Loading data: done",
    "Collecting package metadata (current_repodata.json): done",
    "===== 2 failed, 5 passed in 0.31s =====",
    "    return 0;",
    "training will be done in 3 h",
    "when training is done, the weights are saved",
    "waiting for training to be completed",
    "training finished: False",
    "job finished with errors",
    "training finished with exit code 1",
    "exits with return code = 1",
    "exited with code 137",
    "exited with code 0x1f",
    "metrics-exporter exited with code 0",
    "rtSetDevice(0) ret=0x0",
    "NCCL watchdog thread terminated normally",
    "kernel: worker exited with code 0",
    "sshd[12]: session closed successfully",
    "phase: Running",
    "JobState=FAILED Reason=NonZeroExitCode",
    "rank 0 finished loading the checkpoint",
    "all 3 of 4 workers finished",
    "48211.extern      extern            acct         16  COMPLETED      0:0",
    "48211.0|python|COMPLETED|0:0|",
    "State: TIMEOUT (exit code 0)",
    "State: OUT_OF_MEMORY (exit code 0)",
    "slurmctld: _job_complete: JobId=48211 done",
    "[2026-03-02T04:08:22.001] [48211.batch] done with job",
    "[2026-03-02T04:08:22.001] [48211.batch] sending REQUEST_COMPLETE_BATCH_SCRIPT, error:0 status:0",
]


@pytest.mark.parametrize(("scope", "lines"), [("program", PROGRAM), ("process", PROCESS), ("job", JOB), ("", NOTHING)])
def test_the_end_is_read_by_its_form(scope: str, lines: list[str]) -> None:
    """A program, a process or a job that ended well is told from what is only a part, a plan or a failure."""
    assert {line: read_completion(line)[0] for line in lines} == dict.fromkeys(lines, scope)


@pytest.mark.parametrize("line", ["done", "INFO main: done.", "[exiting program at iteration 600] datetime: 2026"])
def test_a_bare_word_is_weaker(line: str) -> None:
    """A word without a subject is a scope of its own, which ends no failure before it."""
    assert read_completion(line)[0] == "word"


@pytest.mark.parametrize(("share", "scope"), [("99%", ""), ("100%", "program"), ("9/10", ""), ("10/10", "program")])
def test_a_share_counts_when_it_is_the_whole(share: str, scope: str) -> None:
    """Below the whole nothing ended."""
    assert read_completion(f"training completed {share}")[0] == scope


def test_the_rank_of_a_process_is_read() -> None:
    """A launcher's line about a task proves something of that rank alone."""
    assert read_completion("slurmstepd: debug: task 3 (4471) exited with exit code 0.") == ("process", 3)


@given(
    st.sampled_from(
        (
            "rank {} finished with exit code {}",
            "training done after {} steps",
            "{} passed in {}s",
            "process {} exited with status {}",
            "last completed work: {}",
            "all {} workers completed with {} errors",
            "exit code {} phase {}",
        )
    ),
    st.integers(0, 999),
    st.integers(0, 999),
)
def test_a_line_that_compares_no_numbers_is_read_alike_with_others(form: str, first: int, second: int) -> None:
    """Of lines without a share, numbers count only as zero or not; the rank is the one that the line names."""
    text = form.format(first, second)
    other = text.translate(str.maketrans("3456789", "2" * 7))
    scope, rank = read_completion(text)
    assert read_completion(other)[0] == scope == completion._read(text)[0]
    assert rank == completion._read(text)[1]
