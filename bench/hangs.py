"""Measure how often triage is right on hung jobs that a simulator of schedules draws.

    python bench/hangs.py look [seed=N] [count=N] [fault=PART] [form=PART] [size=RANKS] [honest=1]
                                         `count` jobs of each cell that may be looked at; tables, and each wrong answer
                                         (with `honest=1` also those that say less than the files tell)
    python bench/hangs.py all [seed=N] [count=N] ...   both halves; of the held-out one only the totals
    python bench/hangs.py show SEED FAULT FORM DIRECTORY
                                         writes one job with its truth, unless its cell is held out

A cell is a fault in a form of evidence (triage.testing.schedules). An answer is right, honest (it does not claim what
it cannot know) or wrong (it claims something else with confidence 0.7 or more).
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import triage  # noqa: E402
from tests.shared_catalog import OPTIONS, share_catalog  # noqa: E402
from triage.model import Diagnosis  # noqa: E402
from triage.testing.schedules import draw_job, is_held_out, judge_hang, list_cells  # noqa: E402
from triage.testing.schedules.jobs import truth_as_json  # noqa: E402
from triage.testing.schedules.truth import Truth  # noqa: E402

Cell = tuple[str, str, int, int | None]
"""Fault, form, seed, and the number of ranks or None if it is drawn."""


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """The judgement of one job. `names_place`: the answer states a number of a call in which the others wait."""

    fault: str
    form: str
    seed: int
    judgement: str
    is_tellable: bool
    names_place: bool
    wanted: str
    answer: str


def run_cell(cell: Cell) -> Result:
    """Draw a job, diagnose it and judge the answer."""
    job = draw_job(*cell)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            diagnosis = triage.ingest(job.write(Path(scratch) / "job"), options=OPTIONS)
        except Exception as error:  # a crash must not end the run
            return Result(*cell[:3], "wrong", job.truth.is_tellable, False, "", f"{type(error).__name__}: {error}")
    judgement = judge_hang(job.truth, diagnosis)
    return Result(
        *cell[:3], judgement, job.truth.is_tellable, _names_place(job.truth, diagnosis),
        f"{_describe_truth(job.truth)} in {job.kind} of {job.size}", _describe(diagnosis),
    )  # fmt: skip


def run_all(cells: Sequence[Cell]) -> list[Result]:
    """Return the results in the order of the cells, from as many processes as there are cores."""
    with share_catalog(), multiprocessing.get_context("fork").Pool(multiprocessing.cpu_count()) as pool:
        return list(pool.imap(run_cell, cells, chunksize=8))


def draw_cells(options: dict[str, str], has_held_out: bool) -> Iterator[Cell]:
    """Yield the jobs: the seeds from `seed` on of each cell whose names contain `fault` and `form`."""
    seed, count = int(options.get("seed", 0)), int(options.get("count", 2))
    size = int(options["size"]) if "size" in options else None
    for fault, form in list_cells():
        if options.get("fault", "") not in fault or options.get("form", "") not in form:
            continue
        if has_held_out or not is_held_out(fault, form):
            yield from ((fault, form, seed + step, size) for step in range(count))


def print_table(title: str, results: Sequence[Result], column: str) -> None:
    """Print a row for each fault or form: right and honest of those that can be told, and of the others; wrong."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for one in results:
        rows[getattr(one, column)][f"{one.judgement} {'tellable' if one.is_tellable else 'other'}"] += 1
    print(f"\n{title:22} tellable: right honest wrong   other: right honest wrong")
    for name, counts in rows.items():
        numbers = [counts[f"{kind} {half}"] for half in ("tellable", "other") for kind in ("right", "honest", "wrong")]
        print("{:32}{:6}{:7}{:6}          {:6}{:7}{:6}".format(name, *numbers))


def print_totals(name: str, results: Sequence[Result]) -> None:
    """Print the numbers that the work is measured by."""
    tellable = [one for one in results if one.is_tellable]
    right = sum(one.judgement == "right" for one in tellable)
    wrong = sum(one.judgement == "wrong" for one in results)
    places = sum(one.names_place for one in tellable if one.judgement == "right")
    print(
        f"{name}: {len(results)} jobs; of {len(tellable)} that can be told {right} right "
        f"({right / max(len(tellable), 1):.1%}), {places} of these name the number; "
        f"{wrong} wrong with confidence ({1000 * wrong / max(len(results), 1):.1f} of 1,000)"
    )


def look(options: dict[str, str], has_held_out: bool) -> None:
    """Print the tables and the wrong answers of the cells that may be looked at, and the totals."""
    started = time.monotonic()
    results = run_all(list(draw_cells(options, has_held_out)))
    visible = [one for one in results if not is_held_out(one.fault, one.form)]
    wanted = ("wrong", "honest") if "honest" in options else ("wrong",)
    for one in visible:
        if one.judgement in wanted and (one.is_tellable or one.judgement == "wrong"):
            print(f"{one.judgement}: {one.seed} {one.fault} {one.form}\n   wanted {one.wanted}\n   got    {one.answer}")
    print_table("fault", visible, "fault")
    print_table("form", visible, "form")
    print_totals("may be looked at", visible)
    if has_held_out:
        print_totals("held out", [one for one in results if is_held_out(one.fault, one.form)])
    print(f"{len(results) / (time.monotonic() - started):.1f} jobs a second")


def show(seed: str, fault: str, form: str, directory: str) -> None:
    """Write one job of a cell that may be looked at, and beside it (DIRECTORY.truth.json) its truth."""
    if is_held_out(fault, form):
        sys.exit(f"{fault} in {form} is held out: nobody looks at it. Choose another form.")
    job = draw_job(fault, form, int(seed))
    job.write(Path(directory))
    Path(f"{directory}.truth.json").write_text(truth_as_json(job), encoding="utf-8")
    print(truth_as_json(job))


def _names_place(truth: Truth, diagnosis: Diagnosis) -> bool:
    root = diagnosis.root_cause
    if root is None:
        return False
    text = " ".join((root.title, *root.why, *root.captures.values(), *(one.text for one in root.evidence)))
    return any(str(number) in text for _, number in truth.places)


def _describe_truth(truth: Truth) -> str:
    tellable = "tellable" if truth.is_tellable else "not tellable"
    hang = "hang" if truth.is_hang else "no hang"
    return f"{hang}, {tellable}, ranks {sorted(truth.guilty)} of {sorted(truth.allowed)} at {list(truth.places[:4])}"


def _describe(diagnosis: Diagnosis) -> str:
    root = diagnosis.root_cause
    if root is None:
        return diagnosis.verdict
    name = root.signature or root.cluster
    return f"{diagnosis.verdict} {name} ranks {list(root.ranks)} confidence {root.confidence:.2f}: {root.title[:120]}"


def main(arguments: Sequence[str]) -> Any:
    """Run one of the commands of the module's docstring."""
    match arguments:
        case ["look" | "all" as command, *parts]:
            return look(dict(part.partition("=")[::2] for part in parts), command == "all")
        case ["show", seed, fault, form, directory]:
            return show(seed, fault, form, directory)
    sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
