"""The hard corpus is what it claims: its size, its groups, its halves, and that no signature names its failures."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import triage
from tests.clusters.hard_classes import HardClass, failure_text, fill, hard_classes
from tests.clusters.hard_corpus import compose_hard_job, hard_plans, hard_texts
from tests.clusters.hard_wraps import WRAPS
from tests.shared_catalog import OPTIONS, share_catalog
from triage.testing.composer.faults.own_texts import own_text_fault
from triage.testing.composer.faults.uncaught import Call
from triage.testing.composer.layouts import LAYOUTS
from triage.testing.composer.model import World
from triage.testing.composer.worlds import draw_world

CLASSES = hard_classes()
BY_NAME = {one.name: one for one in CLASSES}


def test_there_are_enough_classes_in_enough_groups() -> None:
    """At least 200 classes with names of their own, in at least 25 groups of five or more."""
    assert len(BY_NAME) == len(CLASSES) >= 200
    groups = Counter(one.group for one in CLASSES)
    assert len(groups) >= 25
    assert min(groups.values()) >= 5


def test_a_third_of_the_classes_is_held_out() -> None:
    """Names decide which, so that a new class changes no other."""
    share = sum(one.is_held_out for one in CLASSES) / len(CLASSES)
    assert 0.28 <= share <= 0.4


def test_each_class_has_three_to_five_texts_that_differ() -> None:
    """All texts of the corpus differ, so that each is a job of its own."""
    texts = list(hard_texts(1))
    counts = Counter(text.label for text in texts)
    assert set(counts) == set(BY_NAME)
    assert set(counts.values()) <= {3, 4, 5}
    assert len({text.text for text in texts}) == len(texts)


def test_a_seed_gives_the_same_texts_and_jobs() -> None:
    """The same seed gives the same corpus, another seed another one."""
    assert list(hard_texts(3)) == list(hard_texts(3))
    assert {text.text for text in hard_texts(3)}.isdisjoint(text.text for text in hard_texts(4))
    plan = next(iter(hard_plans(3)))
    assert compose_hard_job(plan) == compose_hard_job(plan)


def test_whole_jobs_are_drawn_for_many_classes_and_layouts() -> None:
    """At least 60 classes, each in several layouts; at least 20 layouts in all."""
    plans = list(hard_plans(1))
    layouts = {name: {plan.layout for plan in plans if plan.fault == name} for name in {plan.fault for plan in plans}}
    assert len(layouts) >= 60
    assert all(len(one) >= 3 for one in layouts.values())
    assert len({plan.layout for plan in plans}) >= 20


def test_a_job_contains_its_text() -> None:
    """The failure stands in the files, and its rank is the truth."""
    plan = next(plan for plan in hard_plans(1) if plan.dressing == "as written" and BY_NAME[plan.fault].is_python)
    job = compose_hard_job(plan)
    assert any(b"Traceback (most recent call last)" in data for data in job.files.values())
    assert job.expected.true_ranks
    assert job.expected.verdicts >= {"unknown"}


def test_the_clock_of_a_failure_is_that_of_its_job() -> None:
    """A record that a failing program stamps itself bears the time at which it fails, also in UTC."""
    world = replace(_world(), zone=3600)
    for slot, form, zone in (("<iso>", "%Y-%m-%dT%H:%M:%S.%LZ", 3600), ("<hms>", "%H:%M:%S,%L", 0)):
        assert fill(slot, world, 0, random.Random(1), at=75.0) == world.stamp(75.0 - zone, form)
    assert fill("<hms>", world, 0, random.Random(1)) != fill("<hms>", world, 0, random.Random(2))


def test_releases_shift_lines_and_rename_paths() -> None:
    """The second release of a class has other line numbers and paths than the first."""
    first, second = (_text(BY_NAME["glog/packer-null"], number) for number in (0, 1))
    assert "packer.cc:52" in first
    assert "row_packer.cc:" in second
    assert "packer.cc:52" not in second


@pytest.mark.parametrize("name", WRAPS)
def test_wrappers_keep_the_error(name: str) -> None:
    """Each wrapper prints the frames and the last line of the cause."""
    calls = tuple(Call(f"<app>/egret/{part}.py", 7, part, "step()") for part in ("a", "b", "c"))
    text = WRAPS[name](_world(), 2, random.Random(1), "<app>/egret/a.py", calls, "egret.Lost: nothing left")
    assert "nothing left" in text
    assert ", in c\n" in text


def test_what_is_no_slot_stays() -> None:
    """Angle brackets of C++, Rust and Python are text."""
    text = "vector<float>, <module>, <lambda>, <l7>"
    assert fill(text, _world(), 0, random.Random(1), 5) == "vector<float>, <module>, <lambda>, 12"


def test_no_signature_names_a_failure_as_the_cause(tmp_path: Path) -> None:
    """The catalog knows none of the failures alone, except as their class states."""
    wrong = set()
    with share_catalog():
        for text in (text for text in hard_texts(1) if text.number == 0):
            path = tmp_path / "job.log"
            path.write_text(text.core + "\n", encoding="utf-8")
            root = triage.ingest(path, options=OPTIONS).root_cause
            if root is not None and root.signature not in {None, *BY_NAME[text.label].known}:
                wrong.add((text.label, root.signature))
    assert not wrong


def _text(one: HardClass, number: int) -> str:
    return failure_text(one, _world(), 0, number, random.Random(number))


def _world() -> World:
    return draw_world(own_text_fault("any", lambda world, rank, rng, at: ""), LAYOUTS[0], random.Random(5))
