"""What each rule of triage/diagnose changes, and what its scores of confidence are worth, on composed and hung jobs.

A worker process diagnoses a job once as usual, and again without each rule that fired.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from measure import READ, MeasuredJob, _answer, claims_of, is_right, read_jobs  # noqa: E402

import triage  # noqa: E402
from tests.shared_catalog import OPTIONS  # noqa: E402
from triage.catalog.match import Matcher  # noqa: E402
from triage.diagnose import ReasoningResult, diagnose, reason, report  # noqa: E402
from triage.diagnose.rules import list_rules  # noqa: E402
from triage.pipeline import setting_causes  # noqa: E402
from triage.testing.composer import Plan, compose  # noqa: E402
from triage.testing.composer.judge import judge_answer  # noqa: E402
from triage.testing.composer.model import Expected  # noqa: E402
from triage.testing.schedules import draw_job, judge_root  # noqa: E402


@dataclass(frozen=True, slots=True)
class RuleEffects:
    """Of one job: the rules that fired, those without which the answer changes, and without which it is wrong."""

    job: str
    fired: frozenset[str]
    changed: frozenset[str]
    needed: frozenset[str]


def measure_effects(plan: Plan) -> RuleEffects:
    """Diagnose the job of a plan with and without each rule that fired."""
    return effects_on(read_composed(plan))


def measure_hang(cell: tuple[str, str, int]) -> RuleEffects:
    """Diagnose the hung job of (fault, form, seed) with and without each rule that fired."""
    job = draw_job(*cell)
    solved = _record(job.write, " ".join(map(str, cell)))
    return effects_on(dataclasses.replace(solved, hang=job.truth))


def effects_on(job: MeasuredJob) -> RuleEffects:
    """Diagnose a job with and without each rule that fired."""
    whole = job.solve()
    usual, right = _answer(whole), _is_right(job, whole)
    changed, needed = set[str](), set[str]()
    for _, name, _ in list_rules():
        if name in whole.fired_rules or name in READ:
            result = job.solve(without=frozenset((name,)))
            if _answer(result) != usual:
                changed.add(name)
                needed |= {name} if right and not _is_right(job, result) else set()
    return RuleEffects(job.name, whole.fired_rules, frozenset(changed), frozenset(needed))


def _is_right(job: MeasuredJob, result: ReasoningResult) -> bool:
    """Whether verdict, root and ranks are right, and the hosts where the truth of a composed job has them."""
    if job.expected is None and job.hang is None:
        return is_right(job, result)
    verdict, root = report.decide_verdict(result)
    if job.hang is not None:
        return judge_root(job.hang, root) == "right"
    assert job.expected is not None
    findings = [one for part in report.build_findings(result) for one in part] if root and root.alongside else []
    return judge_answer(job.expected, verdict, root, findings).is_right


def measure_claim(plan: Plan) -> list[tuple[str, float, bool]]:
    """Return (job, score, was the answer right) of the job, if a cause was claimed."""
    return claims_of([read_composed(plan)], with_damage=False)


def read_composed(plan: Plan) -> MeasuredJob:
    """Return the job of a plan as the reasoning gets it, with its truth."""
    job = compose(plan)
    solved = _record(job.write, _name(plan))
    return dataclasses.replace(solved, truth=_truth(job.expected), expected=job.expected)


def _record(write: Callable[[Path], Path], name: str) -> MeasuredJob:
    """Return a job, without its truth, as the reasoning gets it."""
    calls: list[tuple[Any, ...]] = []

    def record(*arguments: Any) -> ReasoningResult:
        calls.append(arguments)
        return diagnose(*arguments)

    with tempfile.TemporaryDirectory() as scratch, mock.patch.object(setting_causes, "diagnose", record):
        triage.ingest(write(Path(scratch) / "job"), options=OPTIONS)
    evidence, activities, map_, catalog = calls[-1][:4]
    matcher: Matcher = reason.Matcher(catalog)
    return MeasuredJob(name, {}, evidence, activities, map_, catalog, matcher)


def rule_rows(effects: Iterable[RuleEffects]) -> list[Sequence[Any]]:
    """Return (stage, rule, fired, quiet, changed, needed) of each rule, in order."""
    every = list(effects)
    return [
        (
            stage,
            f"`{name}`",
            sum(name in one.fired for one in every),
            sum(name not in one.fired for one in every),
            sum(name in one.changed for one in every),
            sum(name in one.needed for one in every),
        )
        for stage, name, _ in list_rules()
    ]


def _name(plan: Plan) -> str:
    return f"{plan.fault} {plan.layout} {plan.dressing} {plan.seed}"


def _truth(expected: Expected) -> dict[str, Any]:
    ranks = None if expected.ranks is None else sorted(expected.ranks)
    return {"verdict": "|".join(sorted(expected.verdicts)), "root": list(expected.roots), "root_ranks": ranks}


__all__ = [
    "RuleEffects",
    "effects_on",
    "measure_claim",
    "measure_effects",
    "measure_hang",
    "read_composed",
    "read_jobs",
    "rule_rows",
]
