"""Jobs of two hosts, one of them with a clock that is minutes wrong."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import triage
from triage.model.diagnosis import Diagnosis

JOBS = Path(__file__).parents[2] / "samples" / "jobs"
TWO_HOSTS = sorted({path.parents[1].name for path in JOBS.glob("*/job/node2*")})
STAMPS = (
    (
        re.compile(r"\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d"),
        ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d_%H:%M:%S"),
    ),
    (re.compile(r"(?<=[EWIF])\d{4} \d\d:\d\d:\d\d(?=\.\d)"), ("%m%d %H:%M:%S",)),
    (
        re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"),
        ("%a %b %d %H:%M:%S %Y",),
    ),
    (re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?= node)"), ("%b %d %H:%M:%S",)),
)


def shifted(text: str, seconds: int) -> str:
    """Return the text as a host writes it whose clock is so much ahead."""
    for pattern, forms in STAMPS:
        text = pattern.sub(_later(forms, seconds), text)
    return text


def _later(forms: tuple[str, ...], seconds: int) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        for form in forms:
            try:
                when = (
                    datetime.strptime(f"2024 {match[0]}", f"%Y {form}")
                    if "%Y" not in form
                    else datetime.strptime(match[0], form)
                )
            except ValueError:
                continue
            return (when + timedelta(seconds=seconds)).strftime(form)
        return match[0]

    return replaced


def answer(diagnosis: Diagnosis) -> tuple[object, ...]:
    root = diagnosis.root_cause
    links = sorted(
        (finding.signature or finding.cluster or "", finding.ranks, finding.explained_by)
        for finding in diagnosis.findings
    )
    return (diagnosis.verdict, root and (root.signature, root.cluster, root.ranks, root.confidence), links)


@pytest.mark.parametrize("name", TWO_HOSTS)
def test_a_wrong_clock_changes_no_answer(name: str, tmp_path: Path) -> None:
    """Root, ranks, confidence and what explains what are the same when all stamps of one host are minutes off, either
    way.
    """
    usual = answer(triage.ingest(JOBS / name / "job"))
    dice = random.Random(name)
    for number, seconds in enumerate((60 * dice.randrange(2, 40) + dice.randrange(60), -60 * dice.randrange(2, 40))):
        job = tmp_path / str(number)
        shutil.copytree(JOBS / name / "job", job)
        changed = 0
        for path in [*job.glob("node2*"), *job.glob("node2*/**/*")]:
            if path.is_file():
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
                path.write_text(shifted(text, seconds), encoding="utf-8", errors="surrogateescape")
                changed += shifted(text, seconds) != text
        if not changed:
            pytest.skip("this job has no stamps of the second host")
        assert answer(triage.ingest(job)) == usual, f"with node2's clock {seconds} s ahead"
