"""Composed jobs, drawn at random from all cells and dressings, are diagnosed rightly; each run draws the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import triage
from tests.effort import is_thorough
from tests.shared_catalog import OPTIONS, share_catalog
from triage.testing.composer import Judgement, Plan, compose, judge, list_cells
from triage.testing.composer.dressings import DRESSINGS

JOBS = 150 if is_thorough() else 60
SEED = 20261122


@pytest.fixture(scope="module")
def judgements(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Plan, Judgement]]]:
    """Judge jobs of random cells, dressings and seeds."""
    rng = random.Random(SEED)
    cells, names = list(list_cells()), [dressing.name for dressing in DRESSINGS]
    plans = [Plan(*rng.choice(cells), rng.choice(names), rng.randrange(1000)) for _ in range(JOBS)]
    with share_catalog():
        yield [(plan, _judge(plan, tmp_path_factory.mktemp("job"))) for plan in plans]


def _judge(plan: Plan, directory: Path) -> Judgement:
    job = compose(plan)
    return judge(job.expected, triage.ingest(job.write(directory), options=OPTIONS))


def test_most_roots_are_right(judgements: list[tuple[Plan, Judgement]]) -> None:
    """At least nine of ten roots are right, and of the ranks that can be known nine of ten."""
    for part in ("root", "ranks"):
        values = [value for _, one in judgements if (value := getattr(one, part)) is not None]
        assert sum(values) >= 0.9 * len(values), part


def test_healthy_jobs_are_clean(judgements: list[tuple[Plan, Judgement]]) -> None:
    """No job that ended well is called failed."""
    assert [plan for plan, one in judgements if one.is_healthy and not one.verdict] == []


def test_wrong_roots_are_not_sure(judgements: list[tuple[Plan, Judgement]]) -> None:
    """A wrong root has a confidence below 0.7, but for one job in a hundred."""
    sure = [plan for plan, one in judgements if not one.root and (one.confidence or 0.0) >= 0.7]
    assert len(sure) <= max(1, JOBS / 100)


def test_the_cells_are_as_many_as_promised() -> None:
    """There are 60 faults, 25 layouts and 15 dressings at least, and about half of the cells are held out."""
    from triage.testing.composer import is_held_out

    cells = list(list_cells())
    assert len({fault for fault, _ in cells}) >= 60
    assert len({layout for _, layout in cells}) >= 25
    assert len(DRESSINGS) >= 15
    assert 0.45 <= sum(is_held_out(*cell) for cell in cells) / len(cells) <= 0.55
