"""triage.ranks.conflicts"""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.conflicts import find_conflicts
from triage.ranks.identity import JobMap


def warnings_of(job: JobMap) -> list[tuple[str, str]]:
    return [(warning.code, warning.message) for warning in find_conflicts(job)]


def job_of(*origins: tuple[str, Origin]) -> JobMap:
    job = JobMap()
    for source, origin in origins:
        job.learn(source, origin)
    job.resolve()
    return job


def test_a_job_without_contradictions_has_no_warnings() -> None:
    """Two hosts, with one rank for each pid and local rank."""
    assert not warnings_of(
        job_of(*(("x", Origin(rank=r, local_rank=r % 2, host=f"node{r // 2}", pid=40 + r)) for r in range(4)))
    )


def test_a_process_with_two_ranks_is_reported() -> None:
    """Its ranks are not used. The same pid on another host is another process."""
    [(code, message)] = warnings_of(
        job_of(("x", Origin(rank=0, host="n1", pid=41)), ("x", Origin(rank=1, host="n1", pid=41)))
    )
    assert (code, "process 41 is ranks 0-1" in message) == ("identity-conflict", True)
    assert not warnings_of(job_of(("x", Origin(rank=0, host="n1", pid=41)), ("x", Origin(rank=1, host="n2", pid=41))))


def test_a_local_rank_with_two_ranks_is_reported() -> None:
    """A local rank of one host has one rank."""
    [(code, message)] = warnings_of(
        job_of(
            ("x", Origin(rank=0, local_rank=0, host="node1.cluster")), ("x", Origin(rank=1, local_rank=0, host="node1"))
        )
    )
    assert (code, "local rank 0 of node1 is ranks 0-1" in message) == ("identity-conflict", True)


def test_a_file_name_that_contradicts_its_lines_is_reported() -> None:
    """`rank_5.log` has lines of rank 6 only."""
    job = job_of(("rank_5.log", Origin(rank=6)), ("rank_6.log", Origin(rank=6)))
    assert (
        "identity-conflict",
        "file name and lines name different ranks, and the lines decide: the lines of rank_5.log are rank 6",
    ) in warnings_of(job)


def test_ranks_beyond_the_world_size_are_reported() -> None:
    """A rank is as high as the stated world size."""
    job = job_of(("x", Origin(rank=9)))
    job.sizes.add(8)
    assert "rank 9 exists, but the largest stated world size is 8" in warnings_of(job)[0][1]


def test_missing_ranks_are_reported() -> None:
    """Only if at least two ranks are known: a single log may be all there is."""
    job = job_of(("x", Origin(rank=0)), ("x", Origin(rank=3)))
    job.sizes.add(8)
    assert job.missing_ranks() == (1, 2, 4, 5, 6, 7)
    assert warnings_of(job) == [
        ("missing-ranks", "no line or file name mentions ranks 1-2, 4-7 of 8 ranks: add the missing logs")
    ]
    alone = job_of(("x", Origin(rank=0)))
    alone.sizes.add(8)
    assert not warnings_of(alone)


def test_clock_skew_is_reported() -> None:
    """With the difference, its uncertainty, and the number of common events."""
    job = JobMap()
    for step in range(5):
        job.clocks.add_event(f"step {step}", "node1", 100.0 + step)
        job.clocks.add_event(f"step {step}", "node2", 28900.0 + step)
    job.resolve()
    [(code, message)] = warnings_of(job)
    assert code == "clock-skew"
    assert "node2 is 28800 s ahead of node1 (another time zone)" in message
    assert "from 5 common events" in message
    assert job.with_corrected_time(Origin(host="node2.cluster", time=28900.0)).time == 100.0
    assert job.with_corrected_time(Origin(host="node1", time=100.0)).time == 100.0


@pytest.mark.parametrize(
    ("seconds", "is_zone"),
    [(1699.0, False), (1701.0, False), (1799.0, True), (1802.0, False), (-3600.0, True), (9.0, False)],
)
def test_half_hours_apart_are_another_time_zone(seconds: float, is_zone: bool) -> None:
    """Within the uncertainty of a second."""
    job = JobMap()
    for step in range(5):
        job.clocks.add_event(f"step {step}", "node1", 10_000.0 + step)
        job.clocks.add_event(f"step {step}", "node2", 10_000.0 + seconds + step)
    job.resolve()
    [(_, message)] = warnings_of(job)
    assert ("(another time zone)" in message) is is_zone
    assert f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} node1" in message


def test_one_common_event_is_in_the_singular() -> None:
    """`from 1 common event`."""
    job = JobMap()
    job.clocks.add_event("step", "node1", 100.0)
    job.clocks.add_event("step", "node2", 900.0)
    job.resolve()
    assert "from 1 common event);" in warnings_of(job)[0][1]


@pytest.mark.parametrize(("count", "end"), [(5, "is ranks 8-9"), (6, "; and 1 more")])
def test_five_contradictions_are_named(count: int, end: str) -> None:
    """Of more only their number."""
    pids = [("x", Origin(rank=2 * n + one, host="n1", pid=40 + n)) for n in range(count) for one in (0, 1)]
    [(_, message)] = warnings_of(job_of(*pids))
    assert message.endswith(end)
    assert message.count("process") == 5


@pytest.mark.parametrize(
    ("hosts", "is_conflict"), [((None, "n2"), True), (("n1", None), True), (("n1", "n2"), False), (("n1", "n1"), True)]
)
def test_a_pid_is_of_two_processes_only_on_known_hosts(hosts: tuple[str | None, str | None], is_conflict: bool) -> None:
    """A rank whose host is unknown may be on the same host."""
    job = job_of(*(("x", Origin(rank=rank, host=host, pid=41)) for rank, host in enumerate(hosts)))
    assert bool(warnings_of(job)) is is_conflict


def test_local_ranks_of_a_file_without_a_host_are_no_contradiction() -> None:
    """It may hold the lines of several nodes."""
    assert not warnings_of(job_of(("x", Origin(rank=0, local_rank=0)), ("x", Origin(rank=1, local_rank=0))))


@pytest.mark.parametrize(("rank", "is_conflict"), [(7, False), (8, True)])
def test_the_highest_rank_is_below_the_world_size(rank: int, is_conflict: bool) -> None:
    """Rank 8 of 8 does not exist."""
    job = job_of(*(("x", Origin(rank=one)) for one in (*range(7), rank)))
    job.sizes.add(8)
    assert ("identity-conflict" in dict(warnings_of(job))) is is_conflict


@pytest.mark.parametrize(("least", "is_zone"), [(1650.0, True), (1649.0, False)])
def test_a_time_zone_is_at_least_1700_seconds_apart(least: float, is_zone: bool) -> None:
    """However uncertain the difference is: no difference is a time zone of none."""
    job = JobMap()
    for step, difference in enumerate((least, least + 102.0)):
        job.clocks.add_event(f"step {step}", "node1", 10_000.0)
        job.clocks.add_event(f"step {step}", "node2", 10_000.0 + difference)
    job.resolve()
    assert ("(another time zone)" in warnings_of(job)[0][1]) is is_zone
