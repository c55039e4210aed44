"""Every harness with its seeds, its findings and the same few hundred mutations; `make fuzz` looks further."""

from __future__ import annotations

import itertools
import re
import time
from random import Random

import pytest

from tests.effort import is_thorough
from tests.fuzz.harnesses import HARNESSES, Harness
from tests.fuzz.mutation import mutate
from tests.fuzz.seeds import FINDINGS, list_findings, list_seeds

MUTATIONS = 200
NUMBERS = 2 if is_thorough() else 1  # of each seed, in whose place long runs are put
SECONDS, SECONDS_OF_RUN = 20.0, 2.0
"""Processor time that no input of a few kilobytes may take, and none with one of RUNS: the first is for what hangs, the
second for patterns whose time grows with the square of a run. Good ones take a hundredth of a second.
"""
RUNS = (b"9" * 5000, b"9" * 400, "²".encode(), "٣".encode(), b"a_" * 2500, b"-" * 5000, b"a." * 2500, b" " * 5000)


def replay(harness: Harness, data: bytes, seconds: float = SECONDS) -> None:
    """Run an input, and refuse one that takes long."""
    started = time.thread_time()
    harness.run(data)
    assert time.thread_time() - started < seconds


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_seeds_and_mutations(harness: Harness) -> None:
    """Valid inputs, changed ones and what once broke a harness give an answer or a documented error."""
    seeds = list_seeds(harness)
    assert len(seeds) >= 4
    for data in (b"", *list_findings(harness.name), *seeds, *mutate(seeds, harness.tokens, MUTATIONS, seed=23)):
        replay(harness, data)


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_long_runs_in_place_of_numbers(harness: Harness) -> None:
    """Thousands of digits, digits that are not ASCII and endless words break nothing and take no long time."""
    random = Random(f"{harness.name} 5000")
    inputs = []
    for data in list_seeds(harness):
        numbers = list(re.finditer(rb"\d+", data))
        for match, run in itertools.product(random.sample(numbers, min(NUMBERS, len(numbers))), RUNS):
            inputs.append(data[: match.start()] + run + data[match.end() :])
    assert len(inputs) >= len(RUNS)
    for data in inputs:
        replay(harness, data, seconds=SECONDS_OF_RUN)


def test_findings_have_a_harness() -> None:
    """No finding lies where nobody replays it, and each is small."""
    names = {harness.name for harness in HARNESSES}
    assert {path.name for path in FINDINGS.iterdir()} <= names
    assert all(path.stat().st_size <= 16 << 10 for path in FINDINGS.rglob("*") if path.is_file())
