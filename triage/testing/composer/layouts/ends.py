"""How a job ends: which processes ended by themselves, when the launcher stopped the others, and names of signals."""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from triage.base import signal_texts
from triage.testing.composer.model import Exit, Line, Story, World

SIGNAL_NAMES = {int(signals.Signals[name]): name for name in signal_texts.SIGNAL_TEXTS.values()}
SIGNAL_TEXTS = {int(signals.Signals[name]): text for text, name in signal_texts.SIGNAL_TEXTS.items()}


@dataclass(frozen=True, slots=True)
class Stop:
    """When a launcher stopped what was left of a group of ranks.

    `ended`: the processes that had ended by themselves with a failure, in this order; `stopped`: the ranks that the
    launcher ended. Both are empty in a healthy job.
    """

    at: float
    ended: tuple[Exit, ...] = ()
    stopped: tuple[int, ...] = ()


def find_stop(story: Story, world: World, delay: float, ranks: Iterable[int] | None = None) -> Stop:
    """Return how a launcher that waits `delay` seconds after the first failure stops these ranks.

    It does not come before what shows the cause: a story in which that is late has a launcher that is slow.
    """
    group = tuple(world.ranks if ranks is None else ranks)
    if is_healthy(story):
        return Stop(end_of(story))
    exits = sorted((end for end in story.exits if end.rank in group), key=lambda end: end.at)
    if story.stopped_by or not exits:
        orders = [line.at for line in story.lines if line.writer.kind == "scheduler" and story.stopped_by]
        at = max([end_of(story), *orders])
    else:
        failed = [end.at for end in exits if end.status] or [end_of(story)]
        at = max([failed[0] + delay, *_needed(story, set(group))])
    ended = tuple(end for end in exits if end.at <= at and end.status)
    gone = {end.rank for end in exits if end.at <= at}
    return Stop(at, ended, tuple(rank for rank in group if rank not in gone))


def find_node_stops(story: Story, world: World, delay: float) -> tuple[Stop, ...]:
    """Return the stop of each node of a launcher that has an agent on each."""
    return tuple(find_stop(story, world, delay, world.on_node(node)) for node in range(len(world.hosts)))


def cut_story(story: Story, world: World, stops: Sequence[Stop]) -> Story:
    """Return the story without what ranks wrote after their stop; `stops` has one, or one for each node."""
    if not stops:
        return story
    return replace(story, lines=tuple(line for line in story.lines if _is_before(line, world, stops)))


def end_of(story: Story) -> float:
    """Return when the last rank wrote or ended."""
    lines = [line.at for line in story.lines if line.writer.kind == "rank"]
    return max([*lines, *(end.at for end in story.exits)], default=1.0)


def is_healthy(story: Story) -> bool:
    """Whether all ranks ended with exit code 0."""
    return not story.exits and not story.stopped_by


def reports(story: Story, exits: Iterable[Exit]) -> bool:
    """Whether these exits, which the launcher states with their ranks, include all ranks at fault."""
    return bool(story.truth.ranks) and {end.rank for end in exits} >= story.truth.ranks


def job_id(story: Story, world: World) -> int:
    """Return the number of the Slurm job: the one that the story's lines of the scheduler have, if any."""
    for line in story.lines:
        if line.writer.kind != "rank" and (match := re.search(r"(?:JOB|STEP|StepId=|JobId=|job) ?(\d+)", line.text)):
            return int(match[1])
    return 10_000 + int(world.start) % 900_000


def group_numbers(numbers: Sequence[int]) -> str:
    """Return numbers as Slurm does, like `0-2,5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _needed(story: Story, group: set[int]) -> list[float]:
    """Return the times of what must not be cut: what shows the cause, and ends of ranks at fault."""
    truth = story.truth
    lines = [line for line in story.lines if line.writer.kind == "rank" and line.writer.number in group]
    needed = [line.at for line in lines if line.is_cause or truth.by_comparison]
    return needed + [end.at for end in story.exits if end.rank in group & truth.ranks]


def _is_before(line: Line, world: World, stops: Sequence[Stop]) -> bool:
    return line.writer.kind != "rank" or line.at <= stops[world.node(line.writer.number) % len(stops)].at
