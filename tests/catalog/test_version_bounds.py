"""Version bounds: what excludes a signature, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from tests.catalog.factories import GLOO, signature, write
from triage.catalog import version_bounds
from triage.catalog.model import Catalog
from triage.pipeline import Options


@pytest.mark.parametrize(
    ("bounds", "version", "fits"),
    [
        (">=2.4, <2.8", "2.4.0", True),
        (">=2.4, <2.8", "2.8", False),
        ("==2.14", "2.14.3+cuda11.7", True),
        ("==2.14.3", "2.14", False),
        ("==2.14.0", "2.14", True),
        ("!=2.14", "2.14.3", False),
        ("<=2.14", "2.14.3", True),
        ("<2.27.3", "2.27.3", False),
        (">2.5", "2.10", True),
        (">=8", "8.0.RC3", True),
        (">=2", "unknown", True),
    ],
)
def test_bounds(bounds: str, version: str, fits: bool) -> None:
    """Numbers are compared part by part; a version without a number excludes nothing."""
    case = signature("{text: 'abcd'}", applies_to=f'{{nccl: "{bounds}"}}')
    assert (version_bounds.explain_version_mismatch(case, {"nccl": {version}}) is None) == fits


def test_unknown_versions_exclude_nothing() -> None:
    """No version, another program's version, or one of several that fits."""
    case = signature("{text: 'abcd'}", applies_to='{nccl: ">=2.4"}')
    catalog = Catalog("1", (case,))
    for known in ({}, {"torch": {"1.0"}}, {"nccl": {"2.3.1", "2.21.5"}}):
        assert version_bounds.restrict_to_versions(catalog, known) is catalog
    assert version_bounds.restrict_to_versions(catalog, {"nccl": {"2.3.1"}}).signatures == ()


JOBS = (
    ("NCCL version 2.21.5+cuda12.4", '{nccl: "<2.4"}'),
    ("pytorch version: 2.6.0+cu124", '{torch: "<2.0"}'),
    ("| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |", '{driver: "<500"}'),
    ("| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |", '{cuda: "<12"}'),
    ("CANN version: 8.0.RC3", '{cann: "<8"}'),
    ("slurm 23.02.7", '{slurm: "<22.05"}'),
)


def test_jobs_of_another_version(tmp_path: Path) -> None:
    """A stated version excludes the signature, and `explain` says why; without it the signature matches."""
    for number, (_, bounds) in enumerate(JOBS):
        write(tmp_path / "ours", f"gloo.bounded-{number}", GLOO + f"applies_to: {bounds}\n")
    chosen = Options(catalogs=(tmp_path / "ours",))
    log = tmp_path / "job.log"
    failure = "gloo/transport/tcp/pair.cc:534 Connection closed by peer [10.0.0.1:29]\n"
    log.write_text(f"step 1 loss 2.0\n{failure}", encoding="utf-8")
    result = {finding.signature for finding in triage.ingest(log, options=chosen).findings}
    assert {f"gloo.bounded-{number}" for number in range(len(JOBS))} <= result
    for number, (line, _) in enumerate(JOBS):
        log.write_text(f"{line}\nstep 1 loss 2.0\n{failure}", encoding="utf-8")
        explained = triage.explain([str(log)], f"gloo.bounded-{number}", chosen)
        assert not explained.matched
        assert explained.outcome.startswith("not matched, because it applies to"), line
    assert f"gloo.bounded-{number}" not in {
        finding.signature for finding in triage.ingest(log, options=chosen).findings
    }
