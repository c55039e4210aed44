"""The jobs of samples/jobs: each diagnosis agrees with the truth of its job."""

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
def diagnose(case: Path) -> Diagnosis:
    """Return the diagnosis of a job; each job is diagnosed once."""
    return triage.ingest(case / "job")


def read_truth(case: Path) -> dict[str, Any]:
    """Return the content of TRUTH.yaml."""
    return yaml.safe_load((case / "TRUTH.yaml").read_text(encoding="utf-8"))


for_each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@for_each_case
def test_verdict_root_and_ranks(case: Path) -> None:
    """Verdict, root signature (null: an unknown failure) and root ranks agree with the truth."""
    actual, truth = diagnose(case), read_truth(case)
    root = actual.root_cause
    assert actual.verdict in truth["verdict"].split("|")
    if truth["verdict"] == "clean":
        assert root is None
        return
    assert root is not None
    assert root.signature in truth["root"]
    if truth["root_ranks"] is not None:
        assert set(root.ranks) == set(truth["root_ranks"])


@for_each_case
def test_ranks_are_not_invented(case: Path) -> None:
    """Every rank of a finding is named in a file, or is below a world size that the files state."""
    actual, size = diagnose(case), read_truth(case)["world_size"]
    job_ranks = set(actual.job.ranks)
    for finding in (*([actual.root_cause] if actual.root_cause else []), *actual.findings, *actual.unknown):
        for rank in set(finding.ranks) - job_ranks:
            assert any(fact.kind == "inference" for fact in finding.evidence) or _is_rank_named(case, rank), (
                finding.signature,
                rank,
            )
            assert actual.job.world_size is not None
            assert rank < actual.job.world_size
    assert actual.job.world_size in (None, size)
    assert job_ranks <= set(range(size))


def _is_rank_named(case: Path, rank: int) -> bool:
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in (case / "job").rglob("*") if path.is_file()]
    return any(
        re.search(rf"(?i)rank\W{{0,4}}{rank}\b|WORLD_SIZE\D{{1,8}}{rank + 1}\b|nranks \d", text) for text in texts
    )


@for_each_case
def test_confidence_is_between_a_tenth_and_19_twentieths(case: Path) -> None:
    """No finding is certain, and none is without evidence."""
    actual = diagnose(case)
    for finding in (*([actual.root_cause] if actual.root_cause else []), *actual.findings, *actual.unknown):
        assert 0.1 <= finding.confidence <= 0.95


@for_each_case
def test_evidence_is_at_its_line(case: Path) -> None:
    """The file and line of a piece of evidence contain the beginning of its text."""
    actual = diagnose(case)
    for finding in (*([actual.root_cause] if actual.root_cause else []), *actual.findings, *actual.unknown):
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


def test_samples_include_healthy_jobs() -> None:
    """At least five samples finished without a failure, to test that nothing is reported."""
    assert sum(read_truth(case)["verdict"] == "clean" for case in CASES) >= 5


def test_samples_have_many_kinds_and_are_small() -> None:
    """Samples cover at least twelve kinds of failure and take less than 5 MB."""
    roots = {str(root) for case in CASES for root in read_truth(case)["root"][:1]}
    assert len(roots) >= 12
    assert len([path for path in KINDS.glob("*.py") if path.stem != "trainlib"]) >= 12
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 5_000_000


def test_samples_cover_launcher_layouts() -> None:
    """Samples cover the usual ways in which launchers write output."""
    layouts = {read_truth(case)["layout"].split("+")[0].split()[0] for case in CASES}
    assert {"tee", "redirects", "perrank", "plain"} <= layouts
