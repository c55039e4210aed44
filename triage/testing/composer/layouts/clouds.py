"""Launchers that put their own prefix before each line of one console: torchx and Horovod."""

from __future__ import annotations

import random
from functools import partial

from triage.testing.composer.layouts.elastic import add_agents, poll_seconds
from triage.testing.composer.layouts.ends import Stop, find_node_stops, find_stop, reports
from triage.testing.composer.layouts.files import Console, LogFiles, add_others, is_healthy, names_itself
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.model import Line, Story, World, Written


def torchx(story: Story, world: World, rng: random.Random) -> Written:
    """Write torchx's console: `trainer/0 ` of the replica, which is a node, then torchrun's `[3]:` without a role."""
    files, path = LogFiles(), "torchx.log"
    stops = find_node_stops(story, world, poll_seconds(world))
    role = rng.choice(("trainer", "trainer", "train"))
    consoles = [Console(files, path, host, f"{role}/{node} ") for node, host in enumerate(world.hosts)]

    def place(line: Line) -> tuple[str, str]:
        rank = line.writer.number
        return path, f"{consoles[world.node(rank)].prefix}[{world.local(rank)}]:"

    files.add_ranks(story, world, place, stops)
    add_others(story, consoles, Console(files, path))
    add_agents(story, world, stops, consoles, rng)
    ended = [end for stop in stops for end in stop.ended if not story.stopped_by]
    return Written(files.finished(), True, names_itself(story, world), reports(story, ended))


def horovod(story: Story, world: World, rng: random.Random, is_stamped: bool) -> Written:
    """Write horovodrun's console with Gloo; `is_stamped`: with `--prefix-output-with-timestamp`."""
    files = LogFiles()
    stop = find_stop(story, world, rng.uniform(0.1, 1.0))
    console = Console(files, "horovodrun.log", world.hosts[0])

    def place(line: Line) -> tuple[str, str]:
        moment = world.stamp(line.at, "%a %b %d %H:%M:%S %Y") if is_stamped else ""
        return console.path, f"{moment}[{line.writer.number}]<{line.stream}>:"

    files.add_ranks(story, world, place, [stop])
    add_others(story, [console])
    if not is_healthy(story) and not story.stopped_by and stop.ended:
        _add_horovod_end(stop, console)
    named = not story.stopped_by and reports(story, stop.ended)
    return Written(files.finished(), True, names_itself(story, world), named)


def _add_horovod_end(stop: Stop, console: Console) -> None:
    """Add what horovodrun writes of each process, and its own exception."""
    first = stop.ended[0]
    for number, end in enumerate(stop.ended):
        console.write(end.at + 0.01, f"Process {end.rank} exit with status code {end.status}.")
        if not number:
            console.write(end.at + 0.02, f"Terminating remaining workers after failure of Process {end.rank}.")
    for rank in stop.stopped:
        console.write(stop.at + 0.5 + rank / 100, f"Process {rank} exit with status code 143.")
    text = (
        'Traceback (most recent call last):\n  File "/opt/venv/bin/horovodrun", line 8, in <module>\n'
        "    sys.exit(run_commandline())\n  File "
        "\"/opt/venv/lib/python3.10/site-packages/horovod/runner/launch.py\", line "
        '837, in run_commandline\n    _run(args)\n  File "/opt/venv/lib/python3.10/site-packages/horovod/runner/'
        'gloo_run.py", line 302, in launch_gloo\n    raise RuntimeError(\'Horovod detected that one or more processes '
        "exited with non-zero '\nRuntimeError: Horovod detected that one or more processes exited with "
        "non-zero status, "
        "thus causing the job to be terminated. The first process to do so was:\nProcess name: "
        f"{first.rank}\nExit code: "
        f"{first.status}\n"
    )  # fmt: skip
    console.write(stop.at + 2, text)


LAYOUTS = (
    Layout("torchx", torchx),
    Layout("horovodrun", partial(horovod, is_stamped=False), backends=("nccl", "gloo")),
    Layout("horovodrun-stamped", partial(horovod, is_stamped=True), backends=("nccl", "gloo")),
)
