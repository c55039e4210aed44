"""docs/measure.py, which writes docs/reasoning.md."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_sample_is_read_as_the_reasoning_gets_it(tmp_path: Path) -> None:
    """The measured job has the evidence of its files, and the reasoning answers it as the program does."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import measure
    finally:
        sys.path.pop(0)
    shutil.copytree(ROOT / "samples" / "jobs" / "sigkill_redirects", tmp_path / "sigkill_redirects")
    (job,) = measure.read_jobs(tmp_path)
    assert job.evidence
    assert measure.is_right(job, job.solve())
