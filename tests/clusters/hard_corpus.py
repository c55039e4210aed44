"""Texts and whole jobs of the classes in `hard/`, drawn from a seed.

A text is what a user cuts from a console: the failure, with what a launcher prefixes, writes around it and interleaves.
A job has all files of a layout and a dressing (triage.testing.composer) with the failure on one or several ranks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.clusters.hard_classes import HardClass, failure_text, hard_classes
from tests.clusters.hard_consoles import CONSOLES, noise_before
from triage.testing.composer import ComposedJob, Plan, compose, list_layouts
from triage.testing.composer.dressings import DRESSINGS
from triage.testing.composer.faults import Fault
from triage.testing.composer.faults.own_texts import own_text_fault
from triage.testing.composer.layouts import LAYOUTS
from triage.testing.composer.model import World
from triage.testing.composer.worlds import draw_world

JOBS_PER_CLASS = 3
_LAYOUT = next(layout for layout in LAYOUTS if layout.name == "torchrun-plain")


@dataclass(frozen=True)
class HardText:
    """One text of a class; `core` is the failure alone, as the first rank printed it."""

    label: str
    number: int
    core: str
    text: str


def hard_texts(seed: int) -> Iterator[HardText]:
    """Yield three to five texts of each class, in a fixed order."""
    for one in hard_classes():
        for number in range(one.variants):
            yield _draw_text(one, number, random.Random(f"{one.name}\0{number}\0{seed}"))


def _draw_text(one: HardClass, number: int, rng: random.Random) -> HardText:
    world = draw_world(_fault(one, number), _LAYOUT, rng)
    ranks = rng.sample(world.ranks, rng.choice((1, 1, 1, 2)))
    cores = [failure_text(one, world, rank, number, rng) for rank in ranks]
    console = CONSOLES[rng.randrange(len(CONSOLES))]
    lines = [*noise_before(world, ranks[0], rng), *console(world, list(zip(ranks, cores, strict=True)), one, rng)]
    return HardText(one.name, number, cores[0], "\n".join(lines) + "\n")


def hard_plans(seed: int) -> Iterator[Plan]:
    """Yield the plans of the jobs: a third of the classes, each in some layouts and dressings.

    The seed of a plan ends with the number of the text.
    """
    for one in hard_classes():
        if one.digest[2] % 3:
            continue
        layouts = list(list_layouts(_fault(one, 0)))
        rng = random.Random(f"{one.name}\0{seed}")
        for number, layout in enumerate(rng.sample(layouts, JOBS_PER_CLASS)):
            yield Plan(one.name, layout, rng.choice(DRESSINGS).name, seed * 100 + number)


def compose_hard_job(plan: Plan) -> ComposedJob:
    """Return the job of a plan of `hard_plans`; the same plan gives the same bytes."""
    one = next(one for one in hard_classes() if one.name == plan.fault)
    return compose(plan, _fault(one, plan.seed % 100))


def _fault(one: HardClass, number: int) -> Fault:
    def draw(world: World, rank: int, rng: random.Random, at: float) -> str:
        return failure_text(one, world, rank, number, rng, at)

    return own_text_fault(one.name, draw, status=one.status, is_traceback=one.is_python, roots={None, *one.known})
