"""The rules for settings: parsing, precedence and conditions."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.compare.setting_rules import RulesError, load_rules, parse_rules


def test_the_shipped_rules_can_be_read() -> None:
    """Names, groups and dangers exist, each with a reason."""
    rules = load_rules()
    assert rules.policy_for("NCCL_ALGO")[0] == "agree"
    assert rules.policy_for("RANK")[0] == rules.policy_for("SLURM_JOB_ID")[0] == "own"
    assert all(group.why for group in rules.groups)
    assert all(danger.why for danger in rules.dangers)


@pytest.mark.parametrize(
    "line",
    [
        "must NCCL_ALGO : x",
        "agree",
        "own A-*-B*C",
        "danger fatal A=1 : x",
        "danger error : x",
        "danger error A=1",
        "group g A==*! : ",
        "danger info torch=2 : x",
        "danger info !A=1 : x",
    ],
)
def test_mistakes_have_a_line(line: str) -> None:
    """A line that cannot be used is an error with its line and a hint."""
    with pytest.raises(RulesError) as caught:
        parse_rules(f"# mine\n\n{line}\n", "mine.txt")
    assert (caught.value.path, caught.value.line) == ("mine.txt", 3)
    assert caught.value.hint


def test_user_rules_take_precedence(tmp_path: Path) -> None:
    """A file of the user comes before the shipped rules; an unreadable one is an error."""
    path = tmp_path / "mine.txt"
    path.write_text("own NCCL_ALGO\n")
    assert load_rules(path).policy_for("NCCL_ALGO")[0] == "own"
    with pytest.raises(RulesError):
        load_rules(tmp_path / "gone.txt")


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
    """Values, patterns, numbers and versions are compared as described in settings.txt."""
    (danger,) = parse_rules(f"danger info {condition} : x", "x").dangers
    assert danger.conditions[0].holds(values, complete=True) is holds


def test_unset_needs_a_full_dump() -> None:
    """`!NAME` holds only where the whole environment is known."""
    (danger,) = parse_rules("danger info !A : x", "x").dangers
    assert not danger.conditions[0].holds({}, complete=False)


def test_switches_of_programs_are_compared_as_text() -> None:
    """A name in small letters with `_` is a switch, not a version."""
    rules = parse_rules("group determinism-x use_fast_math=false +X_MODE=1 : results vary\n", "mine.txt")
    switch, _ = rules.groups[0].conditions
    assert switch.holds({"use_fast_math": "False"}, complete=False)
    assert not switch.holds({"use_fast_math": "true"}, complete=False)
