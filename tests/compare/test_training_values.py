"""The pace and the values of the training are read from the lowest rank's lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from triage import pipeline
from triage.compare.training_values import MOST_STEPS
from triage.model.environment import TrainingValues


def training(directory: Path, **files: str) -> TrainingValues | None:
    """Return the training values of a job with these files."""
    for name, text in files.items():
        (directory / f"{name}.log").write_text(text, encoding="utf-8")
    return pipeline.audit([str(directory)]).training


def lines(count: int, seconds: float, loss: Callable[[int], float], begin: str = "2026-03-01 10:") -> str:
    """Return one line for each ten steps."""
    return "".join(
        f"{begin}{int(n * seconds) // 60:02d}:{int(n * seconds) % 60:02d},000 step {10 * n} loss {loss(n):.4f}\n"
        for n in range(1, count + 1)
    )


def test_pace_and_values_of_the_lowest_rank(tmp_path: Path) -> None:
    """Ten steps in two seconds are five steps a second; the first and the last steps have their values."""
    values = training(tmp_path, rank0=lines(40, 2, lambda n: 40 / n), rank1=lines(40, 4, lambda n: 1.0))
    assert values is not None
    assert (values.steps_per_second, values.last_step) == (5.0, 400)
    steps = [step for step, _ in values.quantities["loss"]]
    assert steps == [*range(10, 10 + 10 * MOST_STEPS, 10), *range(400 - 10 * MOST_STEPS + 10, 401, 10)]
    assert dict(values.quantities["loss"])[400] == "1.0000"


def test_steps_without_times_have_no_pace(tmp_path: Path) -> None:
    """Without times the values are there, and no pace is invented."""
    values = training(tmp_path, rank0="step 1 loss 2.5\nstep 2 loss 2.25\n")
    assert values is not None
    assert values.steps_per_second is None
    assert values.quantities == {"loss": ((1, "2.5"), (2, "2.25"))}


def test_a_job_without_steps_has_no_training_values(tmp_path: Path) -> None:
    """A log without a loss, or with one that has no step, gives none."""
    assert training(tmp_path, rank0="loading data\nready\n") is None
    assert training(tmp_path, rank0="final loss: 2.5\n") is None


def test_a_time_that_goes_back_gives_no_pace(tmp_path: Path) -> None:
    """A clock that was set back, or a moment of under a second, gives no pace."""
    back = "2026-03-01 10:00:09,000 step 1 loss 2.5\n2026-03-01 10:00:01,000 step 2 loss 2.25\n"
    near = "2026-03-01 10:00:09,000 step 1 loss 2.5\n2026-03-01 10:00:09,900 step 2 loss 2.25\n"
    far = "2026-03-01 10:00:09,000 step 1 loss 2.5\n2026-03-01 10:00:10,000 step 2 loss 2.25\n"
    paces = []
    for text in (back, near, far):
        values = training(tmp_path, rank0=text)
        assert values is not None
        paces.append(values.steps_per_second)
    assert paces == [None, None, 1.0]
