"""Jobs in which all wait in one call, or some wait for ranks that have finished, and the rule that reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from tests.shared_catalog import OPTIONS
from triage.diagnose.rules import CONCLUDING, absence, waits
from triage.testing.composer import Plan, compose, judge

LAYOUTS = ("torchrun-tee", "srun-file-per-task", "stern", "horovodrun", "bash-file-per-rank")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("fault", "needed"),
    [
        ("transfer-hangs", waits.same_call),
        ("kernel-without-end", waits.same_call),
        ("finished-too-early", absence.done_while_others_wait),
    ],
)
def test_one_rule_reads_such_jobs(fault: str, needed: object, layout: str, tmp_path: Path) -> None:
    """With it the answer is right, without it none of the other rules gives it."""
    number = next(n for n in range(9) if len(compose(Plan(fault, layout, "as written", n)).expected.verdicts) == 1)
    job = compose(Plan(fault, layout, "as written", number))
    directory = job.write(tmp_path)
    assert judge(job.expected, triage.ingest(directory, options=OPTIONS)).is_right
    with pytest.MonkeyPatch.context() as patch:
        others = tuple(rule for rule in CONCLUDING if rule.infer is not needed)
        patch.setattr("triage.diagnose.rules.CONCLUDING", others)
        assert not judge(job.expected, triage.ingest(directory, options=OPTIONS)).is_right
