"""Faults whose text the caller writes."""

from __future__ import annotations

import random

from triage.testing.composer import Plan, compose, list_layouts
from triage.testing.composer.faults.own_texts import own_text_fault
from triage.testing.composer.model import World


def write_error(world: World, rank: int, rng: random.Random, at: float) -> str:
    """Return a traceback with a value of each rank."""
    return f"Traceback (most recent call last):\nValueError: nothing left for {rank}, {rng.randrange(9000)}"


def test_the_text_of_the_caller_is_the_cause() -> None:
    """The job has the text of each rank at fault, and its truth is a failure that no signature knows."""
    job = compose(Plan("own", "torchrun-tee", "as written", 4), own_text_fault("own", write_error))
    text = b"".join(job.files.values()).decode()
    assert job.expected.roots == {None}
    assert job.expected.verdicts == {"unknown"}
    assert job.expected.true_ranks
    assert all(f"ValueError: nothing left for {rank}," in text for rank in job.expected.true_ranks)


def test_a_signature_can_be_right_too() -> None:
    """Where the caller states a signature, known and unknown are both right."""
    fault = own_text_fault("own", write_error, status=-6, is_traceback=False, roots=(None, "crash.abort"))
    job = compose(Plan("own", "torchrun-tee", "as written", 4), fault)
    assert job.expected.roots == {None, "crash.abort"}
    assert job.expected.verdicts == {"known", "unknown"}


def test_layouts_are_those_that_the_fault_fits() -> None:
    """Layouts that no backend of the fault has are left out, all others are there."""
    layouts = set(list_layouts(own_text_fault("own", write_error)))
    assert {"torchrun-tee", "torchrun-plain"} <= layouts
    assert len(layouts) >= 20
