"""An hour of a healthy job, as its files grow: read, heard and judged by the watch itself, on a clock of the test's
own.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.watch.replaying import POLL, Clock, watched
from triage.watch import loop

RANKS = 64


def schedule(seconds: float, chance: random.Random) -> list[tuple[float, int, str]]:
    """Time, rank and line of everything written, by time: steps of 6 s, every 40 a checkpoint of 45 s, every 150 an
    evaluation of two minutes.
    """
    lines = []
    now, number = 0.0, 0
    while now < seconds:
        number += 1
        now += 6.0 * chance.uniform(0.9, 1.2)
        pause = 120.0 if number % 150 == 0 else 45.0 if number % 40 == 0 else 0.0
        for rank in range(RANKS):
            late = pause + 0.1 if rank == 0 else chance.uniform(0, 0.3)  # rank 0 saves before it prints
            lines.append(
                (
                    now + late,
                    rank,
                    f"2026-11-21 10:00:00,123 INFO train: step {number} loss 2.3171 lr 3.0e-04 tokens/s 18233\n",
                )
            )
        now += pause
    return sorted(lines)


def test_an_hour_without_a_false_alarm_and_then_a_silent_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 files, checkpoints and evaluations: nothing is said. Then rank 37 stops: it is named, alone, within three
    steps.
    """
    monkeypatch.setattr(loop, "_FIND", 300.0)  # no file is new
    chance = random.Random(5)
    lines = schedule(3900, chance)
    stop = next(time for time, rank, _ in lines if time > 3600 and rank == 37)
    clock, said, files = Clock(), [], [(tmp_path / f"rank_{rank}.log").open("a") for rank in range(RANKS)]
    watch, place, last = watched(tmp_path, clock), 0, 0.0
    while place < len(lines):
        clock.now += POLL
        while place < len(lines) and lines[place][0] <= clock.now - 1000.0:
            time, rank, line = lines[place]
            place += 1
            if rank != 37 or time <= stop:
                last = time if rank == 37 else last
                files[rank].write(line)
                files[rank].flush()
        said += [(clock.now - 1000.0, news.kind, news.ranks) for news in watch.step()]
    for file in files:
        file.close()
    assert [item[1:] for item in said] == [("silent", (37,))]
    assert said[0][0] - last <= 3 * 6.3
