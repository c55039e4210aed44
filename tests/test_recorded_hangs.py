"""The plan of the recorded hangs: each has a program, a truth of the catalog, and ranks that exist."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
HANGS = ROOT / "samples" / "record" / "hangs"
PLAN = runpy.run_path(str(HANGS / "plan.py"), run_name="plan")
SIGNATURES = {f"{path.parent.name}.{path.stem}" for path in (ROOT / "signatures").glob("*/*.yaml")}
PROGRAMS = [
    node.name
    for path in sorted((HANGS / "programs").glob("*.py"))
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef)
]


@pytest.mark.parametrize("hang", PLAN["HANGS"], ids=lambda hang: hang.name)
def test_a_hang_has_a_program_and_a_truth(hang: Any) -> None:
    """Its program is defined once, its signatures are in the catalog, its ranks and forms exist."""
    assert PROGRAMS.count(hang.name) == 1
    assert set(hang.ids) <= SIGNATURES
    assert 2 <= hang.size <= 16
    assert all(0 <= rank < hang.size for ranks in hang.ranks for rank in ranks)
    assert {*hang.silent, *hang.more_ranks} <= set(PLAN["FORMS"])


def test_the_plan_has_many_kinds() -> None:
    """At least 25 kinds hang on 2 to 16 ranks, and no name occurs twice."""
    hangs = [hang for hang in PLAN["HANGS"] if hang.hangs]
    assert len(hangs) >= 25
    assert {2, 16} <= {hang.size for hang in hangs}
    assert len({hang.name for hang in PLAN["HANGS"]}) == len(PLAN["HANGS"])


def test_samples_are_recorded_hangs() -> None:
    """Each sample is a form of a hang that shows its cause, and lies in samples/jobs."""
    by_name = {hang.name: hang for hang in PLAN["HANGS"]}
    for sample in PLAN["SAMPLES"]:
        assert sample.form not in by_name[sample.hang].silent
        name = f"hung_{sample.hang}_{sample.form}".replace("-", "_")
        assert (ROOT / "samples" / "jobs" / name / "TRUTH.yaml").is_file()
