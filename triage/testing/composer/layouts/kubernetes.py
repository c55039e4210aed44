"""What jobs on Kubernetes leave behind: logs of pods, in a file each or all in one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from triage.testing.composer.layouts.elastic import add_agents, poll_seconds
from triage.testing.composer.layouts.ends import Stop, find_node_stops, find_stop, reports
from triage.testing.composer.layouts.files import Console, LogFiles, add_others, names_itself
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.model import Line, LogLine, Story, World, Written
from triage.testing.composer.parts import pod_mark

_EVENTS = "events.txt"


def _write_pods(
    story: Story, world: World, rng: random.Random, consoles: Sequence[Console], pods: Sequence[str]
) -> Written:
    """Write a pod for each node to its console: torchrun with a tee where it has several ranks."""
    files, is_single = consoles[0].files, world.per_node == 1
    delay = rng.uniform(2, 20) if is_single else poll_seconds(world)
    stops: Sequence[Stop] = find_node_stops(story, world, delay)
    if is_single:
        stops = [find_stop(story, world, delay)] * len(world.hosts)

    def place(line: Line) -> tuple[str, str]:
        console = consoles[world.node(line.writer.number)]
        return console.path, console.prefix + ("" if is_single else f"[default{world.local(line.writer.number)}]:")

    files.add_ranks(story, world, place, stops)
    named = replace(story, lines=tuple(replace(line, text=_name_pods(line.text, pods)) for line in story.lines))
    add_others(named, consoles, Console(files, _EVENTS, world.hosts[0]))
    if not is_single:
        add_agents(story, world, stops, consoles, rng)
    is_recorded = names_itself(story, world)
    ended = [end for stop in stops for end in stop.ended if not story.stopped_by and not is_single]
    labels = is_recorded or len(world.hosts) == 1
    names = dict(zip(pods, world.hosts, strict=True))
    return Written(files.finished(), labels, is_recorded, reports(story, ended), host_names=names)


def file_per_pod(story: Story, world: World, rng: random.Random) -> Written:
    """Write a file for each pod."""
    files, folder = LogFiles(), rng.choice(("", "pods/", "logs/"))
    pods = _draw_pods(world, rng)
    consoles = [Console(files, f"{folder}{pod}.log", host) for pod, host in zip(pods, world.hosts, strict=True)]
    return _write_pods(story, world, rng, consoles, pods)


def one_file(story: Story, world: World, rng: random.Random, form: str) -> Written:
    """Write the lines of all pods to one file, with the pod before each line as `form` says."""
    files = LogFiles()
    pods = _draw_pods(world, rng)
    hosts = zip(pods, world.hosts, strict=True)
    consoles = [Console(files, "pods.log", host, form.format(pod=pod)) for pod, host in hosts]
    return _write_pods(story, world, rng, consoles, pods)


def joined(story: Story, world: World, rng: random.Random) -> Written:
    """Write the logs of all pods after each other to one file, with headings as `tail -n +1` writes them."""
    files = LogFiles()
    pods = _draw_pods(world, rng)
    consoles = [Console(files, f"{pod}.log", host) for pod, host in zip(pods, world.hosts, strict=True)]
    written = _write_pods(story, world, rng, consoles, pods)
    lines: list[LogLine] = []
    for console in sorted(consoles, key=lambda console: console.path):
        part = written.logs.get(console.path, ())
        begin = [LogLine(part[0].at if part else 0.0, f"==> {console.path} <==", console.host)]
        lines += [*([LogLine(begin[0].at, "", console.host)] if lines else []), *begin, *part]
    events = {path: part for path, part in written.logs.items() if path == _EVENTS}
    return replace(written, logs={"all-pods.log": tuple(lines), **events})


def _name_pods(text: str, pods: Sequence[str]) -> str:
    """Put the names of pods in the places of their marks."""
    for node, pod in enumerate(pods):
        text = text.replace(pod_mark(node), pod)
    return text


def _draw_pods(world: World, rng: random.Random) -> list[str]:
    """Return the names of the pods: of a PyTorchJob with or without a master, or of an indexed Job."""
    job, nodes = rng.choice(("train", "llama-sft-7b", "vit-run3")), range(len(world.hosts))
    kind = rng.randrange(3)
    if kind == 0:
        return [f"{job}-worker-{node - 1}" if node else f"{job}-master-0" for node in nodes]
    if kind == 1:
        return [f"{job}-worker-{node}" for node in nodes]
    return [f"{job}-{node}-{''.join(rng.choices('bcdfghjklmnpqrstvwxz2456789', k=5))}" for node in nodes]


LAYOUTS = (
    Layout("kubernetes-pods", file_per_pod, scheduler="kubernetes"),
    Layout("kubernetes-pod-per-rank", file_per_pod, scheduler="kubernetes", one_per_node=True),
    Layout("kubectl-prefix", partial(one_file, form="[pod/{pod}/pytorch] "), scheduler="kubernetes"),
    Layout("stern", partial(one_file, form="{pod} pytorch "), scheduler="kubernetes"),
    Layout("kubernetes-joined", joined, scheduler="kubernetes"),
)
