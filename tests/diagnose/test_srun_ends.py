"""Ends of srun's tasks: a task may be a launcher with ranks of its own, or a victim of srun itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import triage
from triage.diagnose.attribution import attribute
from triage.diagnose.srun_ends import killed_with_step, tasks_of_srun
from triage.model.details import ExitDetail
from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import JobMap

from .factories import exited, fact, job_of

CANCELLED = "slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-11-03T18:20:36 ***"


def ended(task: int, *, signal: str = "", host: str = "node1", offset: int = 0) -> Evidence:
    """Return the end of a task, as srun reports it."""
    detail = ExitDetail(None if signal else 1, signal)
    return fact(f"task {task}", task, kind="exit", component="slurm", detail=detail, host=host, offset=offset)


def agents(*, local_rank: int | None = None, text: str = "step 1") -> list[Evidence]:
    """Return an end of a process with a local rank, or a line."""
    one = exited(None, -11) if local_rank is not None else fact(text)
    return [replace(one, origin=Origin(local_rank=local_rank))]


@pytest.mark.parametrize(
    ("others", "rank"),
    [
        (agents(local_rank=2), None),
        (agents(text="torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "), None),
        (agents(text="[launch.py:319:sigkill_handler] ['python', 'train.py'] exits with return code = 1"), None),
        (agents(text="the elastic search index has 4 shards"), 3),
        ([exited(2, 1)], 3),
    ],
)
def test_a_task_that_is_a_launcher_is_no_rank(others: list[Evidence], rank: int | None) -> None:
    """Where the launcher of a node wrote a line, srun started launchers; else it started the ranks themselves."""
    assert tasks_of_srun([ended(3), *others], job_of(4))[0].origin.rank == rank


@pytest.mark.parametrize(
    "line", [exited(3, 1), fact("slurmstepd: error: Detected 1 oom_kill event", 3, kind="scheduler", component="slurm")]
)
def test_what_reports_no_end_of_a_task_keeps_its_rank(line: Evidence) -> None:
    """An end that a launcher reports has the rank of the launcher, and Slurm's other lines are about no task."""
    assert tasks_of_srun([line, *agents(local_rank=2)], job_of(4))[0].origin.rank == 3


@pytest.mark.parametrize(
    ("others", "signals", "offset", "is_victim"),
    [
        ([], ["SIGKILL", "SIGKILL"], 50, True),
        ([], ["SIGKILL", "SIGKILL"], 5, False),  # before the step ended
        ([], ["SIGKILL", "SIGTERM"], 50, False),  # somebody killed one of them
        ([], ["SIGKILL"], 50, False),
        (["slurmstepd: error: Detected 1 oom_kill event in StepId=7.0"], ["SIGKILL", "SIGKILL"], 50, False),
    ],
)
def test_tasks_that_are_all_killed_after_the_end_of_the_step_are_victims(
    others: list[str], signals: list[str], offset: int, *, is_victim: bool
) -> None:
    """Programs that do not heed SIGTERM are killed by a cancellation, and none of them began it."""
    lines = [fact(text, kind="scheduler", component="slurm", offset=10) for text in (CANCELLED, *others)]
    ends = [ended(task, signal=signal, offset=offset + task) for task, signal in enumerate(signals)]
    details = [one.detail for one in killed_with_step(lines + ends) if isinstance(one.detail, ExitDetail)]
    assert all(detail.stopped_by_agent for detail in details) is is_victim


@pytest.mark.parametrize(("host", "rank"), [("node1", 1), ("node2", None), ("node9", 1)])
def test_a_task_on_another_host_than_the_rank_of_its_number_is_no_rank(host: str, rank: int | None) -> None:
    """Rank 1 runs on node1 and ranks 2 and 3 on node2: task 1 on node2 is a launcher; of node9 no file knows."""
    job = JobMap()
    for number in range(4):
        job.learn("job.log", Origin(rank=number, host=f"node{1 + number // 2}"))
    assert tasks_of_srun([ended(1, host=host)], job)[0].origin.rank == rank


@pytest.mark.parametrize(
    ("first", "last", "signal", "is_stopped"),
    [
        (1, 9, "SIGKILL", True),
        (1, 9, "SIGTERM", True),
        (1, 9, "SIGSEGV", False),  # srun sends no such signal
        (1, 4, "SIGKILL", False),  # before srun ended the step
        (6, 9, "SIGKILL", False),  # somebody else ended the step: no task had failed
    ],
)
def test_what_srun_killed_after_the_first_failure_is_a_victim(
    first: int, last: int, signal: str, is_stopped: bool
) -> None:
    """The step ends at 5: tasks that die by a signal later did so with it, if another had failed before."""
    facts = [ended(0, offset=first), fact(CANCELLED, kind="scheduler", offset=5)]
    facts = [*facts, ended(1, signal=signal, offset=last)]
    ends = {one.origin.rank: one.detail for one in attribute(facts, job_of(2))[0] if isinstance(one.detail, ExitDetail)}
    assert ends[1].stopped_by_agent == is_stopped


@pytest.mark.parametrize(("first", "is_stopped"), [("SIGABRT", True), ("SIGKILL", False)])
def test_the_end_of_the_step_may_stand_in_another_file(first: str, *, is_stopped: bool) -> None:
    """slurmstepd writes it to the file of a task: who is killed after a task failed by itself is a victim."""
    facts = [ended(0, signal=first, offset=1), ended(1, signal="SIGKILL", offset=9)]
    facts.append(fact(CANCELLED, kind="scheduler", source="task_0.out", offset=3))
    ends = {one.origin.rank: one.detail for one in attribute(facts, job_of(2))[0] if isinstance(one.detail, ExitDetail)}
    assert ends[1].stopped_by_agent == is_stopped


def test_a_victim_of_srun_is_not_the_root(tmp_path: Path) -> None:
    """Task 1 aborted first; task 2 was killed when srun ended the step."""
    lines = ["step 1", "step 2", "terminate called after throwing an instance of 'std::bad_alloc'"]
    lines += ["  what():  std::bad_alloc", "srun: error: node1: task 1: Aborted (core dumped)"]
    lines += ["srun: Terminating StepId=7.0", CANCELLED, "srun: error: node1: task 2: Killed"]
    (tmp_path / "slurm-7.out").write_text("\n".join(lines) + "\n")
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert (root.signature != "host.sigkill", root.ranks) == (True, (1,))
