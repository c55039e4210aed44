"""The dumps that real jobs under torch 2.13 with gloo wrote: each says what was done to its job."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import triage
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.gather import gather
from triage.artifacts.flight.opcodes import canonical

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "flight"
CASES = sorted(path.parent for path in SAMPLES.glob("*/TRUTH.yaml"))


def truth(case: Path) -> dict[str, Any]:
    return yaml.safe_load((case / "TRUTH.yaml").read_text(encoding="utf-8"))


def test_there_are_enough() -> None:
    """At least twelve kinds of fault, on four to eight ranks."""
    told = [truth(case) for case in CASES]
    assert sum(one["rule"] is not None for one in told) >= 12
    assert {one["world_size"] for one in told} <= set(range(4, 9))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kind_ranks_group_and_number(case: Path) -> None:
    """One root, and it is the right one; of a healthy job none."""
    wanted = truth(case)
    recording, warnings = gather([str(case)])
    roots = [fault for fault in analyse(recording).faults if not fault.explained_by]
    assert warnings == []
    if wanted["rule"] is None:
        assert roots == []
        return
    (fault,) = roots
    assert (fault.rule, list(fault.ranks), fault.group, fault.seq, fault.since) == tuple(
        wanted[key] for key in ("rule", "ranks", "group", "seq", "since")
    )


@pytest.mark.parametrize("case", [case for case in CASES if truth(case)["rule"]], ids=lambda case: case.name)
def test_the_diagnosis_of_the_dumps_alone(case: Path, tmp_path: Path) -> None:
    """`ingest` names the signature of the rule and the ranks, with no log beside the dumps."""
    from tests.artifacts.flight.test_reader import SIGNATURES

    wanted = truth(case)
    shutil.copytree(case, tmp_path / "job", ignore=shutil.ignore_patterns("TRUTH.yaml"))
    root = triage.ingest(str(tmp_path / "job")).root_cause
    assert root is not None
    assert (root.signature, list(root.ranks)) == (SIGNATURES[wanted["rule"]], wanted["ranks"])


@pytest.mark.parametrize("case", [case for case in CASES if not truth(case)["rule"]], ids=lambda case: case.name)
def test_what_the_dumps_do_not_hold_is_said(case: Path, tmp_path: Path) -> None:
    """A job that ended well, and hangs in barriers that Gloo does not record: nobody is blamed, and the reason is
    there.
    """
    shutil.copytree(case, tmp_path / "job", ignore=shutil.ignore_patterns("TRUTH.yaml"))
    found = triage.ingest(str(tmp_path / "job"))
    assert found.root_cause is not None
    assert (found.verdict, found.root_cause.signature, found.root_cause.ranks) == ("unknown", None, ())
    assert "outside of recorded collectives, no dump tells" in found.root_cause.why[0]


def test_every_pickle_of_torch_takes_the_quick_way() -> None:
    """The check for plain data knows all that torch 2.13 writes."""
    pickles = [path for case in CASES for path in case.glob("fr_rank_*") if path.suffix != ".json"]
    assert len(pickles) > 60
    assert [path.name for path in pickles if not canonical(path.read_bytes())] == []
