"""Options that take a verdict know every verdict of the model."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from triage.cli import find, options
from triage.model.diagnosis import Verdict

VERDICTS = set(get_args(Verdict))


@pytest.mark.parametrize(
    ("option", "choices"),
    [(find.VerdictOption, VERDICTS), (options.FailOn, VERDICTS - {"clean"} | {"any"})],
    ids=["--verdict", "--fail-on"],
)
def test_every_verdict_can_be_chosen(option: Any, choices: set[str]) -> None:
    """`--fail-on` has `any` in place of clean, which is no failure."""
    accepted = {name for part in get_args(get_args(option)[0]) for name in get_args(part)}
    assert accepted == choices
