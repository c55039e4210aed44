"""bench/flight.py: its dumps are those of one hang, which the reader finds."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.load import load
from triage.artifacts.flight.recording import RecordingBuilder

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("groups", "seq"), [(1, 20), (2, 10)])
def test_the_rank_that_stops_early_is_the_only_one_at_fault(
    groups: int, seq: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All other ranks wait in the last call of the world, in one group and beside groups of eight."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    bench = importlib.import_module("flight")
    monkeypatch.setattr(bench, "DATA", tmp_path)
    directory = bench.make_dumps(16, 20, groups)
    builder = RecordingBuilder()
    for rank in range(16):
        builder.add(rank, f"{rank}", load((directory / f"nccl_trace_rank_{rank}").read_bytes()))
    (fault,) = analyse(builder.build()).faults
    assert (fault.rule, fault.ranks, fault.group, fault.seq) == ("never-joined", (15,), "default_pg", seq)
    assert fault.waiting == tuple(range(15))
