"""Every harness with its seeds, its findings and the same few hundred mutations; `make fuzz` looks further."""

from __future__ import annotations

import time

import pytest

from tests.fuzz.harnesses import HARNESSES, Harness
from tests.fuzz.mutation import mutate
from tests.fuzz.seeds import FINDINGS, list_findings, list_seeds

MUTATIONS = 200
SECONDS = 20.0
"""Processor time that no input of a few kilobytes may take: the bound is for what hangs, not for what is slow."""


def replay(harness: Harness, data: bytes) -> None:
    """Run an input, and refuse one that takes long."""
    started = time.thread_time()
    harness.run(data)
    assert time.thread_time() - started < SECONDS


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_seeds_and_mutations(harness: Harness) -> None:
    """Valid inputs, changed ones and what once broke a harness give an answer or a documented error."""
    seeds = list_seeds(harness)
    assert len(seeds) >= 4
    for data in (b"", *list_findings(harness.name), *seeds, *mutate(seeds, harness.tokens, MUTATIONS, seed=23)):
        replay(harness, data)


def test_findings_have_a_harness() -> None:
    """No finding lies where nobody replays it, and each is small."""
    names = {harness.name for harness in HARNESSES}
    assert {path.name for path in FINDINGS.iterdir()} <= names
    assert all(path.stat().st_size <= 16 << 10 for path in FINDINGS.rglob("*") if path.is_file())
