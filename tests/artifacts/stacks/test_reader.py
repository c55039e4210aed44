"""Dumps of live processes as artifacts of a job."""

from __future__ import annotations

import pytest

from tests.artifacts.stacks.factories import dump_text
from triage.artifacts.interface import Artifact
from triage.artifacts.stacks import reader
from triage.artifacts.stacks.reader import LiveStacks
from triage.model.evidence import Source

STEP = ("step (train.py:40)", "<module> (train.py:61)")


def test_dump_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a dump that reaches the limit the beginning is read, and a warning names the limit."""
    monkeypatch.setattr(reader, "MAX_BYTES", 1 << 20)
    text = dump_text(*STEP).encode()
    long = Artifact(Source("rank1.txt", "py-spy"), text + b"\n" * ((1 << 20) - len(text)))
    result = LiveStacks().read([Artifact(Source("rank0.txt", "py-spy"), text), long])
    assert [fact.origin.rank for fact in result.evidence] == [0, 1]
    assert [(warning.code, warning.source, warning.message) for warning in result.warnings] == [
        ("truncated-artifact", "rank1.txt", "only the first 1 MiB of this dump were read")
    ]
