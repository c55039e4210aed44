"""Jobs that one rule of attribution, weighing or choice reads, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import triage
from tests.shared_catalog import OPTIONS
from triage.diagnose import attribution, candidates, causes
from triage.diagnose.rules import WEIGHING, absence
from triage.testing.composer import Plan, compose, judge

STAGES = {
    "triage.diagnose.attribution.PLACING": attribution.PLACING,
    "triage.diagnose.candidates.READING": candidates.READING,
    "triage.diagnose.rules.WEIGHING": WEIGHING,
    "triage.diagnose.causes.CHOOSING": causes.CHOOSING,
}


@pytest.mark.parametrize(
    ("fault", "layout", "seed", "needed"),
    [
        ("barrier-of-smaller-group", "stern", 0, candidates.of_smaller_group),
        ("barrier-of-smaller-group", "srun-file-per-task", 0, candidates.of_smaller_group),
        ("barrier-of-a-few", "stern", 0, absence.most_awaited),
        ("barrier-of-a-few", "bash-file-per-rank", 0, absence.most_awaited),
        ("barrier-missed-while-waiting", "stern", 0, absence.most_awaited),
        ("barrier-missed-while-waiting", "torchrun-tee", 0, absence.most_awaited),
        ("framework-wraps-error", "torchrun-plain", 0, attribution.by_last_exception),
        ("framework-wraps-error", "srun-plain", 3, attribution.by_last_exception),
        ("vague-errors-elsewhere", "srun-file-per-task", 0, causes.more_telling_first),
        ("vague-errors-elsewhere", "bash-file-per-rank", 0, causes.more_telling_first),
        ("vague-errors-elsewhere", "torch-spawn", 0, None),
        ("later-known-error", "json-lines", 0, causes.earlier_first),
        ("later-known-error", "torchrun-plain", 0, causes.earlier_first),
        ("later-known-error", "srun-file-per-task", 0, causes.earlier_first),
        ("error-printed-while-loading", "horovodrun", 0, causes.uncaught_first),
        ("error-printed-while-loading", "torchrun-redirects", 0, causes.uncaught_first),
        ("error-printed-while-loading", "kubernetes-joined", 0, causes.uncaught_first),
        ("error-printed-while-loading", "bash-file-per-rank", 0, causes.uncaught_first),
        ("earlier-error-printed", "srun-torchrun", 0, None),
        ("earlier-error-printed", "deepspeed-one-node", 0, None),
        ("earlier-error-printed", "pals-label", 0, None),
        ("transfer-hangs", "deepspeed-file-per-rank", 1, None),
        ("transfer-hangs", "torch-spawn", 1, None),
    ],
)
def test_one_rule_reads_such_jobs(
    fault: str, layout: str, seed: int, needed: Callable[..., object] | None, tmp_path: Path
) -> None:
    """With it the answer is right, without it wrong; None: a job that once was misread."""
    job = compose(Plan(fault, layout, "as written", seed))
    directory = job.write(tmp_path)
    assert judge(job.expected, triage.ingest(directory, options=OPTIONS)).is_right
    with pytest.MonkeyPatch.context() as patch:
        for place, rules in STAGES.items():
            patch.setattr(place, tuple(rule for rule in rules if rule is not needed))
        assert needed is None or not judge(job.expected, triage.ingest(directory, options=OPTIONS)).is_right
