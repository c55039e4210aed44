"""triage.diagnose.memory_kills"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.diagnose.factories import exited, fact
from triage.diagnose.memory_kills import by_memory_kill, is_at_other_time, killed_process, may_be_rank, was_killed
from triage.model import Evidence, Origin, RankBasis
from triage.ranks.identity import JobMap

KILL = "Out of memory: Killed process {} ({}) total-vm:9000000kB"


def killed(pid: int = 4242, name: str = "python3", *, host: str | None = "n1", rank: int | None = None) -> Evidence:
    """Return the kernel's line about a process that it killed."""
    return fact(KILL.format(pid, name), rank, kind="kernel", host=host)


def job_on(hosts: dict[int, str | None], *, size: int = 0, pids: dict[int, int] | None = None) -> JobMap:
    """Return a job whose ranks are on these hosts."""
    job = JobMap()
    for rank, host in hosts.items():
        job.learn("job.log", Origin(rank=rank, host=host, pid=(pids or {}).get(rank)))
    if size:
        job.sizes.add(size)
    job.resolve()
    return job


def owner_of(facts: Sequence[Evidence], job: JobMap) -> tuple[int | None, RankBasis]:
    """Return the rank of the first fact, and how it is known."""
    placed = by_memory_kill(list(facts), job)[0]
    return placed.origin.rank, placed.rank_basis


PAIR: dict[int, str | None] = {0: "n1", 1: "n2"}
SHARED: dict[int, str | None] = {0: "n1", 1: "n1", 2: "n2"}
DEAD = exited(1, -9, signal="SIGKILL", host="n1")


@pytest.mark.parametrize(
    ("facts", "hosts", "owner"),
    [
        ([killed(), DEAD], SHARED, (1, "exit status")),
        ([killed(), exited(1, 137, host="n1")], SHARED, (1, "exit status")),
        ([killed(), exited(1, -9, host="n1"), exited(0, -9, host="n1")], SHARED, (None, "")),
        ([killed(), exited(1, -9, host="n1"), exited(2, -9, host="n2")], SHARED, (1, "exit status")),
        ([killed(), exited(1, -9)], SHARED, (1, "exit status")),
        ([killed(), exited(2, -9)], SHARED, (None, "")),
        ([killed(), exited(1, 1, host="n1")], SHARED, (None, "")),
        ([killed(), exited(1, -9, by_agent=True, host="n1")], SHARED, (None, "")),
        ([killed(), killed(4243), DEAD], SHARED, (None, "")),
        ([killed(), killed(), DEAD], SHARED, (1, "exit status")),
        ([killed(), killed(rank=0), DEAD], SHARED, (None, "")),
        ([killed()], PAIR, (0, "only rank on its host")),
        ([killed()], SHARED, (None, "")),
        ([killed(name="mysqld")], PAIR, (None, "")),
        ([killed(), exited(0, 1)], PAIR, (None, "")),
        ([killed(host=None)], {0: "n1"}, (0, "only rank on its host")),
        ([killed(host=None)], PAIR, (None, "")),
        ([killed(host=None), DEAD], {0: "n1", 1: "n1"}, (1, "exit status")),
        ([killed(host=None), DEAD], {0: "n1", 1: None}, (None, "")),
        ([killed(host="n1.cluster.local"), DEAD], SHARED, (1, "exit status")),
    ],
)
def test_the_owner_is_the_only_rank_that_can_be_meant(
    facts: list[Evidence], hosts: dict[int, str | None], owner: tuple[int | None, RankBasis]
) -> None:
    """The one that died by SIGKILL on that host, or the only one there that did not end otherwise."""
    assert owner_of(facts, job_on(hosts)) == owner


def test_a_missing_rank_may_run_on_the_host_too() -> None:
    """Then the only known rank there is not the only one."""
    assert owner_of([killed()], job_on(PAIR, size=3)) == (None, "")
    assert owner_of([killed()], job_on(PAIR, size=2)) == (0, "only rank on its host")


@pytest.mark.parametrize(
    ("facts", "owner"),
    [
        ([killed(), DEAD], (1, "another pid")),
        ([killed(name="mysqld"), DEAD], (None, "")),
        ([killed(host=None), DEAD], (None, "")),
        ([killed()], (None, "")),
    ],
)
def test_a_rank_with_another_pid_must_have_died_there(facts: list[Evidence], owner: tuple[int | None, str]) -> None:
    """As in a container; the process must be called as ranks are, and the host be known."""
    hosts: dict[int, str | None] = {1: "n1"} if len(facts) == 1 else {0: "n1", 1: "n1"}
    assert owner_of(facts, job_on(hosts, pids={1: 77})) == owner


def test_a_process_that_ended_at_another_time_is_another() -> None:
    """Ten minutes later the kernel's line is not about it."""
    lines = [replace(killed(), origin=Origin(host="n1", time=100.0)), exited(1, -9, host="n1", time=130.0)]
    assert owner_of(lines, job_on(SHARED)) == (1, "exit status")
    lines[1] = exited(1, -9, host="n1", time=700.0)
    assert owner_of(lines, job_on(SHARED)) == (None, "")


@pytest.mark.parametrize(
    ("end", "was"),
    [
        (exited(1, -9), True),
        (exited(1, 137), True),
        (exited(1, 1, signal="SIGKILL"), True),
        (exited(1, -9, by_agent=True), False),
        (exited(1, 1), False),
        (fact("process 1 terminated with signal SIGKILL", 1), True),
        (fact("process 1 terminated with signal SIGKILL"), False),
        (fact("process 1 terminated with signal SIGTERM", 1), False),
        (fact("x" * 4000 + " process 1 terminated with signal SIGKILL", 1), False),
    ],
)
def test_an_end_by_sigkill(end: Evidence, was: bool) -> None:
    """Not by the launcher; or what a parent says of its child, if it is known which rank that is."""
    assert was_killed(end) is was


def test_the_kernel_s_line_names_the_process() -> None:
    """In two forms; other lines of the kernel, and other programs that quote it, name none."""
    cgroup = "oom-kill:constraint=CONSTRAINT_MEMCG,task=python3,pid=77,uid=0"
    assert killed_process(killed(77)) == ("77", "python3")
    assert killed_process(fact(cgroup, kind="kernel")) == ("77", "python3")
    assert killed_process(fact("NVRM: Xid 79", kind="kernel")) is None
    assert killed_process(fact(KILL.format(77, "python3"))) is None


@pytest.mark.parametrize(
    ("name", "expected"), [("python3.11", True), ("ray::Train", True), ("mysqld", False), ("mypython", False)]
)
def test_ranks_run_under_such_names(name: str, expected: bool) -> None:
    """Python's, and those that Ray gives."""
    assert may_be_rank(name) is expected


@pytest.mark.parametrize(("hours", "is_other"), [(25.5, False), (26.0, True), (-25.5, False)])
def test_zones_are_at_most_26_hours_apart(hours: float, is_other: bool) -> None:
    """A longer time is a longer time."""
    kill = replace(killed(), origin=Origin(time=1e6))
    assert is_at_other_time(kill, fact("x", 0, time=1e6 + 3600 * hours + 5)) is is_other
    assert not is_at_other_time(kill, fact("x", 0))
    assert not is_at_other_time(killed(), fact("x", 0, time=5.0))
