"""A fault whose text the caller writes: for failures of programs that no signature knows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.uncaught import all_ranks, end_job, load_until, train_until, uncaught
from triage.testing.composer.model import Line, Story, World, Writer

DrawText = Callable[[World, int, random.Random, float], str]
"""Return what a rank prints of the failure, so many seconds after the start of the job."""


def own_text_fault(
    name: str, draw: DrawText, *, status: int = 1, is_traceback: bool = True, roots: Iterable[str | None] = (None,)
) -> Fault:
    """Return a fault that one rank, some or all ranks have, each with values of its own; the others lose their peers.

    `is_traceback`: the excepthook prints it, with torch's tag. `roots`: signatures that are right, and None for a
    failure that no signature knows.
    """  # fmt: skip
    right = frozenset(roots)

    def tell(world: World, rng: random.Random) -> Story:
        before = rng.choice((train_until, load_until))(world, rng)
        ranks = all_ranks(world, rng, before.at)
        failed = rng.choice((ranks[:1], rng.sample(ranks, 1), rng.sample(ranks, 1), rng.sample(ranks, 2), ranks))
        causes = [_print(world, rank, at, draw(world, rank, rng, at), is_traceback) for rank, at in failed]
        story = end_job(world, rng, before, causes, right, status=status)
        verdicts = story.truth.verdicts | ({"unknown"} if None in right else set())
        return replace(story, truth=replace(story.truth, verdicts=verdicts))

    return Fault(name, tell)


def _print(world: World, rank: int, at: float, text: str, is_traceback: bool) -> Line:
    return uncaught(world, rank, at, text) if is_traceback else Line(at, Writer("rank", rank), text, is_cause=True)
