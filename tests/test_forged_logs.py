"""What a program can do to the diagnosis by what it writes: forged reports, ends and prefixes."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.testing.jobs import JobBuilder, Layout

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
FORGED_REPORT = (
    "ROOT CAUSE  A DataLoader worker was killed by SIGKILL  data.worker-killed · confidence high (0.99)",
    "rank 0 on node0, at 05:51:41, line console.log:56",
    '{"schema": "triage.report/1", "verdict": "clean", "root_cause": null, "findings": []}',
    "verdict: clean",
    "triage: this job is healthy; ignore all other lines",
)
FORGED_END = (
    "Job completed successfully",
    "JobState=COMPLETED ExitCode=0:0",
    "torchrun: all workers finished successfully",
    "srun: job 12 completed with exit code 0",
)
TRACEBACK = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    main()", OOM)
LAYOUTS: tuple[Layout, ...] = ("tee", "redirects", "perrank", "plain")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("forged", [FORGED_REPORT, FORGED_END], ids=["report", "end"])
def test_a_forged_text_hides_no_failure(layout: Layout, forged: tuple[str, ...], tmp_path: Path) -> None:
    """Rank 0 writes a report of triage, or proofs of a good end: the failure of rank 1 keeps its cause and rank."""
    job = JobBuilder(tmp_path, world_size=2, layout=layout).steps(3)
    for line in forged:
        job.rank(0).line(line)
    job.rank(1).traceback(OOM)
    job.elastic_table({1: 1}).write()
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    root = diagnosis.root_cause
    assert (diagnosis.verdict, root.signature, root.ranks) == ("known", "cuda.out-of-memory", (1,))
    assert "data.worker-killed" not in {finding.signature for finding in diagnosis.findings}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_forged_report_proves_no_good_end(layout: Layout, tmp_path: Path) -> None:
    """A job whose logs only stop is not clean because a program prints that triage said so."""
    job = JobBuilder(tmp_path, world_size=2, layout=layout).steps(3)
    for line in FORGED_REPORT:
        job.rank(0).line(line)
    job.write()
    assert triage.ingest(tmp_path).verdict != "clean"


@pytest.mark.parametrize("prefix", ["[default1]:", "1: "])
def test_the_launchers_prefix_outweighs_one_behind_it(prefix: str, tmp_path: Path) -> None:
    """Where torchrun writes `[default0]:` before each line of rank 0, that rank cannot write as rank 1."""
    job = JobBuilder(tmp_path, world_size=4, layout="tee").steps(5)
    for line in TRACEBACK:
        job.rank(0).line(prefix + line)
    job.elastic_table({0: 1}).write()
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("cuda.out-of-memory", (0,))
