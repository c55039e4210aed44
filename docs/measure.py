"""What the rules of triage/diagnose are worth on the samples, and how far its confidence can be trusted: writes
docs/reasoning.md.

`make reasoning` runs it; it takes a minute, so `make docs` does not. By hand, over other jobs with a TRUTH.yaml or
TRUTH.json beside `job/`:

    python docs/measure.py /path/to/jobs

`--fit` counts anew what the scores of triage/diagnose/confidence.py are worth, on the samples and on such jobs, and
writes
triage/diagnose/calibration.txt:

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
from triage import pipeline
from triage.catalog.load import load
from triage.catalog.match import Matcher
from triage.catalog.model import Catalog
from triage.diagnose import Result, calibration, confidence, diagnose, report
from triage.diagnose.calibration import calibrated, fitted
from triage.diagnose.rules import READING, every_rule, name_of
from triage.model.diagnosis import Finding
from triage.model.evidence import Evidence
from triage.ranks.identity import JobMap

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples" / "jobs"
BUCKETS = ((0.1, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.0))


READ = frozenset(map(name_of, READING))


@dataclass(frozen=True)
class Case:
    """A job as the reasoning gets it, with its truth."""

    name: str
    truth: dict[str, Any]
    evidence: Sequence[Evidence]
    words: Sequence[Any]
    job: JobMap
    catalog: Catalog
    matcher: Matcher

    def solve(self, evidence: Sequence[Evidence] | None = None, without: frozenset[str] = frozenset()) -> Result:
        return diagnose(
            self.evidence if evidence is None else evidence, self.words, self.job, self.catalog, without, self.matcher
        )


def cases(directory: Path = SAMPLES) -> list[Case]:
    """All jobs of a directory, read once."""
    found: list[Case] = []
    matcher = Matcher(load())
    for path in sorted([*directory.glob("*/TRUTH.yaml"), *directory.glob("*/TRUTH.json")]):
        given: list[tuple[Any, ...]] = []

        def record(*arguments: Any, given: list[tuple[Any, ...]] = given) -> Result:
            given.append(arguments)
            return diagnose(*arguments)

        with mock.patch.object(pipeline, "diagnose", record):
            triage.ingest(path.parent / "job")
        found.append(Case(path.parent.name, _truth(path), *given[-1], matcher))
    return found


def _truth(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return dict(json.loads(path.read_text(encoding="utf-8")))
    import yaml

    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def right(case: Case, result: Result, *, near: bool = False) -> bool:
    """Is the answer that of the truth? `near`: what the true root leads to will do, on the right ranks."""
    verdict, root = report.root_cause(result)
    if not near and verdict not in case.truth["verdict"].split("|"):
        return False
    if root is None:
        return case.truth["verdict"] == "clean"
    return _named(case, root, near) and (
        case.truth["root_ranks"] is None or set(root.ranks) == set(case.truth["root_ranks"])
    )


def _named(case: Case, root: Finding, near: bool) -> bool:
    if root.signature in case.truth["root"]:
        return True
    if near and None in case.truth["root"]:
        return True  # what an unknown failure leads to, no catalog says: the ranks must do
    known = {signature.id: signature for signature in case.catalog.signatures}
    return near and any(
        edge.signature == root.signature
        for name in case.truth["root"]
        if name in known
        for edge in known[name].leads_to
    )


def worth(given: Sequence[Case]) -> list[tuple[str, str, str, int, int]]:
    """(stage, rule, what it says, jobs in which its absence changes root, ranks, explanations or confidence, jobs that
    are wrong without it).
    """
    whole = {case.name: case.solve() for case in given}
    usual = {name: _answer(result) for name, result in whole.items()}
    rows = []
    for stage, name, says in every_rule():
        changed = wrong = 0
        for case in given:
            # A rule that did nothing there (those of the text are not watched) is not missed.
            watched = name not in READ and name not in whole[case.name].spoken
            result = whole[case.name] if watched else case.solve(without=frozenset((name,)))
            changed += _answer(result) != usual[case.name]
            wrong += not right(case, result)
        rows.append((stage, name, says, changed, wrong))
    return rows


def _answer(result: Result) -> tuple[Any, ...]:
    verdict, root = report.root_cause(result)
    links = sorted((one.id, tuple(one.explained_by)) for one in result.candidates)
    return (verdict, root and (root.signature, root.cluster, root.ranks, root.confidence, root.why), links)


def damaged(case: Case, result: Result) -> Iterator[Sequence[Evidence]]:
    """The job with something lost: each of its first six files, the launcher's words, the kernel's and scheduler's, all
    stamps, the root's lines.
    """
    from dataclasses import replace

    for source in sorted({fact.source for fact in case.evidence})[:6]:
        yield [fact for fact in case.evidence if fact.source != source]
    losses: tuple[Callable[[Evidence], bool], ...] = (
        lambda fact: fact.kind == "exit",
        lambda fact: fact.kind in ("kernel", "scheduler"),
        lambda fact: fact.kind == "exception" and fact.origin.rank is None,
    )
    for lost in losses:
        if any(map(lost, case.evidence)):
            yield [fact for fact in case.evidence if not lost(fact)]
    yield [replace(fact, origin=replace(fact.origin, time=None)) for fact in case.evidence]
    if result.verdict.root is not None:
        places = {(fact.source, fact.end) for fact in result.verdict.root.facts if fact.kind != "inference"}
        if places:
            yield [fact for fact in case.evidence if (fact.source, fact.end) not in places]


def reliability(given: Sequence[Case]) -> tuple[list[tuple[str, int, int, float]], int, int]:
    """(bucket, claims, right ones, mean confidence) over whole and damaged jobs; and how often no cause was claimed,
    and nothing was found.
    """
    claims: dict[tuple[float, float], list[tuple[bool, float]]] = {bucket: [] for bucket in BUCKETS}
    silent: Counter[str] = Counter()
    for case in given:
        whole = case.solve()
        for result, near in [(whole, False), *((case.solve(evidence), True) for evidence in damaged(case, whole))]:
            _, root = report.root_cause(result)
            if root is None or (root.signature is None and root.cluster is None):
                silent["symptoms" if root else "clean"] += 1
                continue
            bucket = next(bucket for bucket in BUCKETS if root.confidence < bucket[1])
            claims[bucket].append((right(case, result, near=near), root.confidence))
    rows = [
        (f"{low:.1f} to {high:.1f}", len(told), sum(ok for ok, _ in told), sum(sure for _, sure in told) / len(told))
        for (low, high), told in claims.items()
        if told
    ]
    return rows, silent["symptoms"], silent["clean"]


def claims_of(given: Sequence[Case]) -> list[tuple[str, float, bool]]:
    """(job, score, was the answer right) of whole and damaged jobs, where a cause was claimed."""
    found = []
    with mock.patch.object(confidence, "calibrated", lambda score: score), mock.patch.object(confidence, "SINGLE", 1.0):
        for case in given:
            whole = case.solve()
            for result, near in [(whole, False), *((case.solve(evidence), True) for evidence in damaged(case, whole))]:
                _, root = report.root_cause(result)
                if root is not None and (root.signature or root.cluster):
                    found.append((case.name, root.confidence, right(case, result, near=near)))
    return found


def cross_validated(claims: Sequence[tuple[str, float, bool]]) -> list[tuple[str, int, int, float]]:
    """The table of `reliability`, each job told by a calibration that has not seen it (a tenth of the jobs at a time)."""
    names = sorted({name for name, _, _ in claims})
    told = []
    for fold in range(10):
        held = set(names[fold::10])
        table = fitted((score, good) for name, score, good in claims if name not in held)
        told += [(calibrated(score, table), good) for name, score, good in claims if name in held]
    return _buckets(told)


def _buckets(told: Sequence[tuple[float, bool]]) -> list[tuple[str, int, int, float]]:
    rows = []
    for low, high in BUCKETS:
        here = [(share, good) for share, good in told if share < high and (share >= low or low == BUCKETS[0][0])]
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
    given = [*cases(), *(cases(more) if more else [])]
    claims = claims_of(given)
    table = fitted((score, good) for _, score, good in claims)
    rows = "".join(f"{score:.3f} {share:.3f}\n" for score, share in table)
    said = f"# Score of confidence.py, share of the answers with such a score that were right. Written by docs/measure.py --fit\n# from {len(claims)} claims on {len(given)} jobs and damaged copies of them; do not edit.\n"
    calibration.TABLE.write_text(said + rows, encoding="utf-8")
    for name, number, good, mean in cross_validated(claims):
        print(f"cross-validated {name}: {number} claims, {good} right ({good / number:.2f}), told {mean:.2f}")


HEAD = """# How a cause is found

Written by `make reasoning` from `triage/diagnose/` and the samples; do not edit.

Findings are nodes; `leads_to` of the signatures and the rules below make the edges. The root is what explains most and is explained by
nothing; several independent roots are all told. Every choice leaves a sentence in `why`, the losers too.

## Rules, in order

The rules of a stage are asked in this order. *Changed*: sample jobs in which the answer (root, ranks, explanations, confidence or its reasons)
is another when the rule is left out. *Wrong*: sample jobs that are wrong without it. A rule with two zeros is proved by unit tests alone, and
its worth on whole jobs is not shown.

| stage | rule | what it says | changed | wrong |
|---|---|---|---|---|
"""
CONFIDENCE = """
## Confidence

{jobs} sample jobs, whole and damaged (a file, the launcher's words, the kernel's, all stamps, or the lines of the root taken away): how often a
cause was claimed with a confidence, and how often the claim was right. In a damaged job what the true root leads to, on the right ranks, counts
as right.

| confidence | claims | right | share right | told on average |
|---|---|---|---|---|
{rows}
In {symptoms} cases no cause was claimed (symptoms only), in {clean} nothing was found.

The score of `triage/diagnose/confidence.py` is turned into what is told by `calibration.txt`, a monotone table that was fitted to such claims on
these and on 39 other jobs, and where nothing of another origin confirms a claim, what is above 0.7 is told as 0.7 to 0.79, which is not yet high. The table
above flatters itself, for it is told by these very jobs. The next one does not: each job is told by a table fitted without it and without a
tenth of the other jobs (and without that limit).

| confidence | claims | right | share right | told on average |
|---|---|---|---|---|
{crossed}
The samples and the rules were written by the same people, and half of the samples by scripts: expect less on your own jobs.
"""


def page(given: Sequence[Case]) -> str:
    """The whole document."""
    rules = "".join(
        f"| {stage} | `{name}` | {says} | {changed} | {wrong} |\n" for stage, name, says, changed, wrong in worth(given)
    )
    told, symptoms, clean = reliability(given)
    rows = "".join(
        f"| {bucket} | {number} | {ok} | {ok / number:.2f} | {mean:.2f} |\n" for bucket, number, ok, mean in told
    )
    crossed = "".join(
        f"| {bucket} | {number} | {ok} | {ok / number:.2f} | {mean:.2f} |\n"
        for bucket, number, ok, mean in cross_validated(claims_of(given))
    )
    return HEAD + rules + CONFIDENCE.format(jobs=len(given), rows=rows, crossed=crossed, symptoms=symptoms, clean=clean)


def main() -> None:
    if sys.argv[1:2] == ["--fit"]:
        fit(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    elif len(sys.argv) > 1:
        print(page(cases(Path(sys.argv[1]))))
    else:
        (ROOT / "docs" / "reasoning.md").write_text(page(cases()), encoding="utf-8")


if __name__ == "__main__":
    main()
