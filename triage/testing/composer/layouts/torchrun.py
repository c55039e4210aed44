"""What torchrun and accelerate leave behind: one console for each node, or a directory for each attempt."""

from __future__ import annotations

import random
from functools import partial

from triage.testing.composer.layouts.elastic import add_agents, poll_seconds
from triage.testing.composer.layouts.ends import find_node_stops, reports
from triage.testing.composer.layouts.files import LogFiles, add_others, names_itself, node_consoles
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.model import Line, Story, World, Written


def tee(story: Story, world: World, rng: random.Random, program: str = "torchrun", prefixed: bool = True) -> Written:
    """Write one console for each node, with the prefix of the local rank before each line if `--tee` is used."""
    role = rng.choice(("default", "default", "trainer", "")) if program == "torchrun" else "default"
    files = LogFiles()
    stops = find_node_stops(story, world, poll_seconds(world))
    consoles = node_consoles(files, world, rng.choice(("{host}.log", "{host}/console.log")), "console.log")

    def place(line: Line) -> tuple[str, str]:
        rank = line.writer.number
        return consoles[world.node(rank)].path, f"[{role}{world.local(rank)}]:" if prefixed else ""

    if program == "accelerate":
        consoles[0].write(0.1, _defaults(world))
    files.add_ranks(story, world, place, stops)
    add_others(story, consoles)
    add_agents(story, world, stops, consoles, rng, program, role or "default")
    one_node, is_recorded = len(world.hosts) == 1, names_itself(story, world)
    labels = (prefixed and one_node) or (is_recorded and (prefixed or world.per_node == 1))
    ended = [end for stop in stops for end in stop.ended if not story.stopped_by]
    return Written(files.finished(), labels, is_recorded or not one_node, reports(story, ended))


def redirects(story: Story, world: World, rng: random.Random, hosts: bool) -> Written:
    """Write a directory for each attempt and local rank, and the agent's output to a console.

    `hosts`: a directory for each node is above them, with the index or the name of the node.
    """
    letters = "abcdefghijklmnopqrstuvwxyz0123456789_"
    form = rng.choice(("node_{node}", "{host}")) if hosts else "logs"
    runs = [f"{rng.choice(('none', 'job7'))}_{''.join(rng.choices(letters, k=8))}" for _ in world.hosts]
    files = LogFiles()
    stops = find_node_stops(story, world, poll_seconds(world))
    # Without a directory of the node, all agents write to one console, as a terminal with all their output.
    consoles = node_consoles(files, world, f"{form}/launcher.log")

    def place(line: Line) -> tuple[str, str]:
        rank, node = line.writer.number, world.node(line.writer.number)
        above = form.format(node=node, host=world.hosts[node])
        return f"{above}/{runs[node]}/attempt_0/{world.local(rank)}/{line.stream}.log", ""

    files.add_ranks(story, world, place, stops)
    add_others(story, consoles)
    add_agents(story, world, stops, consoles, rng)
    is_recorded = names_itself(story, world)
    labels = is_recorded or len(world.hosts) == 1 or form == "node_{node}"
    ended = [end for stop in stops for end in stop.ended if not story.stopped_by]
    return Written(files.finished(), labels, is_recorded or form == "{host}", reports(story, ended))


def _defaults(world: World) -> str:
    return (
        "The following values were not passed to `accelerate launch` and had defaults used instead:\n"
        f"\t`--num_processes` was set to a value of `{world.size}`\n"
        "\t\tMore than one GPU was found, enabling multi-GPU training.\n"
        "\t\tIf this was unintended please pass in `--num_processes=1`.\n"
        "\t`--mixed_precision` was set to a value of `'no'`\n\t`--dynamo_backend` was set to a value of `'no'`\n"
        "To avoid this warning pass in values for each of the problematic parameters or run `accelerate config`."
    )


LAYOUTS = (
    Layout("torchrun-tee", tee),
    Layout("torchrun-redirects", partial(redirects, hosts=True)),
    Layout("torchrun-redirects-hostless", partial(redirects, hosts=False)),
    Layout("torchrun-plain", partial(tee, prefixed=False)),
    Layout("accelerate", partial(tee, program="accelerate"), backends=("nccl", "gloo")),
)
