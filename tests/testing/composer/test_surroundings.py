"""What lies beside a job's logs, and the lines between its steps, never change what happened."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given, settings, strategies as st

from triage.testing.composer.compose import LAYOUTS
from triage.testing.composer.faults import FAULTS
from triage.testing.composer.kernel_logs import FORMS as KERNEL_FORMS
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.noise import add_noise, find_failure
from triage.testing.composer.noise_texts import FORMS as NOISE_FORMS
from triage.testing.composer.surroundings import Surroundings, draw_surroundings
from triage.testing.composer.worlds import draw_hosts, draw_world, is_container

SEEDS = st.integers(0, 10_000)


def make_world(seed: int, *, plain: bool = False) -> World:
    hosts = draw_hosts(3, random.Random(seed), plain=plain)
    return World(hosts, 2, tuple(range(100, 106)), 1_790_000_000.0, 3600, "/app/train.py", "nccl", "bare", "2.6.0")


def tell(world: World) -> Story:
    """Return a story in which rank 2 stops writing at 5 s, rank 4 never writes, and rank 1 fails after 9 s."""
    ranks = [rank for rank in world.ranks if rank != 4]
    steps = [
        Line(step + rank / 100, Writer("rank", rank), f"step {step}\nloss {rank}")
        for step in range(1, 9)
        for rank in ranks
        if not (rank == 2 and step > 5)
    ]
    oom = Line(8.5, Writer("kernel", 1), "Out of memory: Killed process 102 (python3)\nsecond line", is_cause=True)
    failure = Line(9.0, Writer("rank", 1), "ValueError: no", is_cause=True)
    truth = Truth(frozenset({"known"}), frozenset({"host.oom"}), frozenset({1}), frozenset({1}))
    return Story((*steps, oom, failure), truth, (Exit(1, 1, 9.1),))


def draw(seed: int) -> tuple[World, Surroundings]:
    world = make_world(seed)
    return world, draw_surroundings(tell(world), world, random.Random(seed))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_noise_stands_between_two_lines_of_its_rank_before_the_cause(seed: int) -> None:
    """No rank speaks before its first line or after its last, or where the story is silent; nothing is lost."""
    world = make_world(seed)
    story = tell(world)
    noisy = add_noise(story, world, random.Random(seed))
    assert noisy.lines[: len(story.lines)] == story.lines
    assert (noisy.truth, noisy.exits) == (story.truth, story.exits)
    moments = defaultdict(list)
    for line in story.lines:
        if line.writer.kind == "rank":
            moments[line.writer.number].append(line.at)
    for line in noisy.lines[len(story.lines) :]:
        own = moments[line.writer.number]
        assert min(own) < line.at < min(max(own), find_failure(story))
        assert line.at not in own
        assert not line.is_cause


def test_every_noise_text_is_drawn() -> None:
    """Each form can be filled, and leaves no field open."""
    world, texts = make_world(1), []
    story = tell(world)
    for seed in range(300):
        texts += [line.text for line in add_noise(story, world, random.Random(seed)).lines[len(story.lines) :]]
    for form in NOISE_FORMS:
        start = form.text.split("{")[0][:30]
        assert any(text.startswith(start) for text in texts), form.text


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_kernel_lines_are_there_in_order_and_with_their_host(seed: int) -> None:
    """The node's log has each line of the story, its path or its lines name the host, and times never go back."""
    world, around = draw(seed)
    logs = [(path, line) for path, lines in around.logs.items() for line in lines if "Killed process 102" in line.text]
    assert len(logs) == 1
    path, line = logs[0]
    assert line.host == world.hosts[1]
    assert world.hosts[1] in path or f" {world.hosts[1].partition('.')[0]} kernel: " in line.text
    for lines in around.logs.values():
        assert [line.at for line in lines] == sorted(line.at for line in lines)


def test_every_kernel_form_is_drawn() -> None:
    """Also the form without a clock, but rarely; machines that write host names are not containers."""
    counts: dict[str, int] = defaultdict(int)
    for seed in range(400):
        world, around = draw(seed)
        path, line = next(
            (path, line) for path, lines in around.logs.items() for line in lines if "Killed" in line.text
        )
        counts["uptime" if line.text.startswith(("[ ", "[1", "[2", "[3", "[4", "[5", "[6")) else "clock"] += 1
        counts[path.replace(world.hosts[1], "{host}")] += 1
        if any(map(is_container, world.hosts)):
            assert " kernel: " not in line.text
    assert {form.path for form in KERNEL_FORMS} <= counts.keys()
    assert 0 < counts["uptime"] < counts["clock"] / 10


def test_a_healthy_kernel_is_quiet_after_the_failure() -> None:
    """A node that may be gone writes no ordinary line when the job has failed."""
    for seed in range(60):
        _, around = draw(seed)
        late = [line.text for lines in around.logs.values() for line in lines if line.at > 8.5]
        assert not late


def test_extra_files_are_text_and_change_with_the_seed() -> None:
    """Some jobs have none, some have several; they hold no time after the start."""
    counts = {len(draw(seed)[1].artifacts) for seed in range(60)}
    assert 0 in counts
    assert max(counts) >= 3
    for content in draw(5)[1].artifacts.values():
        assert content.decode().endswith("\n")


@pytest.mark.parametrize("plain", [True, False])
def test_hosts_differ(plain: bool) -> None:
    """The nodes of a world have different names, also without their domains; schedulers list short ones."""
    for seed in range(200):
        hosts = draw_hosts(4, random.Random(seed), plain=plain)
        assert len({host.partition(".")[0] for host in hosts}) == 4
        if plain:
            assert not any("." in host or is_container(host) for host in hosts)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, fault=st.sampled_from(FAULTS), layout=st.sampled_from(LAYOUTS))
def test_worlds_have_a_pid_for_each_rank(seed: int, fault: object, layout: object) -> None:
    """Pids of a node differ, and all ranks have one."""
    rng = random.Random(seed)
    if not set(fault.backends) & set(layout.backends):  # type: ignore[attr-defined]
        return
    world = draw_world(fault, layout, rng)  # type: ignore[arg-type]
    assert len(world.pids) == world.size >= 2
    for node in range(len(world.hosts)):
        pids = [world.pids[rank] for rank in world.on_node(node)]
        assert len(set(pids)) == len(pids)
