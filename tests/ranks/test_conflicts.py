"""triage.ranks.conflicts"""

from __future__ import annotations

from triage.model.evidence import Origin
from triage.ranks.conflicts import remarks
from triage.ranks.identity import JobMap


def told(job: JobMap) -> list[tuple[str, str]]:
    return [(warning.code, warning.message) for warning in remarks(job)]


def job_of(*seen: tuple[str, Origin]) -> JobMap:
    job = JobMap()
    for source, origin in seen:
        job.learn(source, origin)
    job.settle()
    return job


def test_a_job_without_contradictions_has_no_remarks() -> None:
    """Two hosts, each pid and local rank with one rank."""
    assert not told(
        job_of(*(("x", Origin(rank=r, local_rank=r % 2, host=f"node{r // 2}", pid=40 + r)) for r in range(4)))
    )


def test_a_process_with_two_ranks_is_said() -> None:
    """Its lines are given to neither; the same pid on another host is another process."""
    [(code, message)] = told(job_of(("x", Origin(rank=0, host="n1", pid=41)), ("x", Origin(rank=1, host="n1", pid=41))))
    assert (code, "process 41 is called ranks 0, 1" in message) == ("identity-conflict", True)
    assert not told(job_of(("x", Origin(rank=0, host="n1", pid=41)), ("x", Origin(rank=1, host="n2", pid=41))))


def test_a_local_rank_with_two_ranks_is_said() -> None:
    """On one host, that cannot be."""
    [(code, message)] = told(
        job_of(
            ("x", Origin(rank=0, local_rank=0, host="node1.cluster")), ("x", Origin(rank=1, local_rank=0, host="node1"))
        )
    )
    assert (code, "local rank 0 of node1 is called ranks 0, 1" in message) == ("identity-conflict", True)


def test_a_file_that_is_called_otherwise_than_its_lines_say_is_said() -> None:
    """`rank_5.log` in which only rank 6 speaks."""
    job = job_of(("rank_5.log", Origin(rank=6)), ("rank_6.log", Origin(rank=6)))
    assert (
        "identity-conflict",
        "the lines are believed, not the name of their file: rank_5.log calls itself rank 6",
    ) in told(job)


def test_ranks_beyond_the_world_are_said() -> None:
    """The size that is stated is too small, or the rank is none."""
    job = job_of(("x", Origin(rank=9)))
    job.sizes.add(8)
    assert "rank 9 is named, though the largest size of the world that is stated is 8" in told(job)[0][1]


def test_missing_ranks_are_said() -> None:
    """Where at least two ranks are told apart; one rank alone may be all that was asked for."""
    job = job_of(("x", Origin(rank=0)), ("x", Origin(rank=3)))
    job.sizes.add(8)
    assert job.missing() == (1, 2, 4, 5, 6, 7)
    assert told(job) == [
        ("missing-ranks", "of 8 ranks nothing here names ranks 1, 2, 4-7: if they have logs, give them too")
    ]
    alone = job_of(("x", Origin(rank=0)))
    alone.sizes.add(8)
    assert not told(alone)


def test_clocks_that_are_apart_are_said() -> None:
    """With how far, how sure, and by what."""
    job = JobMap()
    for step in range(5):
        job.clocks.see(f"step {step}", "node1", 100.0 + step)
        job.clocks.see(f"step {step}", "node2", 28900.0 + step)
    job.settle()
    [(code, message)] = told(job)
    assert code == "clock-skew"
    assert "node2 are 28800 s ahead of those of node1 (another time zone)" in message
    assert "by 5 events" in message
    assert job.on_one_clock(Origin(host="node2.cluster", time=28900.0)).time == 100.0
    assert job.on_one_clock(Origin(host="node1", time=100.0)).time == 100.0
