"""Facts of a restarted job are told apart by attempt, and each attempt is diagnosed."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.diagnose import attempts
from triage.diagnose.clocks import Clocks
from triage.testing.jobs import JobBuilder

from .making import fact

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"
MARK = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"


def test_by_the_launcher_s_word_then_by_time_else_the_last() -> None:
    """In the launcher's file the place decides, in others the time, and what has none belongs to the last attempt."""
    facts = [
        fact("a", source="console.log", offset=1),
        fact(MARK, source="console.log", offset=5, time=100.0),
        fact("b", source="console.log", offset=9),
        fact("c", source="dmesg", time=90.0),
        fact("d", source="dmesg", time=110.0),
        fact("e", source="rank0.log"),
        fact("f", source="logs/attempt_0/1/stderr.log"),
    ]
    placed, last = attempts.assign(facts, {}, Clocks())
    assert last == 1
    assert [one.origin.attempt for one in placed] == [0, 0, 1, 0, 1, 1, 0]


def test_a_requeue_is_a_restart_where_training_went_on() -> None:
    """Slurm writes the same line when a job ends for good."""
    line = fact(
        "slurmstepd: error: *** JOB 7 ON a CANCELLED AT x DUE TO JOB REQUEUE ***",
        kind="scheduler",
        source="slurm-7.out",
        offset=5,
    )
    after = fact("b", source="slurm-7.out", offset=9)
    assert attempts.assign([line, after], {"slurm-7.out": 7}, Clocks())[1] == 1
    assert attempts.assign([line, after], {"slurm-7.out": 3}, Clocks())[1] == 0


@pytest.mark.parametrize("layout", ["tee", "redirects"])
def test_failed_restarted_finished_is_clean_with_what_happened_before(layout: str, tmp_path: Path) -> None:
    """The failure of the first attempt stands in the findings, and says that a later attempt finished."""
    job = JobBuilder(tmp_path, layout=layout).steps(5)  # type: ignore[arg-type]
    job.rank(2).traceback(OOM)
    job.restart().steps(9).finish()
    found = triage.ingest(job.write())
    assert (found.verdict, found.root_cause) == ("clean", None)
    (oom,) = [finding for finding in found.findings if finding.signature == "cuda.out-of-memory"]
    assert oom.ranks == (2,)
    assert "of attempt 0; a later attempt finished" in oom.why


@pytest.mark.parametrize("layout", ["tee", "redirects"])
def test_the_last_attempt_decides_and_those_before_are_told(layout: str, tmp_path: Path) -> None:
    """Attempt 0 ended out of memory, attempt 1 of something else: that is the root, and the other stands beside it."""
    job = JobBuilder(tmp_path, layout=layout).steps(5)  # type: ignore[arg-type]
    job.rank(2).traceback(OOM)
    job.restart().steps(3)
    job.rank(1).traceback("ValueError: record 7 is empty")
    found = triage.ingest(job.write())
    root = found.root_cause
    assert root is not None
    assert (root.signature, root.ranks) == (None, (1,))
    assert "attempt 0 ended before, of cuda.out-of-memory" in root.why
    (oom,) = [finding for finding in found.findings if finding.signature == "cuda.out-of-memory"]
    assert any("began attempt 0" in reason for reason in oom.why)
