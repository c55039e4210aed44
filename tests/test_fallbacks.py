"""Without its optional parts triage is slower or shows less, and its verdicts are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.artifacts.crash_factories import C, compile_program, make_core, require_programs
from triage.testing.jobs import JobBuilder

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples" / "jobs"
# A known failure, an unknown one, symptoms only, several hosts, an archive, and two causes.
NAMES = (
    "dataloader_worker_killed_tee",
    "assertion_all_ranks_interleaved",
    "sigkill_perrank",
    "exception_one_rank_twonode",
    "shape_mismatch_detail_archive",
    "nccl_caught_and_diverged",
)
# Says what it could not import, so that a test that hides nothing fails.
SCRIPT = """
import json, sys
hidden, paths = sys.argv[1].split(","), sys.argv[2:]
for name in filter(None, hidden):
    sys.modules[name] = None
import triage
from triage.render.json import document
for path in paths:
    report = document(triage.ingest(path))
    report["stats"] = report["tool"] = None
    print(json.dumps(report))
print(json.dumps(sorted(name for name in ("hyperscan", "isal", "lz4", "pystack") if sys.modules.get(name))))
"""


def run(hidden: str, *paths: Path, path: str | None = None) -> list[Any]:
    """Return the reports of these jobs, without durations, and the optional modules that were imported."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | ({"PATH": path} if path is not None else {})
    command = [sys.executable, "-c", SCRIPT, hidden, *map(str, paths)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@cache
def run_complete() -> list[Any]:
    """Return what `run` gives where nothing is hidden."""
    return run("", *(SAMPLES / name / "job" for name in NAMES))


@pytest.mark.parametrize("hidden", ["hyperscan", "isal", "hyperscan,isal,lz4,pystack"])
def test_reports_are_equal_without(hidden: str) -> None:
    """Each report of a few samples is equal to the byte where a faster or optional package is missing."""
    *reports, imported = run(hidden, *(SAMPLES / name / "job" for name in NAMES))
    *complete, _ = run_complete()
    assert len(reports) == len(NAMES)
    assert reports == complete
    assert not set(imported) & set(hidden.split(","))


def test_hyperscan_is_what_the_complete_runs_use() -> None:
    """The comparison is between two engines: without anything hidden Hyperscan is imported."""
    pytest.importorskip("hyperscan")
    assert "hyperscan" in run_complete()[-1]


def test_a_core_has_the_same_verdict_without_gdb(tmp_path: Path) -> None:
    """Verdict, cause and ranks of a job with a core are equal where no gdb is on the path; the frames may be fewer."""
    require_programs("gcc", "gdb")
    job = tmp_path / "job"
    JobBuilder(job, world_size=2).steps(3).write()
    make_core(job, str(compile_program(tmp_path, "crash", C)), "null")
    empty = tmp_path / "bin"
    empty.mkdir()
    summaries = []
    for path in (None, str(empty)):
        report, _ = run("", job, path=path)
        root = report["root_cause"]
        assert root is not None
        summaries.append((report["verdict"], root["signature"], root.get("cluster"), root["ranks"]))
    assert summaries[0] == summaries[1]
