"""triage.ranks.conflicts"""

from __future__ import annotations

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
