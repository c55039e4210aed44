"""Two jobs side by side: what differs, what only one states, and that nothing is said of what was not compared."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.store.factories import make_job
from triage.compare.job_comparison import (
    PACE_TOLERANCE,
    VALUE_TOLERANCE,
    ComparedPart,
    JobComparison,
    JobSide,
    compare_jobs,
)
from triage.render.job_comparison import describe_part


def side(
    name: str,
    *,
    agreed: dict[str, str] | None = None,
    deviations: tuple[dict[str, Any], ...] = (),
    pace: float | None = None,
    values: dict[str, dict[int, str]] | None = None,
    **job: Any,
) -> JobSide:
    """Return a job with its stored environment."""
    rows = {
        key: [{"step": step, "value": text} for step, text in pairs.items()] for key, pairs in (values or {}).items()
    }
    training = {"steps_per_second": pace, "last_step": 1, "quantities": rows} if rows or pace else None
    document = {"agreed": agreed or {}, "deviations": list(deviations), "training": training}
    return JobSide(make_job(name, **job), document)


def part(comparison: JobComparison, name: str) -> ComparedPart:
    """Return a part by its name."""
    return next(item for item in comparison.parts if item.name == name)


def rows(comparison: JobComparison, name: str) -> list[tuple[str, str | None, str | None, bool]]:
    """Return the rows of a part."""
    return [(row.name, row.failed, row.healthy, row.differs) for row in part(comparison, name).rows]


def test_settings_that_differ_come_before_those_of_one_job() -> None:
    """A different value is a difference; a name that only one job states is listed and is none."""
    failed = side("a", agreed={"NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "4", "ONLY": "1"})
    healthy = side("b", agreed={"NCCL_ALGO": "Tree", "OMP_NUM_THREADS": "4", "THERE": "2"})
    comparison = compare_jobs(failed, healthy)
    assert rows(comparison, "settings") == [
        ("NCCL_ALGO", "Ring", "Tree", True),
        ("ONLY", "1", None, False),
        ("THERE", None, "2", False),
    ]
    assert (part(comparison, "settings").compared, part(comparison, "settings").differing) == (2, 1)
    assert comparison.headline == "1 of 4 values that both jobs state differs."


def test_a_setting_that_differs_between_ranks_is_compared_with_all_its_values() -> None:
    """A setting on which the ranks of one job differ is shown with who has which value."""
    deviation = {
        "rule": "env-mismatch",
        "names": ["NCCL_IB_HCA"],
        "values": [{"value": "mlx5_1", "who": "rank 3"}, {"value": "mlx5_0", "who": "ranks 0-2"}],
    }
    comparison = compare_jobs(side("a", deviations=(deviation,)), side("b", agreed={"NCCL_IB_HCA": "mlx5_0"}))
    assert rows(comparison, "settings") == [("NCCL_IB_HCA", "mlx5_0 on ranks 0-2; mlx5_1 on rank 3", "mlx5_0", True)]


@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "SLURM_JOBID", "MASTER_ADDR", "MASTER_PORT", "HOSTNAME", "PWD", "_"])
def test_names_of_one_run_are_left_out(name: str) -> None:
    """Numbers of jobs, hosts and ports, which differ between any two jobs, are not compared."""
    comparison = compare_jobs(side("a", agreed={name: "1"}), side("b", agreed={name: "2"}))
    assert part(comparison, "settings").compared == 0
    near = compare_jobs(side("a", agreed={f"{name}_MODE": "1"}), side("b", agreed={f"{name}_MODE": "2"}))
    assert part(near, "settings").differing == 1


def test_versions_facts_and_size_are_compared() -> None:
    """Versions are no settings; facts are compared as a whole; size counts ranks and hosts."""
    failed = side(
        "a",
        agreed={"torch": "2.6"},
        versions={"torch": "2.6"},
        facts={"user": ("anna",), "image": ("i:2",)},
        world_size=16,
    )
    healthy = side(
        "b", agreed={"torch": "2.5"}, versions={"torch": "2.5"}, facts={"user": ("anna",), "image": ("i:1",)}
    )
    comparison = compare_jobs(failed, healthy)
    assert rows(comparison, "settings") == []
    assert rows(comparison, "versions") == [("torch", "2.6", "2.5", True)]
    assert rows(comparison, "facts") == [("image", "i:2", "i:1", True)]
    assert rows(comparison, "size") == [("ranks", "16", "2", True)]


def test_pace_differs_beyond_its_tolerance() -> None:
    """A pace just within the tolerance is no difference, one just beyond it is; both are shown."""
    for slower, differs in ((2.0 * (1 - PACE_TOLERANCE) + 0.001, False), (2.0 * (1 - PACE_TOLERANCE) - 0.001, True)):
        comparison = compare_jobs(side("a", pace=slower), side("b", pace=2.0))
        assert rows(comparison, "pace") == [("steps a second", f"{slower:.4g}", "2", differs)]


def test_losses_are_compared_at_the_last_common_step() -> None:
    """Values of other steps do not count; a difference begins beyond the tolerance, and NaN is one."""
    healthy = side("b", values={"loss": {10: "4.0", 20: "2.0", 30: "1.0"}})
    for text, differs in (
        (f"{2 * (1 + VALUE_TOLERANCE) - 0.001}", False),
        ("2.11", True),
        ("nan", True),
        ("1,000", True),
    ):
        failed = side("a", values={"loss": {10: "9.0", 20: text, 25: "8"}, "grad_norm": {20: "1"}})
        (row,) = part(compare_jobs(failed, healthy), "values").rows
        assert (row.name, row.step, row.failed, row.healthy, row.differs) == ("loss", 20, text, "2.0", differs)
    both_nan = compare_jobs(side("a", values={"loss": {1: "nan"}}), side("b", values={"loss": {1: "NaN"}}))
    assert part(both_nan, "values").differing == 0


def test_what_was_not_compared_says_so() -> None:
    """Without stored values no part says that nothing differs, and each says what is missing."""
    bare = JobSide(dataclasses.replace(make_job("a"), hosts={}, ranks=(), world_size=None))
    comparison = compare_jobs(bare, side("b", agreed={"A": "1"}, pace=1.0, values={"loss": {5: "1"}}))
    assert comparison.compared == 0
    assert comparison.headline == "Nothing was compared: the two jobs state no value in common."
    sentences = {item.name: describe_part(item) for item in comparison.parts}
    assert sentences["settings"] == "Nothing was compared: the failed job states no settings."
    assert sentences["versions"] == "Nothing was compared: neither job states versions."
    assert sentences["pace"] == "Nothing was compared: the failed job states no pace."
    assert sentences["values"] == "Nothing was compared: the failed job states no losses."
    apart = compare_jobs(side("a", values={"loss": {5: "1"}}), side("b", values={"loss": {6: "1"}}))
    assert part(apart, "values").why_not == "the two jobs have no step of a quantity in common"


def test_nothing_differs_is_said_where_something_was_compared() -> None:
    """Equal jobs have the sentence with the number of compared values."""
    comparison = compare_jobs(side("a", agreed={"A": "1"}), side("b", agreed={"A": "1"}))
    assert comparison.headline == "Nothing differs in the 3 values that both jobs state."
    assert describe_part(part(comparison, "settings")) == "Nothing differs (1 compared)."
