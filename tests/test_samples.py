"""The recorded jobs: whatever else changes, these are diagnosed as what happened in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import triage
from triage.model.diagnosis import Diagnosis

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "jobs"
CASES = sorted(path.parent for path in SAMPLES.glob("*/TRUTH.yaml"))
KINDS = Path(__file__).resolve().parents[1] / "samples" / "record" / "kinds"


@cache
def diagnosis(case: Path) -> Diagnosis:
    return triage.ingest(case / "job")


def truth(case: Path) -> dict[str, Any]:
    return yaml.safe_load((case / "TRUTH.yaml").read_text(encoding="utf-8"))


def each_case(function: Any) -> Any:
    return pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])(function)


@each_case
def test_verdict_root_and_ranks(case: Path) -> None:
    """Verdict, root signature (null: an unknown failure) and the ranks that began it are as the truth says."""
    found, wanted = diagnosis(case), truth(case)
    root = found.root_cause
    assert found.verdict in wanted["verdict"].split("|")
    if wanted["verdict"] == "clean":
        assert root is None
        return
    assert root is not None
    assert root.signature in wanted["root"]
    if wanted["root_ranks"] is not None:
        assert set(root.ranks) == set(wanted["root_ranks"])


@each_case
def test_ranks_are_not_invented(case: Path) -> None:
    """A rank of the root, or of any finding, is named by some file or is one of a world whose size the files state."""
    found, size = diagnosis(case), truth(case)["world_size"]
    seen = set(found.job.ranks)
    for finding in (*([found.root_cause] if found.root_cause else []), *found.findings, *found.unknown):
        for rank in set(finding.ranks) - seen:
            assert any(fact.kind == "inference" for fact in finding.evidence) or _named(case, rank), (
                finding.signature,
                rank,
            )
            assert found.job.world_size is not None
            assert rank < found.job.world_size
    assert found.job.world_size in (None, size)
    assert seen <= set(range(size))


def _named(case: Path, rank: int) -> bool:
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in (case / "job").rglob("*") if path.is_file()]
    return any(
        re.search(rf"(?i)rank\W{{0,4}}{rank}\b|WORLD_SIZE\D{{1,8}}{rank + 1}\b|nranks \d", text) for text in texts
    )


@each_case
def test_confidence_is_between_a_tenth_and_19_twentieths(case: Path) -> None:
    """Nothing is certain and nothing is said without any ground."""
    found = diagnosis(case)
    for finding in (*([found.root_cause] if found.root_cause else []), *found.findings, *found.unknown):
        assert 0.1 <= finding.confidence <= 0.95


@each_case
def test_evidence_lies_where_it_says(case: Path) -> None:
    """The line of every evidence that is reported holds the first words of what the evidence says there."""
    found = diagnosis(case)
    for finding in (*([found.root_cause] if found.root_cause else []), *found.findings, *found.unknown):
        for fact in finding.evidence:
            path = Path(fact.source)
            assert fact.line is not None
            assert fact.end_line is not None
            assert 1 <= fact.line <= fact.end_line
            if fact.kind in ("inference", "exit") or not path.is_file():
                continue
            lines = path.read_bytes().split(b"\n")
            first = fact.text.split("\n", 1)[0].strip()[:40]
            assert first in lines[fact.line - 1].decode("utf-8", "replace"), (fact.line, first)


def test_healthy_jobs_are_there() -> None:
    """Some of the samples finished fine, with handled exceptions, retries and teardown noise, so that silence is tested
    too.
    """
    assert sum(truth(case)["verdict"] == "clean" for case in CASES) >= 5


def test_kinds_and_size() -> None:
    """There are samples of at least twelve kinds of failure, and together they are small enough to clone."""
    roots = {str(root) for case in CASES for root in truth(case)["root"][:1]}
    assert len(roots) >= 12
    assert len([path for path in KINDS.glob("*.py") if path.stem != "trainlib"]) >= 12
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 5_000_000


def test_layouts() -> None:
    """The samples cover the ways in which launchers leave their output."""
    layouts = {truth(case)["layout"].split("+")[0].split()[0] for case in CASES}
    assert {"tee", "redirects", "perrank", "plain"} <= layouts
