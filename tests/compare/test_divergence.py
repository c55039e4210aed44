"""Divergence and memory, from files to findings."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from triage.compare.quantities import load_quantities, parse_quantities
from triage.compare.setting_rules import RulesError
from triage.model.diagnosis import Finding

Value = Callable[[int, int], str]


def job(
    directory: Path,
    ranks: int,
    steps: int,
    value: Value,
    *,
    line: str = "[rank{rank}]: step {step} {value}\n",
    every: int = 1,
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        text = "".join(
            line.format(rank=rank, step=step, value=value(rank, step)) for step in range(every, steps + 1, every)
        )
        (directory / f"rank{rank}.log").write_text(text)
    return directory


def norm(step: int) -> float:
    return random.Random(step).uniform(0.5, 2)


def root(directory: Path) -> Finding | None:
    return triage.ingest(directory).root_cause


def diverging(rank: int, since: int, key: str = "grad_norm") -> Value:
    return lambda at, step: f"{key}={norm(step) * (1.5 if at == rank and step >= since else 1):.6f}"


@pytest.mark.parametrize(
    ("steps", "since", "every"), [(30, 17, 1), (4000, 1234, 1), (40000, 31416, 10), (3000, 3000, 1), (3000, 1, 1)]
)
def test_first_step_and_odd_rank(tmp_path: Path, steps: int, since: int, every: int) -> None:
    """The first differing step is found in files far larger than the parts kept in memory."""
    result = root(job(tmp_path, 4, steps, diverging(2, since), every=every))
    assert result is not None
    assert (result.signature, result.ranks) == ("numeric.rank-divergence", (2,))
    first = -(-since // every) * every
    assert f"at step {first}: rank 2 has " in result.evidence[0].text
    assert "50 % more" in result.evidence[0].text
    assert (f"equal at step {first - every}" in result.evidence[0].text) == (first > every)
    assert (Path(result.evidence[0].source).name, result.evidence[0].line) == ("rank2.log", first // every)
    assert result.captures["quantity"] == "grad_norm"


def test_all_ranks_in_one_file(tmp_path: Path) -> None:
    """Lines of all ranks in one file are separated by their prefixes."""
    value = diverging(5, 900, "grad norm")
    tmp_path.joinpath("job.log").write_text(
        "".join(f"[rank{rank}]: step {step} {value(rank, step)}\n" for step in range(1, 2001) for rank in range(8))
    )
    result = root(tmp_path)
    assert result is not None
    assert result.ranks == (5,)
    assert "at step 900: rank 5 has" in result.evidence[0].text


def test_a_number_before_a_quantity_is_ignored(tmp_path: Path) -> None:
    """Step times differ on all ranks; the quantity after them is still compared."""
    odd = diverging(2, 17)
    result = root(job(tmp_path / "norm", 4, 30, lambda rank, step: f"step_time=0.5{rank}{step} {odd(rank, step)}"))
    assert result is not None
    assert (result.ranks, result.captures["quantity"]) == ((2,), "grad_norm")


def test_of_two_ranks_both_are_named(tmp_path: Path) -> None:
    """Of two ranks that differ, neither is a majority."""
    result = root(job(tmp_path, 2, 50, diverging(1, 20)))
    assert result is not None
    assert (result.signature, result.ranks) == ("numeric.rank-divergence", (0, 1))
    assert "at step 20: rank 1 has" in result.evidence[0].text


def test_all_ranks_diverge_after_they_agreed(tmp_path: Path) -> None:
    """The text names the last equal step and the first differing one."""
    result = root(
        job(tmp_path, 4, 400, lambda rank, step: f"param_hash={'%016x' % (step if step < 250 else step * 7 + rank)}")
    )
    assert result is not None
    assert result.signature == "numeric.rank-divergence"
    assert "at step 250" in result.evidence[0].text
    assert "equal at step 249" in result.evidence[0].text


@pytest.mark.parametrize(
    "value",
    [
        lambda rank, step: f"loss={random.Random(rank * 1000 + step).uniform(2, 3):.6f}",
        lambda rank, step: f"grad_norm={norm(step + rank):.6f}",
        lambda rank, step: f"grad_norm={norm(step + rank // 4 * 100):.6f}",
        lambda rank, step: f"grad_norm={norm(step) * (1 + 1e-7 * rank):.9f}",
        lambda rank, step: f"loss={1.5 if step % 2 and rank == 3 else 1.4:.1f}",
        lambda rank, step: f"loss={norm(step):.6f} grad_norm={norm(step):.3f}",
        lambda rank, step: "grad_norm=nan",
        lambda rank, step: f"loss scale: {rank + 1}.0",
    ],
    ids=["own losses", "own norms", "halves", "rounding", "few digits", "all equal", "nan everywhere", "another word"],
)
def test_incomparable_values_give_nothing(tmp_path: Path, value: Value) -> None:
    """Values that differ by design, by rounding or by chance are no divergence."""
    assert root(job(tmp_path, 8, 60, value)) is None


def test_a_replicated_loss_must_stay_equal(tmp_path: Path) -> None:
    """A loss that was equal on all ranks, to many digits, must stay equal."""
    result = root(job(tmp_path, 4, 300, diverging(1, 120, "loss")))
    assert result is not None
    assert result.ranks == (1,)
    assert "differs between ranks that must agree at step 120" in result.evidence[0].text


@pytest.mark.parametrize(("equal", "apart", "is_found"), [(2, 35, False), (2, 120, True), (3, 35, True)])
def test_own_losses_of_two_ranks_are_equal_by_chance(tmp_path: Path, equal: int, apart: int, is_found: bool) -> None:
    """Two equal first values show nothing where later ones are 35 last digits apart; three do, or far larger ones."""

    def loss(rank: int, step: int) -> str:
        return f"loss={2.0 + step / 100 + (rank * apart / 10_000 if step > equal else 0):.4f}"

    assert (root(job(tmp_path, 2, 60, loss)) is not None) is is_found


def test_only_common_steps_are_compared(tmp_path: Path) -> None:
    """A rank that is some steps behind has not diverged."""
    for rank in range(4):
        steps = range(1, 40 - 3 * rank)
        (tmp_path / f"rank{rank}.log").write_text(
            "".join(f"[rank{rank}]: step {step} grad_norm={norm(step):.6f}\n" for step in steps)
        )
    assert root(tmp_path) is None


def test_one_rank_prints_the_values_of_all(tmp_path: Path) -> None:
    """In a list of all ranks' values the odd rank is blamed, not the rank that printed it."""
    (tmp_path / "rank0.log").write_text(
        "[rank0]: WARNING: w.weight inconsistent: [1203.551, 1203.551, 1198.207, 1203.551]\n[rank0]: world_size=4\n"
    )
    result = root(tmp_path)
    assert result is not None
    assert (result.signature, result.ranks) == ("numeric.rank-divergence", (2,))


@pytest.mark.parametrize(
    "stated", ["AssertionError: w.weight inconsistent:", "ValueError: grad norms are inconsistent:"]
)
def test_an_exception_with_the_values_of_all_ranks(tmp_path: Path, stated: str) -> None:
    """The odd rank is blamed; line and inference are one source, so the confidence is not high."""
    (tmp_path / "rank0.log").write_text(
        'Traceback (most recent call last):\n  File "/a/train.py", line 3, in check\n    fail()\n'
        f"{stated} [1203.551, 1203.551, 1198.207, 1203.551]\n"
    )
    result = root(tmp_path)
    assert result is not None
    assert (result.signature, result.ranks) == ("numeric.rank-divergence", (2,))
    assert result.confidence < 0.8


OOM = "[rank{0}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
USED = "step {step}: Rank {rank}: {value}\n"


def memory(directory: Path, used: Callable[[int], float], *, ended: bool = True) -> Finding | None:
    job(directory, 4, 10, lambda rank, step: f"allocated={used(rank) + step / 100:.2f}GB, reserved=77.00GB", line=USED)
    if ended:
        with (directory / "rank3.log").open("a") as file:
            file.write("[rank3]: Traceback (most recent call last):\n" + OOM.format(3))
    return root(directory)


def test_memory_is_compared_after_an_out_of_memory_error(tmp_path: Path) -> None:
    """The text has the fullest rank and the median; without the error there is no comparison."""
    result = memory(tmp_path / "a", lambda rank: 70.0 if rank == 3 else 41.0)
    assert result is not None
    assert (result.signature, result.ranks) == ("cuda.memory-imbalance", (3,))
    assert (
        result.evidence[0].text
        == "Device memory use differs between ranks: rank 3 has 70.10 GB allocated, the median is 41.10 GB"
    )
    assert memory(tmp_path / "b", lambda rank: 70.0 if rank == 3 else 41.0, ended=False) is None


def test_even_memory_is_no_imbalance(tmp_path: Path) -> None:
    """Ranks with similar memory leave the error as the root cause."""
    result = memory(tmp_path, lambda rank: 70.0 + rank / 10)
    assert result is not None
    assert result.signature == "cuda.out-of-memory"


@pytest.mark.parametrize("row", ["sure loss", "must", "must Grad Norm", "must grad_norm"])
def test_mistakes_in_the_list_have_a_line(row: str) -> None:
    """A line that cannot be used is an error with file and line."""
    with pytest.raises(RulesError) as caught:
        parse_quantities(f"# mine\n{row}\n", "mine.txt")
    assert (caught.value.path, caught.value.line) == ("mine.txt", 2)


def test_the_shipped_quantities() -> None:
    """Checksums are exact, norms must agree, a loss may."""
    assert (
        load_quantities()["checksum"],
        load_quantities()["grad norm"],
        load_quantities()["loss"],
        load_quantities()["allocated"],
    ) == (
        "exact",
        "must",
        "maybe",
        "memory",
    )
