"""A whole watch over an hour of a healthy job, on a simulated clock."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.watch.replay import POLL, Clock, start_watch
from triage.watch import loop

RANKS = 64


def schedule(seconds: float, chance: random.Random) -> list[tuple[float, int, str]]:
    """Return (time, rank, line) of all lines: steps of 6 s, some checkpoints of 45 s and evaluations of 2 min."""
    lines = []
    now, number = 0.0, 0
    while now < seconds:
        number += 1
        now += 6.0 * chance.uniform(0.9, 1.2)
        pause = 120.0 if number % 150 == 0 else 45.0 if number % 40 == 0 else 0.0
        for rank in range(RANKS):
            delay = pause + 0.1 if rank == 0 else chance.uniform(0, 0.3)  # rank 0 saves before it prints
            lines.append(
                (
                    now + delay,
                    rank,
                    f"2026-11-21 10:00:00,123 INFO train: step {number} loss 2.3171 lr 3.0e-04 tokens/s 18233\n",
                )
            )
        now += pause
    return sorted(lines)


def test_no_false_alarm_for_an_hour_and_then_a_silent_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints and evaluations cause no event; a rank that stops is named, alone, within three steps."""
    monkeypatch.setattr(loop, "_FIND_INTERVAL", 300.0)  # no file is new
    chance = random.Random(5)
    lines = schedule(3900, chance)
    stop = next(time for time, rank, _ in lines if time > 3600 and rank == 37)
    clock, events, files = Clock(), [], [(tmp_path / f"rank_{rank}.log").open("a") for rank in range(RANKS)]
    watch, place, last = start_watch(tmp_path, clock), 0, 0.0
    while place < len(lines):
        clock.now += POLL
        while place < len(lines) and lines[place][0] <= clock.now - 1000.0:
            time, rank, line = lines[place]
            place += 1
            if rank != 37 or time <= stop:
                last = time if rank == 37 else last
                files[rank].write(line)
                files[rank].flush()
        events += [(clock.now - 1000.0, news.kind, news.ranks) for news in watch.step()]
    for file in files:
        file.close()
    assert [item[1:] for item in events] == [("silent", (37,))]
    assert events[0][0] - last <= 3 * 6.3
