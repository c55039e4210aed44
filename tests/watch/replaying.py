"""A recorded job written again, line by line, in the order and at the pace of its stamps, on a clock of the test's own."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triage.model.watch import News
from triage.watch.follow import Follower
from triage.watch.loop import Watch
from triage.watch.pace import Limits, Pace

STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
POLL = 0.5


@dataclass
class Clock:
    """Moves when it is told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def recorded(job: Path) -> Iterator[tuple[float, str, bytes]]:
    """Time, file and line of everything in a job, by time; a line without a stamp comes with the one before it in its
    file.
    """
    lines = []
    for path in sorted(path for path in job.rglob("*") if path.is_file()):
        time = 0.0
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
            found = STAMP.search(line)
            if found:
                day = datetime.datetime.fromisoformat(f"{found[1].decode()}T{found[2].decode()}+00:00")
                time = day.timestamp() + float(b"0." + (found[3] or b"0"))
            lines.append((time, str(path.relative_to(job)), number, line))
    lines.sort(key=lambda line: (line[0], line[1], line[2]))
    start = next((line[0] for line in lines if line[0]), 0.0)
    for time, name, _, line in lines:
        yield max(time, start) - start, name, line


def watched(directory: Path, clock: Clock, **limits: float) -> Watch:
    return Watch(Follower([str(directory)]), Pace(Limits(**limits), poll=2 * POLL), clock=clock, wall=clock)


def replay(
    job: Path, directory: Path, after: float = 30.0
) -> tuple[Watch, list[tuple[float, News]], list[tuple[float, bytes]]]:
    """The watch, its news with the time of each since the start, and the lines with theirs; `after`: seconds that go by
    when all is written.
    """
    clock = Clock()
    directory.mkdir(exist_ok=True)
    watch = watched(directory, clock)
    start = clock.now
    said: list[tuple[float, News]] = []
    written: list[tuple[float, bytes]] = []
    for time, name, line in recorded(job):
        while clock.now - start < time:
            clock.now += POLL
            said += [(clock.now - start, news) for news in watch.step()]
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(line)
        written.append((time, line))
    for _ in range(round(after / POLL)):
        clock.now += POLL
        said += [(clock.now - start, news) for news in watch.step()]
    return watch, said, written
