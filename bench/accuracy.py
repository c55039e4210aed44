"""Measure how often triage is right on composed jobs and on recorded ones, and write docs/accuracy.md.

    python bench/accuracy.py all [DRESSINGS]     all cells, each in so many dressings (all of them if not stated), and
                                                 the samples in all dressings: writes docs/accuracy.md, and
                                                 prints the same as `look`
    python bench/accuracy.py look [WORDS ...]    one job a cell; prints each miss of the cells that may be looked at,
                                                 and for the held-out ones only the totals
    python bench/accuracy.py dressed [WORDS ...] the samples in all dressings
    python bench/accuracy.py rules               what each rule changes
    python bench/accuracy.py show FAULT LAYOUT DRESSING SEED DIRECTORY
                                                 writes one job, unless its cell is held out

WORDS restrict the faults and layouts (or samples) to those whose names contain one; `seed=3` draws other jobs. A cell
is a fault in a layout (triage.testing.composer). Cells that are held out are never looked at while rules are written:
that is what makes their numbers an estimate for jobs that nobody here has seen.
"""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from accuracy_page import Dressed, Outcome, page, totals  # noqa: E402
from public_cases import read_cases, table_rows  # noqa: E402
from rule_effects import effects_on, measure_effects, measure_hang, read_jobs, rule_rows  # noqa: E402

import triage  # noqa: E402
from tests.shared_catalog import OPTIONS, share_catalog  # noqa: E402
from triage.model import Diagnosis  # noqa: E402
from triage.testing import schedules  # noqa: E402
from triage.testing.composer import Plan, compose, is_held_out, judge, list_cells  # noqa: E402
from triage.testing.composer.dressings import DRESSINGS  # noqa: E402
from triage.testing.composer.model import Expected  # noqa: E402
from triage.testing.composer.recorded import dress_recorded  # noqa: E402

HANGS_OF_A_CELL = 2
SAMPLES = ROOT / "samples" / "jobs"
T = TypeVar("T")
R = TypeVar("R")


def plan_jobs(number: int, seed: int = 0, filters: Sequence[str] = ()) -> Iterator[Plan]:
    """Yield plans: each cell in so many dressings, which change from cell to cell."""
    for index, (fault, layout) in enumerate(list_cells()):
        if filters and not any(part in f"{fault}\0{layout}" for part in filters):
            continue
        for step in range(number):
            dressing = DRESSINGS[(index * 7 + seed + step) % len(DRESSINGS)]
            yield Plan(fault, layout, dressing.name, seed)


def run_plan(plan: Plan) -> Outcome:
    """Compose the job, diagnose it, and judge the answer."""
    job = compose(plan)
    with tempfile.TemporaryDirectory() as scratch:
        diagnosis = triage.ingest(job.write(Path(scratch) / "job"), options=OPTIONS)
    return Outcome(plan, judge(job.expected, diagnosis), _wanted(job.expected), _describe(diagnosis))


def run_sample(job: Path) -> Outcome:
    """Diagnose a sample and judge the answer by its truth."""
    truth = yaml.safe_load((job / "TRUTH.yaml").read_text(encoding="utf-8"))
    ranks = None if truth["root_ranks"] is None else frozenset(truth["root_ranks"])
    verdicts = frozenset(truth["verdict"].split("|"))
    expected = Expected(verdicts, frozenset(truth["root"]), ranks, None, ranks or frozenset(), frozenset())
    diagnosis = triage.ingest(job / "job", options=OPTIONS)
    judgement = dataclasses.replace(judge(expected, diagnosis), hosts=None)  # samples do not state hosts
    if ranks is None:
        judgement = dataclasses.replace(judgement, ranks=None)
    return Outcome(Plan(job.name, "recorded", "as written"), judgement, _wanted(expected), _describe(diagnosis))


def run_dressed(pair: tuple[Path, str]) -> Dressed:
    """Compare the answer for a sample in a dressing with that for the sample."""
    job, dressing = pair
    with tempfile.TemporaryDirectory() as scratch:
        directory = dress_recorded(job / "job", dressing, Path(scratch) / "job")
        dressed = _describe(triage.ingest(directory, options=OPTIONS), short=True)
    plain = _answer_as_recorded(job)
    return Dressed(job.name, dressing, "" if plain == dressed else f"{plain} became {dressed}")


@functools.cache
def _answer_as_recorded(job: Path) -> str:
    return _describe(triage.ingest(job / "job", options=OPTIONS), short=True)


def run_all(function: Callable[[T], R], items: Sequence[T], title: str) -> list[R]:
    """Return the results in the order of the items, from as many processes as there are cores."""
    results: list[R] = []
    started = time.monotonic()
    with share_catalog(), multiprocessing.get_context("fork").Pool(multiprocessing.cpu_count()) as pool:
        for result in pool.imap(function, items, chunksize=8):
            results.append(result)
            if sys.stderr.isatty() or len(results) % 1000 == 0:
                left = (time.monotonic() - started) / len(results) * (len(items) - len(results))
                print(f"\r{title}: {len(results)} of {len(items)}, {left:.0f} s left ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return results


def look(filters: Sequence[str], seed: int) -> None:
    """Print the misses of the cells that may be looked at, and the totals of both halves."""
    _print_misses(run_all(run_plan, list(plan_jobs(1, seed, filters)), "composed jobs"))


def _print_misses(outcomes: Sequence[Outcome]) -> None:
    for one in outcomes:
        if not one.is_held_out and not one.is_right:
            plan = one.plan
            print(f"{plan.fault} | {plan.layout} | {plan.dressing} | {plan.seed}")
            print(f"   wanted {one.wanted}\n   got    {one.got}")
    for name, flag in (("may be looked at", False), ("held out", True)):
        half = [one for one in outcomes if one.is_held_out == flag]
        print(f"{name}: {len(half)} jobs: {totals(half)}")


def look_at_dressed(filters: Sequence[str]) -> None:
    """Print each sample and dressing that change the answer."""
    pairs = [
        (job, dressing)
        for job, dressing in _dressed_pairs()
        if not filters or any(part in f"{job.name}\0{dressing}" for part in filters)
    ]
    results = run_all(run_dressed, pairs, "dressed samples")
    for one in results:
        if one.difference:
            print(f"{one.job} | {one.dressing} | {one.difference}")
    print(f"{sum(not one.difference for one in results)} of {len(results)} pairs give the same answer")


def write_page(number: int) -> None:
    """Measure all and write docs/accuracy.md."""
    samples = sorted(path.parent for path in SAMPLES.glob("*/TRUTH.yaml"))
    outcomes = run_all(run_plan, list(plan_jobs(number)), "composed jobs")
    _print_misses(outcomes)
    recorded = run_all(run_sample, samples, "samples")
    dressed = run_all(run_dressed, list(_dressed_pairs()), "dressed samples")
    version = triage.ingest(samples[0] / "job", options=OPTIONS)
    text = page(
        outcomes, recorded, dressed, measure_rules(), table_rows(read_cases()),
        date=time.strftime("%Y-%m-%d"), version=version.tool_version, catalog=version.catalog_version,
    )  # fmt: skip
    (ROOT / "docs" / "accuracy.md").write_text(text, encoding="utf-8")


def measure_rules() -> list[Sequence[Any]]:
    """Return the rows of the table of rules."""
    effects = run_all(measure_effects, list(plan_jobs(1)), "rules")
    hangs = [(fault, form, seed) for fault, form in schedules.list_cells() for seed in range(HANGS_OF_A_CELL)]
    effects += run_all(measure_hang, hangs, "rules, hung jobs")
    return rule_rows([*effects, *map(effects_on, read_jobs(SAMPLES))])


def print_rules() -> None:
    """Print the table of rules."""
    for row in measure_rules():
        print(*row, sep="\t")


def show(fault: str, layout: str, dressing: str, seed: str, directory: str) -> None:
    """Write one job of a cell that may be looked at."""
    if is_held_out(fault, layout):
        sys.exit(f"{fault} in {layout} is held out: nobody looks at it. Choose another layout.")
    job = compose(Plan(fault, layout, dressing, int(seed)))
    print(job.write(Path(directory)), job.expected)


def _dressed_pairs() -> Iterator[tuple[Path, str]]:
    for path in sorted(SAMPLES.glob("*/TRUTH.yaml")):
        yield from ((path.parent, dressing.name) for dressing in DRESSINGS[1:])


def _wanted(expected: Expected) -> str:
    ranks = "unknown" if expected.ranks is None else sorted(expected.ranks)
    hosts = "unknown" if expected.hosts is None else sorted(expected.hosts)
    roots = sorted(map(str, expected.roots))
    return f"{'|'.join(sorted(expected.verdicts))} {roots} ranks {ranks} of {sorted(expected.true_ranks)} hosts {hosts}"


def _describe(diagnosis: Diagnosis, short: bool = False) -> str:
    root = diagnosis.root_cause
    if root is None:
        return diagnosis.verdict
    text = f"{diagnosis.verdict} {root.signature or root.cluster} ranks {list(root.ranks)}"
    if short:
        return text
    beside = f" alongside {list(root.alongside)}" if root.alongside else ""
    return f"{text}{beside} hosts {list(root.hosts)} confidence {root.confidence:.2f}: {root.title[:90]}"


def main(arguments: Sequence[str]) -> Any:
    """Run one of the commands of the module's docstring."""
    match arguments:
        case ["look", *filters]:
            seed = next((int(part[5:]) for part in filters if part.startswith("seed=")), 0)
            return look([part for part in filters if not part.startswith("seed=")], seed)
        case ["dressed", *filters]:
            return look_at_dressed(filters)
        case ["show", fault, layout, dressing, seed_text, directory]:
            return show(fault, layout, dressing, seed_text, directory)
        case ["rules"]:
            return print_rules()
        case ["all"]:
            return write_page(len(DRESSINGS))
        case ["all", number]:
            return write_page(int(number))
    sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
