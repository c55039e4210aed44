"""Write docs/reasoning.md: what each rule of triage/diagnose is worth on the samples, and how good its confidence is.

`make reasoning` runs it; it takes a minute, so `make docs` does not. For other jobs with a TRUTH.yaml or TRUTH.json
beside `job/`, which are printed:

    python docs/measure.py /path/to/jobs

`--fit` measures again what the scores of triage/diagnose/confidence.py are worth, on the samples, on composed jobs
that are not held out and on such jobs, and writes triage/diagnose/calibration.txt:

    python docs/measure.py --fit [/path/to/jobs]
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import triage
from triage.catalog.load import load
from triage.catalog.match import Matcher
from triage.catalog.model import Catalog
from triage.diagnose import ReasoningResult, calibration, confidence, diagnose, report
from triage.diagnose.calibration import calibrate, fit_table
from triage.diagnose.rules import READING, list_rules, name_of
from triage.model.diagnosis import Finding
from triage.model.evidence import Evidence
from triage.pipeline import setting_causes
from triage.ranks.identity import JobMap
from triage.testing.composer import is_held_out
from triage.testing.composer.model import Expected
from triage.testing.schedules.truth import Truth

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples" / "jobs"
BUCKETS = ((0.1, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.0))


READ = frozenset(map(name_of, READING))


@dataclass(frozen=True)
class MeasuredJob:
    """A job as the reasoning gets it, with its truth; `expected` is that of a composed job, `hang` of a hung one."""

    name: str
    truth: dict[str, Any]
    evidence: Sequence[Evidence]
    activities: Sequence[Any]
    job: JobMap
    catalog: Catalog
    matcher: Matcher
    expected: Expected | None = None
    hang: Truth | None = None

    def solve(
        self, evidence: Sequence[Evidence] | None = None, without: frozenset[str] = frozenset()
    ) -> ReasoningResult:
        return diagnose(
            self.evidence if evidence is None else evidence,
            self.activities,
            self.job,
            self.catalog,
            without,
            self.matcher,
        )


def read_jobs(directory: Path = SAMPLES) -> list[MeasuredJob]:
    """Return all jobs of a directory, read once."""
    jobs: list[MeasuredJob] = []
    matcher = Matcher(load())
    for path in sorted([*directory.glob("*/TRUTH.yaml"), *directory.glob("*/TRUTH.json")]):
        calls: list[tuple[Any, ...]] = []

        def record(*arguments: Any, calls: list[tuple[Any, ...]] = calls) -> ReasoningResult:
            calls.append(arguments)
            return diagnose(*arguments)

        with mock.patch.object(setting_causes, "diagnose", record):
            triage.ingest(path.parent / "job")
        jobs.append(MeasuredJob(path.parent.name, _read_truth(path), *calls[-1], matcher))
    return jobs


def _read_truth(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return dict(json.loads(path.read_text(encoding="utf-8")))
    import yaml

    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def is_right(job: MeasuredJob, result: ReasoningResult, *, near: bool = False) -> bool:
    """Whether the answer is the truth. `near`: a consequence of the true root on the right ranks counts too."""
    verdict, root = report.decide_verdict(result)
    if not near and verdict not in job.truth["verdict"].split("|"):
        return False
    if root is None:
        return job.truth["verdict"] == "clean"
    return _names_root(job, root, near) and (
        job.truth["root_ranks"] is None or set(root.ranks) == set(job.truth["root_ranks"])
    )


def _names_root(job: MeasuredJob, root: Finding, near: bool) -> bool:
    if root.signature in job.truth["root"]:
        return True
    if near and None in job.truth["root"]:
        return True  # no catalog has the consequences of an unknown failure: the ranks decide
    known = {signature.id: signature for signature in job.catalog.signatures}
    return near and any(
        edge.signature == root.signature
        for name in job.truth["root"]
        if name in known
        for edge in known[name].causal_edges
    )


def measure_rules(jobs: Sequence[MeasuredJob]) -> list[tuple[str, str, str, int, int]]:
    """Return (stage, rule, what it says, jobs that change without it, jobs that are wrong without it).

    A change is one of root, ranks, explanations or confidence.
    """
    whole = {job.name: job.solve() for job in jobs}
    usual = {name: _answer(result) for name, result in whole.items()}
    rows = []
    for stage, name, says in list_rules():
        changed = wrong = 0
        for job in jobs:
            # Without a rule that did not fire nothing changes; whether those that read the text fired is not known.
            unused = name not in READ and name not in whole[job.name].fired_rules
            result = whole[job.name] if unused else job.solve(without=frozenset((name,)))
            changed += _answer(result) != usual[job.name]
            wrong += not is_right(job, result)
        rows.append((stage, name, says, changed, wrong))
    return rows


def _answer(result: ReasoningResult) -> tuple[Any, ...]:
    verdict, root = report.decide_verdict(result)
    links = sorted((one.id, tuple(one.explained_by)) for one in result.candidates)
    return (verdict, root and (root.signature, root.cluster, root.ranks, root.hosts, root.confidence, root.why), links)


def damaged(job: MeasuredJob, result: ReasoningResult) -> Iterator[Sequence[Evidence]]:
    """Yield the job with something lost: each of its first six files, the launcher's lines, those of kernel and
    scheduler, all timestamps, the lines of the root cause.
    """
    from dataclasses import replace

    for source in sorted({fact.source for fact in job.evidence})[:6]:
        yield [fact for fact in job.evidence if fact.source != source]
    losses: tuple[Callable[[Evidence], bool], ...] = (
        lambda fact: fact.kind == "exit",
        lambda fact: fact.kind in ("kernel", "scheduler"),
        lambda fact: fact.kind == "exception" and fact.origin.rank is None,
    )
    for lost in losses:
        if any(map(lost, job.evidence)):
            yield [fact for fact in job.evidence if not lost(fact)]
    yield [replace(fact, origin=replace(fact.origin, time=None)) for fact in job.evidence]
    if result.verdict.root is not None:
        places = {(fact.source, fact.end) for fact in result.verdict.root.facts if fact.kind != "inference"}
        if places:
            yield [fact for fact in job.evidence if (fact.source, fact.end) not in places]


def measure_confidence(jobs: Sequence[MeasuredJob]) -> tuple[list[tuple[str, int, int, float]], int, int]:
    """Return (bucket, claims, right ones, mean confidence) over whole and damaged jobs.

    Then how often no cause was claimed, and how often nothing was found.
    """
    claims: dict[tuple[float, float], list[tuple[bool, float]]] = {bucket: [] for bucket in BUCKETS}
    unclaimed: Counter[str] = Counter()
    for job in jobs:
        for result, near in _results(job):
            _, root = report.decide_verdict(result)
            if root is None or (root.signature is None and root.cluster is None):
                unclaimed["symptoms" if root else "unrecognised"] += 1
                continue
            bucket = next(bucket for bucket in BUCKETS if root.confidence < bucket[1])
            claims[bucket].append((is_right(job, result, near=near), root.confidence))
    rows = [
        (f"{low:.1f} to {high:.1f}", len(made), sum(ok for ok, _ in made), sum(share for _, share in made) / len(made))
        for (low, high), made in claims.items()
        if made
    ]
    return rows, unclaimed["symptoms"], unclaimed["unrecognised"]


def _results(job: MeasuredJob) -> Iterator[tuple[ReasoningResult, bool]]:
    """Yield the results of the whole job and of damaged copies, and whether a consequence counts as right."""
    whole = job.solve()
    yield whole, False
    for evidence in damaged(job, whole):
        yield job.solve(evidence), True


def claims_of(jobs: Sequence[MeasuredJob], *, with_damage: bool = True) -> list[tuple[str, float, bool]]:
    """Return (job, score, was the answer right) of whole and damaged jobs in which a cause was claimed."""
    claims = []
    with mock.patch.object(confidence, "calibrate", lambda score: score), mock.patch.object(confidence, "SINGLE", 1.0):
        for job in jobs:
            for result, near in _results(job) if with_damage else [(job.solve(), False)]:
                _, root = report.decide_verdict(result)
                if root is not None and (root.signature or root.cluster):
                    claims.append((job.name, root.confidence, is_right(job, result, near=near)))
    return claims


def cross_validated(claims: Sequence[tuple[str, float, bool]]) -> list[tuple[str, int, int, float]]:
    """Return the table of `measure_confidence`, each job with a calibration fitted without it (in ten parts)."""
    names = sorted({name for name, _, _ in claims})
    shares = []
    for fold in range(10):
        held = set(names[fold::10])
        table = fit_table((score, good) for name, score, good in claims if name not in held)
        shares += [(calibrate(score, table), good) for name, score, good in claims if name in held]
    return _buckets(shares)


def _buckets(shares: Sequence[tuple[float, bool]]) -> list[tuple[str, int, int, float]]:
    rows = []
    for low, high in BUCKETS:
        here = [(share, good) for share, good in shares if share < high and (share >= low or low == BUCKETS[0][0])]
        if here:
            rows.append(
                (
                    f"{low} to {high}",
                    len(here),
                    sum(good for _, good in here),
                    sum(share for share, _ in here) / len(here),
                )
            )
    return rows


def fit(more: Path | None) -> None:
    """Write calibration.txt."""
    jobs = [*read_jobs(), *(read_jobs(more) if more else [])]
    claims = claims_of(jobs) + _composed_claims()
    table = fit_table((score, good) for _, score, good in claims)
    rows = "".join(f"{score:.3f} {share:.3f}\n" for score, share in table)
    head = (
        "# Score of confidence.py, share of the answers with such a score that were right. Written by "
        "docs/measure.py --fit\n"
        f"# from {len(claims)} claims on {len(jobs)} jobs and damaged copies of them, and on composed jobs that are "
        "not held out; do not edit.\n"
    )
    calibration.TABLE.write_text(head + rows, encoding="utf-8")
    for name, number, good, mean in cross_validated(claims):
        print(f"cross-validated {name}: {number} claims, {good} right ({good / number:.2f}), shown {mean:.2f}")


def _composed_claims() -> list[tuple[str, float, bool]]:
    """Return the claims on composed jobs that are not held out, one of each cell."""
    sys.path.insert(0, str(ROOT / "bench"))
    from accuracy import plan_jobs, run_all
    from rule_effects import measure_claim

    plans = [plan for plan in plan_jobs(1) if not is_held_out(plan.fault, plan.layout)]
    return [claim for claims in run_all(measure_claim, plans, "composed jobs") for claim in claims]


HEAD = """# How a cause is found

Written by `make reasoning` from `triage/diagnose/` and the sample jobs; do not edit.

The findings of a job form a graph: `leads_to` of the signatures and the rules below draw edges from causes to
consequences. The root cause is the candidate that nothing explains and that comes first by the rules of the stage
*choice*. The report shows the other candidates too, and each finding has the reasons in `why`.

## Rules, in order

| stage | what its rules do |
|---|---|
| attribution | find the rank of evidence that its line does not name |
| inference | add evidence that follows from comparing the ranks |
| weighing | add edges between findings, and set aside findings that cannot be the cause here |
| choice | choose among the candidates that nothing explains; the first difference decides |

The rules of a stage run in this order. *Changed*: number of sample jobs in which the answer (root cause, ranks,
explanations, confidence or reasons) changes without the rule. *Wrong*: number of sample jobs with a wrong answer
without it. Unit tests alone test a rule with two zeros; its effect on whole jobs is unknown.

| stage | rule | what it says | changed | wrong |
|---|---|---|---|---|
"""
CONFIDENCE = """
## Confidence

The confidence of a diagnosis is the share of answers with this number that were right on jobs whose true cause is
known. It was measured on {jobs} sample jobs and on damaged copies of them: without one of the files, without the lines
of the launcher, the kernel or the scheduler, without timestamps, or without the lines of the root cause. A claim is an
answer that names a cause. In a damaged copy, a consequence of the true cause on the right ranks counts as right too.

| confidence | claims | right | share right | mean confidence |
|---|---|---|---|---|
{rows}
In {symptoms} more cases the answer was `SYMPTOMS ONLY`, in {unrecognised} no failure was recognised.

`triage/diagnose/confidence.py` computes a score: by the kind of evidence, with a bonus for each independent source and
a deduction for each equally strong candidate. `calibration.txt`, a monotone table, turns the score into the confidence.
It was fitted to the claims on these jobs, on 39 others, and on composed jobs ([accuracy.md](accuracy.md)). If only one
source shows the cause, a confidence above 0.7 becomes 0.7 to 0.79, which is not high.

The table above is optimistic, because the calibration was fitted to the same jobs. The next table is cross-validated:
the confidence of each job comes from a calibration that was fitted without it and without a tenth of the other jobs. It
leaves out the limit for a single source.

| confidence | claims | right | share right | mean confidence |
|---|---|---|---|---|
{crossed}
The same people wrote the samples and the rules, and scripts wrote half of the samples: expect less on your own jobs.
"""


def page(jobs: Sequence[MeasuredJob]) -> str:
    """Return the whole document."""
    rules = "".join(
        f"| {stage} | `{name}` | {says} | {changed} | {wrong} |\n"
        for stage, name, says, changed, wrong in measure_rules(jobs)
    )
    claims, symptoms, unrecognised = measure_confidence(jobs)
    rows = "".join(
        f"| {bucket} | {number} | {ok} | {ok / number:.2f} | {mean:.2f} |\n" for bucket, number, ok, mean in claims
    )
    crossed = "".join(
        f"| {bucket} | {number} | {ok} | {ok / number:.2f} | {mean:.2f} |\n"
        for bucket, number, ok, mean in cross_validated(claims_of(jobs))
    )
    return (
        HEAD
        + rules
        + CONFIDENCE.format(jobs=len(jobs), rows=rows, crossed=crossed, symptoms=symptoms, unrecognised=unrecognised)
    )


def main() -> None:
    if sys.argv[1:2] == ["--fit"]:
        fit(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    elif len(sys.argv) > 1:
        print(page(read_jobs(Path(sys.argv[1]))))
    else:
        (ROOT / "docs" / "reasoning.md").write_text(page(read_jobs()), encoding="utf-8")


if __name__ == "__main__":
    main()
