"""Two runs of one program in the files: they part at a step although they ask for determinism."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from tests.compare.test_node_drift import drifted, norm

PARTLY = [
    "+ export HCCL_DETERMINISTIC=true\n+ export LCCL_DETERMINISTIC=0\n",
    "HCCL_DETERMINISTIC=true\n",
    "torch.use_deterministic_algorithms(True)\ntorch.backends.cudnn.benchmark=True\n",
    "args: Namespace(seed=42, deterministic=True, lr=0.1)\n",
    "NVTE_ALLOW_NONDETERMINISTIC_ALGO=0\n",
]
FULLY = "HCCL_DETERMINISTIC=true\nLCCL_DETERMINISTIC=1\nATB_MATMUL_SHUFFLE_K_ENABLE=0\n"


def write_run(directory: Path, side: int, head: str, *, ranks: int = 2, own: bool = False) -> None:
    """A run that finished, with one file for each rank."""
    directory.mkdir(parents=True)
    for rank in range(ranks):
        rows = "".join(
            f"[rank{rank}]: step {step} loss {norm(step, side) if own else drifted(step, side, 57):.6f}\n"
            for step in range(1, 101)
        )
        (directory / f"rank{rank}.log").write_text(
            f"[rank{rank}]: world_size={ranks} seed=42\n{head}{rows}[rank{rank}]: training complete\n"
        )


@pytest.mark.parametrize("head", PARTLY)
@pytest.mark.parametrize("names", [("run1", "run2"), ("a", "b"), ("first_try", "second_try")])
def test_runs_that_part(tmp_path: Path, head: str, names: tuple[str, str]) -> None:
    """The runs, the steps and the switches are named; directories need no particular names."""
    for side, name in enumerate(names):
        write_run(tmp_path / name, side, head)
    result = triage.ingest(tmp_path).root_cause
    assert result is not None
    assert (result.signature, result.ranks) == ("config.determinism-incomplete", (0, 1))
    text = next(fact.text for fact in result.evidence if "runs" in fact.text)
    assert text.startswith(f"loss: runs {names[0]} and {names[1]} agreed until step 56, differ since step 57 (")


def test_runs_of_one_process(tmp_path: Path) -> None:
    """Files without a rank are compared too."""
    for side, name in enumerate(("run_a", "run_b")):
        rows = "".join(f"step {step} loss {drifted(step, side, 57):.6f}\n" for step in range(1, 101))
        (tmp_path / f"{name}.log").write_text(PARTLY[0] + rows + "training complete\n")
    result = triage.ingest(tmp_path).root_cause
    assert result is not None
    assert result.signature == "config.determinism-incomplete"


@pytest.mark.parametrize("head", ["", FULLY, "torch.backends.cudnn.benchmark=True\n"])
def test_runs_that_need_not_agree(tmp_path: Path, head: str) -> None:
    """Without a switch for determinism runs may part; with all of a group the cause is another."""
    for side in range(2):
        write_run(tmp_path / f"run{side}", side, head)
    assert triage.ingest(tmp_path).verdict == "clean"


def test_runs_that_never_agreed(tmp_path: Path) -> None:
    """Runs that differ from the first step on are different experiments."""
    for side in range(2):
        write_run(tmp_path / f"run{side}", side, PARTLY[0], own=True)
    assert triage.ingest(tmp_path).verdict == "clean"


def test_equal_runs(tmp_path: Path) -> None:
    """Runs that agree to the end are clean."""
    for number in range(2):
        write_run(tmp_path / f"run{number}", 0, PARTLY[0])
    assert triage.ingest(tmp_path).verdict == "clean"


def test_attempts_are_no_runs(tmp_path: Path) -> None:
    """A restart that repeats steps is of the same run."""
    for side in range(2):
        write_run(tmp_path / f"attempt_{side}", side, PARTLY[0])
    assert triage.ingest(tmp_path).verdict == "clean"


def test_within_a_run_ranks_are_compared(tmp_path: Path) -> None:
    """A rank that diverges in one of two runs is found, and only there."""
    write_run(tmp_path / "run1", 0, "", ranks=4)
    write_run(tmp_path / "run2", 0, "", ranks=4)
    path = tmp_path / "run2" / "rank2.log"
    rows = (f"[rank2]: step {step} loss {drifted(step, 1, 30):.6f}\n" for step in range(1, 101))
    path.write_text("".join(rows))
    result = triage.ingest(tmp_path).root_cause
    assert result is not None
    assert (result.signature, result.ranks) == ("numeric.rank-divergence", (2,))
    assert "at step 30" in result.evidence[0].text
