"""Put lines that must not matter between the steps of ranks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from triage.testing.composer.file_dressings import draw_bar
from triage.testing.composer.model import Line, Story, World, Writer
from triage.testing.composer.noise_texts import FORMS

_SHORTEST, _LONGEST = 0.05, 5.0  # seconds between two lines of a rank between which noise may stand


def add_noise(story: Story, world: World, rng: random.Random) -> Story:
    """Return the story with noise of some ranks before its first cause, always between two lines of the same rank.

    No rank writes earlier or later than it did, and a rank that pauses for long stays silent.
    """
    fitting = [form for form in FORMS if world.backend in form.backends]
    moments = _rank_moments(story, find_failure(story))
    lines = list(story.lines)
    for form in rng.sample(fitting, rng.choice((0, 0, 1, 2, 3, 5))):
        for rank in _choose_ranks(world, rng):
            at = _choose_moment(moments.get(rank, ()), rng, at_start=form.at_start)
            if at is not None:
                lines.append(Line(at, Writer("rank", rank), _fill(form.text, world, rank, at, rng), form.stream))
    return replace(story, lines=tuple(lines))


def find_failure(story: Story) -> float:
    """Return when the first cause was written or the first process failed, infinity if neither is so."""
    ends = [line.at for line in story.lines if line.is_cause] + [end.at for end in story.exits]
    return min(ends, default=float("inf"))


def _rank_moments(story: Story, limit: float) -> dict[int, list[float]]:
    """Return by rank when its lines before `limit` were written."""
    moments: dict[int, list[float]] = {}
    for line in sorted(story.lines, key=lambda line: line.at):
        if line.writer.kind == "rank" and line.at < limit:
            moments.setdefault(line.writer.number, []).append(line.at)
    return moments


def _choose_ranks(world: World, rng: random.Random) -> Sequence[int]:
    everyone = list(world.ranks)
    return rng.choice((everyone, [0], rng.sample(everyone, rng.randrange(1, len(everyone) + 1))))


def _choose_moment(moments: Sequence[float], rng: random.Random, *, at_start: bool) -> float | None:
    """Return a moment inside a pause between two of these, or None if no pause fits."""
    pauses = [(first, second) for first, second in pairwise(moments) if _SHORTEST <= second - first <= _LONGEST]
    if not pauses:
        return None
    first, second = pauses[0] if at_start else rng.choice(pauses)
    return first + (second - first) * rng.uniform(0.2, 0.8)


def _fill(text: str, world: World, rank: int, at: float, rng: random.Random) -> str:
    return text.format(
        lib=f"/opt/venv/lib/python{world.python}/site-packages",
        script=world.script,
        rank=rank,
        local=world.local(rank),
        host=world.host(rank).partition(".")[0],
        pid=world.pids[rank],
        n=rng.choice((12, 16, 32)),
        small=rng.randrange(1, 9),
        large=rng.randrange(1025, 4000),
        seconds=rng.randrange(10_000_000, 99_999_999),
        warning=_warning_head(world, rank, at),
        bars="\r" + "\r".join(draw_bar(number, 40, number / 9, "Loading shards") for number in (0, 11, 23, 40)),
        config=_config(rng),
    )


def _warning_head(world: World, rank: int, at: float) -> str:
    """Return what stands before the file in a warning of torch's C++ code; since 2.4 it has a time and the rank."""
    if tuple(map(int, world.torch.split(".")[:2])) < (2, 4):
        return "[W"
    return f"[rank{rank}]:[W{world.stamp(at, '%m%d %H:%M:%S').removeprefix('0')}.{int(at * 1e9) % 10**9:09d}"


def _config(rng: random.Random) -> str:
    """Return the configuration of a model with a thousand classes, which is one line longer than runtimes allow."""
    labels = ", ".join(f"{number}: 'class_{number:04d}'" for number in range(rng.choice((10, 1000))))
    return f"model config: {{'architectures': ['ViTForImageClassification'], 'id2label': {{{labels}}}, 'dropout': 0.0}}"
