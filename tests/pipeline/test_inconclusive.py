"""Jobs of which nothing is known: where they end, what is cut, and that none is taken for another."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from triage.diagnose.inconclusive import FIRST_BY
from triage.model.diagnosis import Diagnosis

NOISE = random.Random(20)


def write_steps(path: Path, last: int, *, seconds: float = 1.0, end: str = "") -> None:
    """Write one step a second from 04:00:00 on."""
    lines = []
    for step in range(1, last + 1):
        clock = step * seconds
        lines.append(f"2026-03-02 04:{int(clock) // 60:02}:{int(clock) % 60:02},000 INFO train: step={step} loss=2.1\n")
    path.write_text("".join(lines) + end)


def write_zip(directory: Path) -> None:
    with zipfile.ZipFile(directory / "job.zip", "w") as archive:
        archive.writestr("rank0.log", NOISE.randbytes(5000))


def ingest(directory: Path, write: Callable[[Path], object]) -> Diagnosis:
    directory.mkdir()
    write(directory)
    return triage.ingest(directory)


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (write_zip, "rank0.log is binary"),
        (lambda directory: (directory / "a.log").write_bytes(NOISE.randbytes(9000)), "a.log is binary"),
        (lambda directory: (directory / f"{NOISE.random()}.log").touch(), "log is empty"),
    ],
)
def test_what_cannot_be_read_is_inconclusive_and_no_other_job(
    tmp_path: Path, write: Callable[[Path], object], reason: str
) -> None:
    """Random bytes and empty files say why, and two such jobs have different ids."""
    first, second = ingest(tmp_path / "a", write), ingest(tmp_path / "b", write)
    assert first.verdict == second.verdict == "inconclusive"
    assert first.inconclusive is not None
    assert reason in first.inconclusive.why[0]
    assert first.job.id != second.job.id


def test_a_log_that_is_cut_within_a_line_says_so(tmp_path: Path) -> None:
    """The last line is shown with its number, and a finished line makes the job clean."""
    write_steps(tmp_path / "train.log", 100, end="2026-03-02 04:01:41,000 INFO train: st")
    known = triage.ingest(tmp_path).inconclusive
    assert known is not None
    assert known.why[0] == "train.log ends in the middle of a line: what came after it is missing"
    assert (known.last_lines[0].line, known.last_lines[0].text[-2:]) == (101, "st")
    write_steps(tmp_path / "train.log", 100, end="2026-03-02 04:01:41,000 INFO train: training finished\n")
    assert triage.ingest(tmp_path).verdict == "clean"


@pytest.mark.parametrize(("lead", "is_first"), [(int(FIRST_BY), True), (int(FIRST_BY) - 1, False)])
def test_the_rank_that_stopped_first_is_named(tmp_path: Path, lead: int, is_first: bool) -> None:
    """Where its clock shows it by more than lines of one moment differ."""
    for rank in range(4):
        write_steps(tmp_path / f"rank{rank}.log", 300 - lead * (rank == 2))
    known = triage.ingest(tmp_path).inconclusive
    assert known is not None
    assert any("Rank 2 stopped first, at 04:04:58" in sentence for sentence in known.why) is is_first
    assert known.last_lines[0].rank == 2


def test_the_state_of_a_pod_is_a_proof(tmp_path: Path) -> None:
    """A YAML file that the cluster writes is read; one that people write is not."""
    write_steps(tmp_path / "worker.log", 50)
    (tmp_path / "pod.yaml").write_text("kind: Pod\nspec:\n  command: exit 0\n# phase Succeeded is what we want\n")
    assert triage.ingest(tmp_path).verdict == "inconclusive"
    (tmp_path / "pod.yaml").write_text("status:\n  containerStatuses:\n  - name: trainer\n  phase: Succeeded\n")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.verdict == "clean"
