"""triage.compare.rules"""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.compare.rules import RulesError, load, parse


def test_the_shipped_rules_can_be_read() -> None:
    """Names, groups and dangers are there, each with what may come of it."""
    rules = load()
    assert rules.of("NCCL_ALGO")[0] == "agree"
    assert rules.of("RANK")[0] == rules.of("SLURM_JOB_ID")[0] == "own"
    assert all(item.why for item in (*rules.groups, *rules.dangers))


@pytest.mark.parametrize(
    "line",
    ["must NCCL_ALGO : x", "agree", "own A-*-B*C", "danger fatal A=1 : x", "danger error : x", "danger error A=1", "group g A==*! : ", "danger info torch=2 : x", "danger info !A=1 : x"],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(line: str) -> None:
    """A line that cannot be used is an error at its place, with what to write instead."""
    with pytest.raises(RulesError) as caught:
        parse(f"# mine\n\n{line}\n", "mine.txt")
    assert (caught.value.path, caught.value.line) == ("mine.txt", 3)
    assert caught.value.hint


def test_own_rules_win(tmp_path: Path) -> None:
    """A file of the user comes before the shipped rules; one that cannot be read is an error."""
    path = tmp_path / "mine.txt"
    path.write_text("own NCCL_ALGO\n")
    assert load(path).of("NCCL_ALGO")[0] == "own"
    with pytest.raises(RulesError):
        load(tmp_path / "gone.txt")


@pytest.mark.parametrize(
    ("condition", "values", "holds"),
    [
        ("A=1|2", {"A": "2"}, True),
        ("A=1|2", {"A": "12"}, False),
        ("A=eth*", {"A": "eth0"}, True),
        ("A", {}, False),
        ("A", {"A": ""}, True),
        ("!A", {}, True),
        ("A_T>=B_T", {"A_T": "120", "B_T": "68"}, True),
        ("A_T>=B_T", {"A_T": "120"}, False),
        ("nccl==2.14.3", {"nccl": "2.14.3+cuda11.7"}, True),
        ("nccl<2.17", {"nccl": "2.5"}, True),
        ("nccl<2.17", {"nccl": "2.17.0"}, False),
        ("hosts>=2", {"hosts": "1"}, False),
    ],
)
def test_conditions(condition: str, values: dict[str, str], holds: bool) -> None:
    """Values, patterns, numbers and versions are compared as settings.txt says."""
    (danger,) = parse(f"danger info {condition} : x", "x").dangers
    assert danger.conditions[0].holds(values, complete=True) is holds


def test_nothing_is_known_to_be_unset_without_a_dump() -> None:
    """`!NAME` holds only where the whole environment is known."""
    (danger,) = parse("danger info !A : x", "x").dangers
    assert not danger.conditions[0].holds({}, complete=False)
