"""What jobs of Slurm leave behind: one file of the batch script, or a file for each task or node."""

from __future__ import annotations

import random
from functools import partial

from triage.testing.composer.layouts.elastic import add_agents, poll_seconds
from triage.testing.composer.layouts.ends import find_node_stops, find_stop, job_id, reports
from triage.testing.composer.layouts.files import Console, LogFiles, add_others, is_healthy, names_itself, node_consoles
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.layouts.srun import add_srun
from triage.testing.composer.model import Line, Story, World, Written


def one_file(story: Story, world: World, rng: random.Random, labels: bool) -> Written:
    """Write all to the batch script's file; `labels`: with `srun --label`, which also labels slurmstepd's lines."""
    files, kills = LogFiles(), _kills(story, world, rng)
    stop = find_stop(story, world, rng.uniform(0.2, 1.5) if kills else 60.0)
    console = Console(files, f"slurm-{job_id(story, world)}.out", world.hosts[0])
    width = len(str(world.size - 1))

    def place(line: Line) -> tuple[str, str]:
        return console.path, f"{line.writer.number:>{width}}: " if labels else ""

    files.add_ranks(story, world, place, [stop])
    add_others(story, [console])
    step = [console.with_prefix(f"{0:>{width}}: ")] if labels else []
    add_srun(story, world, stop, console, rng, kills=kills, step=step)
    hosts = names_itself(story, world) or reports(story, stop.ended)
    return Written(files.finished(), labels, hosts, reports(story, stop.ended))


def file_per_task(story: Story, world: World, rng: random.Random, form: str, errors: str = "") -> Written:
    """Write a file for each task by `form`, and srun's lines to the batch file; `errors`: of stderr, if separate."""
    files, job, kills = LogFiles(), job_id(story, world), _kills(story, world, rng)
    stop = find_stop(story, world, rng.uniform(0.2, 1.5) if kills else 60.0)
    console = Console(files, f"slurm-{job}.out", world.hosts[0])

    def path(rank: int, stream: str) -> str:
        chosen = errors if errors and stream == "stderr" else form
        return chosen.format(job=job, task=rank, host=world.host(rank))

    files.add_ranks(story, world, lambda line: (path(line.writer.number, line.stream), ""), [stop])
    add_others(story, [console])
    step = [Console(files, path(0, "stderr"), world.hosts[0])]
    add_srun(story, world, stop, console, rng, kills=kills, step=step)
    hosts = names_itself(story, world) or reports(story, stop.ended)
    return Written(files.finished(), True, hosts, reports(story, stop.ended))


def torchrun_per_node(story: Story, world: World, rng: random.Random) -> Written:
    """Write a file for each node, in which torchrun runs as srun's only task of the node, with or without `--tee`."""
    files, job, prefixed = LogFiles(), job_id(story, world), rng.random() < 0.5
    stops = find_node_stops(story, world, poll_seconds(world))
    form = rng.choice((f"slurm-{job}-{{host}}.out", "{host}.out", f"logs/{job}_{{host}}.log"))
    consoles = node_consoles(files, world, form)
    batch = Console(files, f"slurm-{job}.out", world.hosts[0])

    def place(line: Line) -> tuple[str, str]:
        rank = line.writer.number
        return consoles[world.node(rank)].path, f"[default{world.local(rank)}]:" if prefixed else ""

    files.add_ranks(story, world, place, stops)
    add_others(story, consoles, batch)
    add_agents(story, world, stops, consoles, rng)
    _add_agent_ends(story, world, [stop.at for stop in stops if stop.ended], batch, rng)
    one_node, is_recorded = len(world.hosts) == 1, names_itself(story, world)
    labels = (prefixed and one_node) or (is_recorded and (prefixed or world.per_node == 1))
    ended = [end for stop in stops for end in stop.ended if not story.stopped_by]
    return Written(files.finished(), labels, True, reports(story, ended))


def _kills(story: Story, world: World, rng: random.Random) -> bool:
    """Whether srun ends the step after the first failure; it must where a task would never end by itself."""
    return rng.random() < 0.6 or len(story.exits) < world.size


def _add_agent_ends(story: Story, world: World, ends: list[float], batch: Console, rng: random.Random) -> None:
    """Add srun's lines about the agents, whose task numbers are indexes of nodes."""
    if is_healthy(story):
        return
    if story.stopped_by:
        at = max(line.at for line in story.lines) + 0.2
        batch.write(at, "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")
        return
    order = rng.sample(range(len(world.hosts)), len(world.hosts))
    for number, node in enumerate(order):
        text = f"srun: error: {world.hosts[node]}: task {node}: Exited with exit code 1"
        batch.write((max(ends) if ends else 1.0) + 3 + number / 10, text)


LAYOUTS = (
    Layout("srun-label", partial(one_file, labels=True), scheduler="slurm"),
    Layout("srun-plain", partial(one_file, labels=False), scheduler="slurm"),
    Layout("srun-file-per-task", partial(file_per_task, form="slurm-{job}_{task}.out"), scheduler="slurm"),
    Layout("srun-host-and-task", partial(file_per_task, form="logs/{job}.{host}.{task}.log"), scheduler="slurm"),
    Layout(
        "nemo-launcher",
        partial(file_per_task, form="log-account-job_{job}_{task}.out", errors="error-account-job_{job}_{task}.out"),
        scheduler="slurm",
    ),
    Layout("srun-torchrun", torchrun_per_node, scheduler="slurm"),
)
