"""Dumps of real jobs under torch 2.13 with gloo, each with the fault that was made in it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import triage
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.dump_files import read_dump_files
from triage.artifacts.flight.safe_unpickler import is_canonical

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "flight"
CASES = sorted(path.parent for path in SAMPLES.glob("*/TRUTH.yaml"))


def truth(case: Path) -> dict[str, Any]:
    """Return the fault of a recorded job."""
    return yaml.safe_load((case / "TRUTH.yaml").read_text(encoding="utf-8"))


def test_samples_cover_many_faults() -> None:
    """The samples have at least twelve faults, on four to eight ranks."""
    truths = [truth(case) for case in CASES]
    assert sum(each["rule"] is not None for each in truths) >= 12
    assert {each["world_size"] for each in truths} <= set(range(4, 9))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fault_of_each_sample(case: Path) -> None:
    """The analysis of a sample has exactly the fault that was made, and none for a healthy job."""
    expected = truth(case)
    recording, warnings = read_dump_files([str(case)])
    roots = [fault for fault in analyse(recording).faults if not fault.explained_by]
    assert warnings == []
    if expected["rule"] is None:
        assert roots == []
        return
    (fault,) = roots
    assert (fault.rule, list(fault.ranks), fault.group, fault.seq, fault.since) == tuple(
        expected[key] for key in ("rule", "ranks", "group", "seq", "since")
    )


@pytest.mark.parametrize("case", [case for case in CASES if truth(case)["rule"]], ids=lambda case: case.name)
def test_diagnosis_from_dumps_alone(case: Path, tmp_path: Path) -> None:
    """`ingest` names signature and ranks from the dumps alone."""
    from tests.artifacts.flight.test_reader import SIGNATURES

    expected = truth(case)
    shutil.copytree(case, tmp_path / "job", ignore=shutil.ignore_patterns("TRUTH.yaml"))
    root = triage.ingest(str(tmp_path / "job")).root_cause
    assert root is not None
    assert (root.signature, list(root.ranks)) == (SIGNATURES[expected["rule"]], expected["ranks"])


@pytest.mark.parametrize("case", [case for case in CASES if not truth(case)["rule"]], ids=lambda case: case.name)
def test_dumps_without_a_fault_name_no_cause(case: Path, tmp_path: Path) -> None:
    """A healthy job and a hang outside of recorded collectives blame no rank, and the reason says so."""
    shutil.copytree(case, tmp_path / "job", ignore=shutil.ignore_patterns("TRUTH.yaml"))
    diagnosis = triage.ingest(str(tmp_path / "job"))
    assert diagnosis.root_cause is not None
    assert (diagnosis.verdict, diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("unknown", None, ())
    assert "outside of recorded collectives" in diagnosis.root_cause.why[0]


def test_every_pickle_of_torch_is_canonical() -> None:
    """The check for plain data accepts everything that torch 2.13 writes."""
    pickles = [path for case in CASES for path in case.glob("fr_rank_*") if path.suffix != ".json"]
    assert len(pickles) > 60
    assert [path.name for path in pickles if not is_canonical(path.read_bytes())] == []


def test_a_difference_that_stops_several_ranks_is_one_fault() -> None:
    """Rank 3 skips a broadcast: one rank waits in it and two in the next call, and one fault says so."""
    recording, _ = read_dump_files([str(SAMPLES.parent / "jobs" / "hung_skipped_call_dump" / "job")])
    (fault,) = analyse(recording).faults
    assert (fault.rule, fault.ranks, fault.waiting) == ("divergent-call", (3,), (0, 1, 2))
