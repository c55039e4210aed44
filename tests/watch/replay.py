"""Write a recorded job again, line by line and at the pace of its timestamps, on a simulated clock."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triage.model.watch import WatchEvent
from triage.watch.follow import Follower
from triage.watch.loop import Watch
from triage.watch.pace import Limits, PaceMonitor

STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
POLL = 0.5


@dataclass
class Clock:
    """A clock that moves only when the test sets it."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def recorded_lines(job: Path) -> Iterator[tuple[float, str, bytes]]:
    """Yield (seconds, file, line) by time; a line without a timestamp gets the time of the line before."""
    lines = []
    for path in sorted(path for path in job.rglob("*") if path.is_file()):
        time = 0.0
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
            stamp = STAMP.search(line)
            if stamp:
                day = datetime.datetime.fromisoformat(f"{stamp[1].decode()}T{stamp[2].decode()}+00:00")
                time = day.timestamp() + float(b"0." + (stamp[3] or b"0"))
            lines.append((time, str(path.relative_to(job)), number, line))
    lines.sort(key=lambda line: (line[0], line[1], line[2]))
    start = next((line[0] for line in lines if line[0]), 0.0)
    for time, name, _, line in lines:
        yield max(time, start) - start, name, line


def start_watch(directory: Path, clock: Clock, **limits: float) -> Watch:
    return Watch(Follower([str(directory)]), PaceMonitor(Limits(**limits), poll=2 * POLL), clock=clock, wall=clock)


def replay(
    job: Path, directory: Path, after: float = 30.0
) -> tuple[Watch, list[tuple[float, WatchEvent]], list[tuple[float, bytes]]]:
    """Watch a job while it is written again. Return the watch, its timed events and the timed lines.

    `after`: seconds that pass after the last line.
    """
    clock = Clock()
    directory.mkdir(exist_ok=True)
    watch = start_watch(directory, clock)
    start = clock.now
    timed_events: list[tuple[float, WatchEvent]] = []
    written_lines: list[tuple[float, bytes]] = []
    for time, name, line in recorded_lines(job):
        while clock.now - start < time:
            clock.now += POLL
            timed_events += [(clock.now - start, news) for news in watch.step()]
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(line)
        written_lines.append((time, line))
    for _ in range(round(after / POLL)):
        clock.now += POLL
        timed_events += [(clock.now - start, news) for news in watch.step()]
    return watch, timed_events, written_lines
