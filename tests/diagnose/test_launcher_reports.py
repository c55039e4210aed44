"""What a launcher says about other processes is no failure of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.diagnose.attribution import attribute
from triage.diagnose.launcher_reports import is_end_report, is_launcher_report, lists_worker_errors
from triage.model import Evidence

from .factories import exited, fact, job_of, raised

REPORTS = [
    "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing an abort",
    "Exception: Command '['python', 'train.py']' returned non-zero exit status 1.",
    "LauncherError: 2 of 8 workers failed",
    "RuntimeError: Distributed job exited with exception. Please check logs in directory: /scratch/logs.",
    "ExecuteUserScriptError: ExitCode 1",
    "RuntimeError: process 17 died unexpectedly",
    "RuntimeError: The training job stopped: a worker exited with exception. See the logs in the directory: out",
]


@pytest.mark.parametrize("text", REPORTS)
def test_an_exception_about_a_process_is_a_report(text: str) -> None:
    """Without a rank it is the launcher's; a rank's own program may start processes too."""
    assert is_launcher_report(raised(text, None))
    assert not is_launcher_report(raised(text, 3))


@pytest.mark.parametrize(("text", "rank"), [(REPORTS[0], None), ("ValueError: no tokens", 2)])
def test_a_report_is_not_the_exception_of_the_only_rank_that_ended_with_a_code(text: str, rank: int | None) -> None:
    """The last exception of the only file is that rank's own, unless the launcher raised it."""
    facts, _ = attribute([exited(2, 1), raised(text, None, offset=9)], job_of(4))
    assert [one.origin.rank for one in facts if one.kind == "exception"] == [rank]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (exited(3, 1), True),
        (fact("worker 3 exited unexpectedly with code 1", 3), True),
        (raised("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", 0), True),
        (raised("dask.KilledWorker: Attempted to run task 7 on 3 workers", 0), False),
        (raised("RuntimeError: Connection closed by peer", 0), False),
        (fact("ChildFailedError in the docs", 0), False),
    ],
)
def test_reports_of_ends(one: Evidence, expected: bool) -> None:
    """Of a known rank too: that a process ended, and not why; what an exception says its own process saw."""
    assert is_end_report(one) == expected


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: bad status in row 7",
        "KeyError: 'exit'",
        "RuntimeError: task 3 is empty",
        "Exception: worker 3 failed with error: CUDA out of memory",
    ],
)
def test_other_exceptions_are_no_reports(text: str) -> None:
    """Words such as status or task alone do not make one."""
    assert not is_launcher_report(raised(text, None))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[proxy:0:1@node7] HYD_pmcd_pmip_control_cmd_cb (proxy/pmip_cb.c:480): assert (!closed) failed", True),
        ("[mpiexec@node7] HYDT_bscu_wait_for_completion (tools/bootstrap/utils/bscu_wait.c:109): terminated", True),
        ("proxy for mpiexec: assert (size > 0) failed", False),
    ],
)
def test_lines_of_a_process_manager(line: str, expected: bool) -> None:
    """Hydra's own assertions fail when a process is gone; a program's do not count as such."""
    assert is_launcher_report(fact(line, kind="ending")) == expected


def test_a_report_does_not_outweigh_what_the_ranks_show(tmp_path: Path) -> None:
    """The ranks wait for one that never came; that the launcher then raises is no cause."""
    waits = "torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 3/4 clients joined.\n"
    head = "Traceback (most recent call last):\n"
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text(f'{head}  File "a.py", line 3, in f\n    g()\n{waits}')
    (tmp_path / "launcher.log").write_text(
        f'{head}  File "/opt/bin/run", line 8, in <module>\n    go()\n{REPORTS[0]}\n'
    )
    cause = triage.ingest(tmp_path).root_cause
    assert cause is not None
    assert (cause.signature, cause.ranks) == ("launch.wrong-world-size", (3,))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Error: Training failed due to worker errors:\n- (ip=10.0.0.11, pid=2395) world_rank=1", True),
        ("the run failed because of 2 node failures", True),
        ("ValueError: training failed due to a worker count of 0", False),
    ],
)
def test_the_list_of_a_driver_says_less_than_what_ended_its_worker(line: str, *, expected: bool) -> None:
    """A driver names the ranks of the workers that failed, not why."""
    assert lists_worker_errors(fact(line, 1, kind="ending")) is expected


LOST = "[rank2]: RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.9]:29111"
TIMEOUT = (
    "[rank2]:[E304 10:31:11.100 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=88, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
)
STACK = 'Traceback (most recent call last):\n  File "/opt/run/driver.py", line 44, in main\n    pool.join()\n'


@pytest.mark.parametrize("symptom", [LOST, TIMEOUT])
@pytest.mark.parametrize(
    "report",
    [
        f"{STACK}flow.errors.TaskFailedError: Task train failed with exit code 1",
        f"{STACK}pool.WorkerGroupError: worker group failed, see above for the root cause",
        "engine.StartError: the engine did not start; check the errors of the workers above",
        "sched: job 17: step train failed with status 1",
    ],
)
def test_a_report_is_no_cause_beside_a_symptom(tmp_path: Path, symptom: str, report: str) -> None:
    """What says only that something failed, or where to look, follows from what the symptom tells; alone it stays."""
    (tmp_path / "job.log").write_text(f"{symptom}\n{report}\n")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.cluster) == (None, None)
    assert diagnosis.unknown
    (tmp_path / "job.log").write_text(f"{report}\n")
    alone = triage.ingest(tmp_path).root_cause
    assert alone is not None
    assert alone.cluster is not None


@pytest.mark.parametrize(
    "failure",
    [f"{STACK}ValueError: shard 17 of the data has 12 columns", "[rank1]: sched: step train failed with status 1"],
)
def test_another_failure_or_rank_stays_a_cause_beside_a_symptom(tmp_path: Path, failure: str) -> None:
    """An error that says what was wrong, and the status of a rank that shows no symptom, may be the beginning."""
    (tmp_path / "job.log").write_text(f"{LOST}\n{failure}\n")
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert root.cluster is not None
