"""Logs of several processes one after another in one file: each process ends for itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from triage.model import Diagnosis

FAILURE = ["Traceback (most recent call last):", '  File "/w/train.py", line 40, in main', "    step(batch)"]
OUT_OF_MEMORY = [*FAILURE, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"]
WRITERS, FAILED = 6, 3
LABELS: dict[str, Callable[[int], str]] = {
    "kubectl": lambda number: f"[pod/job-worker-{number}/main] ",
    "docker compose": lambda number: f"worker-{number}  | ",
    "srun": lambda number: f"{number}: ",
    "pdsh": lambda number: f"node{number}: ",
    "Ray": lambda number: f"(RayTrainWorker pid={7000 + number}, ip=10.0.0.{number}) ",
    "c10d": lambda number: f"[rank{number}]: ",
}
SHORT, LONG = 30, 2000  # steps: within the tail that is always read, and far beyond it


def diagnose(
    path: Path, label: Callable[[int], str], steps: int, end: list[str], *, stamped: bool = False
) -> Diagnosis:
    """Write the logs one after another; writer FAILED makes half of the steps, if `end` is not the end of all."""
    lines = []
    for writer in range(WRITERS):
        own = steps // 2 if writer == FAILED and end != ["training finished"] else steps
        clock = [
            f"2026-11-21 {10 + step // 3600:02d}:{step // 60 % 60:02d}:{step % 60:02d} INFO " for step in range(own)
        ]
        lines += [f"{label(writer)}{clock[step] if stamped else ''}step {step} loss 0.5" for step in range(own)]
        lines += [label(writer) + line for line in (end if writer == FAILED else ["training finished"])]
    (path / "all.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return triage.ingest(path)


@pytest.mark.parametrize("steps", [SHORT, LONG])
@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_a_failure_in_the_middle_is_the_cause(label: Callable[[int], str], steps: int, tmp_path: Path) -> None:
    """The writers behind it finish; the one that failed wrote nothing more."""
    root = diagnose(tmp_path, label, steps, OUT_OF_MEMORY).root_cause
    assert root is not None
    assert root.signature == "cuda.out-of-memory"


@pytest.mark.parametrize("steps", [SHORT, LONG])
@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_a_writer_that_stops_is_not_clean(label: Callable[[int], str], steps: int, tmp_path: Path) -> None:
    """One of six makes half of the steps and does not say that it finished: the report names it, or its rank."""
    diagnosis = diagnose(tmp_path, label, steps, [])
    assert diagnosis.verdict == "inconclusive"
    assert diagnosis.inconclusive is not None
    why = " ".join(diagnosis.inconclusive.why)
    assert label(FAILED).strip(" []:|()") in why or f"rank {FAILED} " in why


@pytest.mark.parametrize("steps", [SHORT, LONG])
@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_all_finished_is_clean(label: Callable[[int], str], steps: int, tmp_path: Path) -> None:
    """Each writer says that it finished."""
    assert diagnose(tmp_path, label, steps, ["training finished"]).verdict == "clean"


def test_a_handled_failure_is_over(tmp_path: Path) -> None:
    """The writer of the traceback goes on and finishes."""
    end = [*OUT_OF_MEMORY, "step 900 loss 0.5", "training finished"]
    assert diagnose(tmp_path, LABELS["kubectl"], SHORT, end).verdict == "clean"


@pytest.mark.parametrize(("stamped", "verdict"), [(True, "known"), (False, "clean")])
def test_without_labels_times_tell_the_logs_apart(stamped: bool, verdict: str, tmp_path: Path) -> None:
    """Behind the failure the time is an hour earlier: another log begins. Without times it may be a second attempt."""
    assert diagnose(tmp_path, lambda _: "", LONG, OUT_OF_MEMORY, stamped=stamped).verdict == verdict
