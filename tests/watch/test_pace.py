"""Ranks that fall out of step, told from what is seen of their steps, and nothing told of a job that is well."""

from __future__ import annotations

import random

import pytest

from triage.watch.pace import Limits, Pace, Remark

POLL = 0.5
RANKS = 64
Stamps = dict[int, list[float]]


def run(steps: Stamps, seconds: float) -> list[tuple[float, Remark]]:
    """Every rank prints its n-th step at the n-th of its stamps; what is remarked, and when."""
    pace = Pace(Limits(), poll=2 * POLL)
    told: list[tuple[float, Remark]] = []
    place = dict.fromkeys(steps, 0)
    now = 0.0
    while now < seconds:
        now += POLL
        for rank, stamps in steps.items():
            before = place[rank]
            while place[rank] < len(stamps) and stamps[place[rank]] <= now:
                place[rank] += 1
            if place[rank] > before:
                pace.saw(now, rank, place[rank])
        told += [(now, remark) for remark in pace.remarks(now)]
    return told


def even(step: float, count: int, ranks: int = RANKS, jitter: float = 0.2) -> Stamps:
    """Stamps of a synchronous job: the steps of all ranks end together, but for some jitter."""
    chance = random.Random(7)
    return {
        rank: [step * (number + 1) + chance.random() * jitter * step for number in range(count)]
        for rank in range(ranks)
    }


@pytest.mark.parametrize("step", [1.0, 5.0, 20.0])
def test_a_silent_rank_is_named_within_three_steps(step: float) -> None:
    """Rank 37 of 64 stops after its 30th step while the others go on: named, alone, within three usual steps of its
    last word.
    """
    steps = even(step, 60)
    steps[37] = steps[37][:30]
    (when, remark), *others = run(steps, 60 * step)
    assert (remark.kind, remark.ranks) == ("silent", (37,))
    assert when - steps[37][-1] <= 3 * step + 2 * POLL
    assert others == []


def test_a_rank_that_comes_back_is_said_to_be_back() -> None:
    """Silence of 30 s, then all that it had to say at once."""
    steps = even(2.0, 120)
    steps[5] = [stamp if number < 40 else max(stamp, 110.0) for number, stamp in enumerate(steps[5])]
    assert [(remark.kind, remark.ranks) for _, remark in run(steps, 240)] == [("silent", (5,)), ("back", (5,))]


def test_no_step_of_any_rank_is_a_stall_that_names_who_did_not_arrive() -> None:
    """All stop at step 50 and rank 9 at 49: said once, not before 30 steps and three minutes, and gone when they go on."""
    steps = even(2.0, 50)
    steps[9] = steps[9][:49]
    told = run(steps, 800)
    stalls = [(when, remark) for when, remark in told if remark.kind == "stalled"]
    ((when, remark),) = stalls
    assert remark.ranks == (9,)
    assert 180 <= when - 100 <= 200
    resumed = {rank: [*stamps, 600.0 + rank / 1000] for rank, stamps in steps.items()}
    assert [remark.kind for _, remark in run(resumed, 700) if remark.kind in ("stalled", "resumed")] == [
        "stalled",
        "resumed",
    ]


def test_steps_that_become_slow_are_said_once_and_who_comes_last() -> None:
    """From step 60 on each takes three times as long, and rank 3 prints a second after the others."""
    steps: Stamps = {rank: [] for rank in range(RANKS)}
    now = 0.0
    for number in range(120):
        now += 2.0 if number < 60 else 6.0
        for rank in range(RANKS):
            steps[rank].append(now + (2.0 if rank == 3 and number >= 60 else 0.0))
    told = [remark for _, remark in run(steps, now) if remark.kind == "slow"]
    assert [remark.ranks for remark in told] == [(3,)]


def test_a_job_whose_ranks_finished_is_not_stalled() -> None:
    """Ranks that said that they are done owe no further step."""
    pace = Pace(Limits(), poll=1.0)
    for number in range(40):
        for rank in range(4):
            pace.saw(float(number), rank, number)
    for rank in range(4):
        pace.saw(40.0, rank, None, finished=True)
    assert pace.remarks(4000.0) == []


def test_a_job_of_one_or_two_ranks_has_no_odd_one() -> None:
    """Of two ranks nobody can say which one is silent."""
    steps = even(1.0, 60, ranks=2)
    steps[1] = steps[1][:20]
    assert run(steps, 60) == []


def test_a_restart_says_nothing_twice_and_knows_who_is_back() -> None:
    """Silent, slow and stalled before the restart: not said again, and said to be over when it is."""
    pace = Pace(Limits(), poll=1.0)
    pace.recall(0.0, ("silent 5", "slow", "stalled"), [1.0] * 24)
    told = []
    for now in range(60):
        step = 100 + now // 2 if now < 30 else 115 + (now - 30)
        for rank in range(8):
            if now < 40 and rank == 5:
                continue
            pace.saw(float(now), rank, step)
        told += [(now, remark.kind, remark.ranks) for remark in pace.remarks(float(now))]
    assert [item[1:] for item in told if item[1] != "usual"] == [("resumed", ()), ("back", (5,))]
    assert [kind for now, kind, _ in told if kind == "usual" and now >= 30] == ["usual"]


def test_ranks_that_finished_are_no_longer_silent() -> None:
    """The last word of a silent rank, and of all others, takes back what was said of it."""
    pace = Pace(Limits(), poll=1.0)
    told = []
    for now in range(60):
        for rank in range(8):
            if rank != 5 or now < 30:
                pace.saw(float(now), rank, now)
        told += [(remark.kind, remark.ranks) for remark in pace.remarks(float(now))]
    for rank in range(8):
        pace.saw(60.0, rank, None, finished=True)
    told += [(remark.kind, remark.ranks) for remark in pace.remarks(60.0)]
    assert told == [("silent", (5,)), ("back", (5,))]
