"""The pace monitor finds silent ranks, slow steps and stalls, and stays quiet about a healthy job."""

from __future__ import annotations

import random

import pytest

from triage.watch.pace import Limits, PaceEvent, PaceMonitor

POLL = 0.5
RANKS = 64
Stamps = dict[int, list[float]]


def run(steps: Stamps, seconds: float) -> list[tuple[float, PaceEvent]]:
    """Let every rank print its n-th step at its n-th timestamp; return the events with their times."""
    pace = PaceMonitor(Limits(), poll=2 * POLL)
    events: list[tuple[float, PaceEvent]] = []
    position = dict.fromkeys(steps, 0)
    now = 0.0
    while now < seconds:
        now += POLL
        for rank, stamps in steps.items():
            before = position[rank]
            while position[rank] < len(stamps) and stamps[position[rank]] <= now:
                position[rank] += 1
            if position[rank] > before:
                pace.record(now, rank, position[rank])
        events += [(now, event) for event in pace.check(now)]
    return events


def even(step: float, count: int, ranks: int = RANKS, jitter: float = 0.2) -> Stamps:
    """Return timestamps of a synchronous job: all ranks end a step together, but for some jitter."""
    chance = random.Random(7)
    return {
        rank: [step * (number + 1) + chance.random() * jitter * step for number in range(count)]
        for rank in range(ranks)
    }


@pytest.mark.parametrize("step", [1.0, 5.0, 20.0])
def test_a_silent_rank_is_named_within_three_steps(step: float) -> None:
    """A rank that stops while the others continue is named, alone, within three usual steps of its last line."""
    steps = even(step, 60)
    steps[37] = steps[37][:30]
    (when, event), *others = run(steps, 60 * step)
    assert (event.kind, event.ranks) == ("silent", (37,))
    assert when - steps[37][-1] <= 3 * step + 2 * POLL
    assert others == []


def test_a_silent_rank_that_continues_is_reported_as_back() -> None:
    """After 30 s of silence all its lines come at once."""
    steps = even(2.0, 120)
    steps[5] = [stamp if number < 40 else max(stamp, 110.0) for number, stamp in enumerate(steps[5])]
    assert [(event.kind, event.ranks) for _, event in run(steps, 240)] == [("silent", (5,)), ("back", (5,))]


def test_a_stall_names_the_rank_that_did_not_reach_the_last_step() -> None:
    """All ranks stop at step 50, rank 9 at 49: one event after 30 steps and three minutes, one when they continue."""
    steps = even(2.0, 50)
    steps[9] = steps[9][:49]
    events = run(steps, 800)
    stalls = [(when, event) for when, event in events if event.kind == "stalled"]
    ((when, event),) = stalls
    assert event.ranks == (9,)
    assert 180 <= when - 100 <= 200
    resumed = {rank: [*stamps, 600.0 + rank / 1000] for rank, stamps in steps.items()}
    assert [event.kind for _, event in run(resumed, 700) if event.kind in ("stalled", "resumed")] == [
        "stalled",
        "resumed",
    ]


def test_slow_steps_are_reported_once_with_the_slowest_rank() -> None:
    """From step 60 each step takes three times as long, and rank 3 prints after the others."""
    steps: Stamps = {rank: [] for rank in range(RANKS)}
    now = 0.0
    for number in range(120):
        now += 2.0 if number < 60 else 6.0
        for rank in range(RANKS):
            steps[rank].append(now + (2.0 if rank == 3 and number >= 60 else 0.0))
    events = [event for _, event in run(steps, now) if event.kind == "slow"]
    assert [event.ranks for event in events] == [(3,)]


def test_a_job_whose_ranks_finished_is_not_stalled() -> None:
    """Finished ranks print no further steps."""
    pace = PaceMonitor(Limits(), poll=1.0)
    for number in range(40):
        for rank in range(4):
            pace.record(float(number), rank, number)
    for rank in range(4):
        pace.record(40.0, rank, None, finished=True)
    assert pace.check(4000.0) == []


def test_two_ranks_are_too_few_for_a_silent_one() -> None:
    """With two ranks no majority shows which one is silent."""
    steps = even(1.0, 60, ranks=2)
    steps[1] = steps[1][:20]
    assert run(steps, 60) == []


def test_a_restart_repeats_no_event_and_reports_the_ends() -> None:
    """Problems from before the restart are not reported again; their ends are."""
    pace = PaceMonitor(Limits(), poll=1.0)
    pace.restore(0.0, ("silent 5", "slow", "stalled"), [1.0] * 24)
    events = []
    for now in range(60):
        step = 100 + now // 2 if now < 30 else 115 + (now - 30)
        for rank in range(8):
            if now < 40 and rank == 5:
                continue
            pace.record(float(now), rank, step)
        events += [(now, event.kind, event.ranks) for event in pace.check(float(now))]
    assert [item[1:] for item in events if item[1] != "usual"] == [("resumed", ()), ("back", (5,))]
    assert [kind for now, kind, _ in events if kind == "usual" and now >= 30] == ["usual"]


def test_ranks_that_finished_are_no_longer_silent() -> None:
    """A rank that was reported as silent is back when all ranks finished."""
    pace = PaceMonitor(Limits(), poll=1.0)
    events = []
    for now in range(60):
        for rank in range(8):
            if rank != 5 or now < 30:
                pace.record(float(now), rank, now)
        events += [(event.kind, event.ranks) for event in pace.check(float(now))]
    for rank in range(8):
        pace.record(60.0, rank, None, finished=True)
    events += [(event.kind, event.ranks) for event in pace.check(60.0)]
    assert events == [("silent", (5,)), ("back", (5,))]
