"""What srun and slurmstepd write about the ends of tasks."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from triage.testing.composer.layouts.ends import SIGNAL_TEXTS, Stop, group_numbers, job_id
from triage.testing.composer.layouts.files import Console
from triage.testing.composer.model import Exit, Story, World

_CORES = (4, 6, 7, 8, 11)


def add_srun(
    story: Story,
    world: World,
    stop: Stop,
    console: Console,
    rng: random.Random,
    *,
    kills: bool = True,
    step: Sequence[Console] = (),
) -> None:
    """Add srun's lines of a job with one task for each rank; it writes nothing about a healthy job.

    `kills`: `--kill-on-bad-exit`, which ends the step after the first failure. `step`: where slurmstepd's lines go, by
    node, where it is not `console`.
    """  # fmt: skip
    job, has_core = job_id(story, world), rng.random() < 0.5
    for at, node, tasks, text in _group(world, stop.ended, has_core):
        console.write(at, f"srun: error: {world.hosts[node]}: {_tasks(tasks)}: {text}")
    if not stop.stopped or not (kills or story.stopped_by):
        return
    at = stop.at + 0.05
    if story.stopped_by:
        console.write(at, "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")
    else:
        console.write(at, _terminating(job, rng))
        stamp = world.stamp(at, "%Y-%m-%dT%H:%M:%S")
        for place in step or (console,):
            place.write(at + 0.1, f"slurmstepd: error: *** STEP {job}.0 ON {world.hosts[0]} CANCELLED AT {stamp} ***")
    is_slow = not story.stopped_by and rng.random() < 0.1
    _add_stopped(world, stop, console, at + (31 if is_slow else 0.4), "Killed" if is_slow else "Terminated")


def _add_stopped(world: World, stop: Stop, console: Console, at: float, text: str) -> None:
    for node, host in enumerate(world.hosts):
        if tasks := [rank for rank in stop.stopped if world.node(rank) == node]:
            console.write(at + node / 20, f"srun: error: {host}: {_tasks(tasks)}: {text}")


def _terminating(job: int, rng: random.Random) -> str:
    """Return the line about the end of a step, by version: 20.02, 20.11 to 22.05, newer."""
    return rng.choice(
        (
            f"srun: Terminating job step {job}.0",
            f"srun: launch/slurm: _step_signal: Terminating StepId={job}.0",
            f"srun: Terminating StepId={job}.0",
        )
    )


def _group(world: World, exits: Iterable[Exit], has_core: bool) -> list[tuple[float, int, list[int], str]]:
    """Return (time, node, tasks, text) of exits; srun reports those of one node within a second together."""
    groups: list[tuple[float, int, list[int], str]] = []
    for end in exits:
        node, text = world.node(end.rank), end_text(end.status, has_core)
        for at, group_node, tasks, group_text in groups:
            if (group_node, group_text) == (node, text) and end.at - at < 0.5:
                tasks.append(end.rank)
                break
        else:
            groups.append((end.at, node, [end.rank], text))
    return [(at + 0.5 if len(tasks) > 1 else at + 0.02, node, tasks, text) for at, node, tasks, text in groups]


def end_text(status: int, has_core: bool) -> str:
    """Return how Slurm writes an exit status."""
    if status >= 0:
        return f"Exited with exit code {status}"
    core = " (core dumped)" if has_core and -status in _CORES else ""
    return SIGNAL_TEXTS.get(-status, f"Unknown signal {-status}") + core


def _tasks(tasks: Sequence[int]) -> str:
    return f"task{'s' if len(tasks) > 1 else ''} {group_numbers(tasks)}"
