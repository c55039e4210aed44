"""Diagnose the recorded hangs and compare each diagnosis with the truth of plan.py.

    python samples/record/hangs/score.py build/hangs [--form dump --form pyspy] [--kind NAME] [-v]

right: the kind and the ranks, or `unknown` where this form cannot show the cause (in brackets: how many). honest: no
cause, although the form shows one. unsure: a wrong cause with a confidence below 0.7. wrong: one with 0.7 or more, or a
clean verdict.

Half of the kinds, by a hash of the name, is set aside: of those only the totals are printed. The python needs triage.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from plan import FORMS, HANGS, NEVER, NO_RANK, Hang, cannot_tell

import triage
from triage.model.diagnosis import Diagnosis
from triage.pipeline import Options

GRADES = ("right", "honest", "unsure", "wrong", "error")
SURE = 0.7


def is_set_aside(name: str) -> bool:
    """Return whether this kind is not to be looked at."""
    return hashlib.sha1(name.encode()).digest()[0] % 2 == 1


def grade(hang: Hang, form: str, diagnosis: Diagnosis) -> str:
    """Return one of GRADES."""
    root = diagnosis.root_cause
    if root is None:
        return _grade_unknown(hang, form) if diagnosis.verdict == "inconclusive" else "wrong"
    wrong = "wrong" if root.confidence >= SURE else "unsure"
    right_ranks = (*hang.ranks, *hang.more_ranks.get(form, ()))
    # DETAIL waits in a monitored barrier of its own before each call.
    ids = (*hang.ids, "torch.monitored-barrier-timeout") if form == "detail" and NEVER[0] in hang.ids else hang.ids
    if root.signature in ids:
        if tuple(sorted(root.ranks)) in right_ranks or (form in NO_RANK and not root.ranks):
            return "right"
        return wrong if root.ranks else _grade_unknown(hang, form)
    if root.signature is None or root.role == "symptom":
        return _grade_unknown(hang, form)
    return wrong


def _grade_unknown(hang: Hang, form: str) -> str:
    """Return the grade of an answer without a cause, or with the right kind and no rank."""
    return "right" if cannot_tell(hang, form) else "honest"


def is_place_named(hang: Hang, diagnosis: Diagnosis) -> bool:
    """Return whether the reasons name the group and the number of the call."""
    root = diagnosis.root_cause
    text = " ".join([*root.why, *(fact.text for fact in root.evidence)]) if root else ""
    return (hang.number is None or f"#{hang.number}" in text) and hang.group in text


def describe(diagnosis: Diagnosis) -> str:
    """Return verdict, root cause and the first reasons in one line."""
    root = diagnosis.root_cause
    if root is None:
        return diagnosis.verdict
    reasons = " / ".join(root.why[:3])
    return f"{diagnosis.verdict} {root.signature} {list(root.ranks)} {root.confidence:.2f} | {reasons}"[:330]


def recorded(jobs: Path, forms: list[str], kinds: list[str]) -> Iterator[tuple[Hang, str, Path]]:
    """Yield what was recorded of these forms and kinds; no kinds: all."""
    for hang in HANGS:
        if kinds and (hang.name not in kinds or is_set_aside(hang.name)):
            continue
        for form in forms:
            if (path := jobs / hang.name / form).is_dir():
                yield hang, form, path


def main() -> None:
    """Print the misses and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("-v", action="store_true", help="also print what is right")
    options = parser.parse_args()
    table = {False: defaultdict(Counter), True: defaultdict(Counter)}
    places, lines, began = Counter(), [], time.monotonic()
    for hang, form, path in recorded(options.jobs, options.form or list(FORMS), options.kind):
        try:
            diagnosis = triage.ingest(path, Options(workers=1))
            result, text = grade(hang, form, diagnosis), describe(diagnosis)
        except Exception as error:
            result, text = "error", repr(error)[:200]
        table[is_set_aside(hang.name)][form][result] += 1
        table[is_set_aside(hang.name)][form]["untold"] += result == "right" and cannot_tell(hang, form)
        if form in ("dump", "all") and result == "right" and form not in hang.silent:
            places[form, is_place_named(hang, diagnosis)] += 1
        if not is_set_aside(hang.name) and (options.v or result != "right"):
            truth = "cannot be told" if cannot_tell(hang, form) else f"{hang.ids[0]} {list(hang.ranks[0])}"
            lines.append((GRADES.index(result), f"{result:7}{hang.name:24}{form:20} truth {truth}; got {text}"))
    print(*(line for _, line in sorted(lines, reverse=True, key=lambda item: item[0])), sep="\n")
    for aside, title in ((False, "shown"), (True, "set aside")):
        print_table(title, table[aside])
    for form in ("dump", "all"):
        print(f"{form}: {places[form, True]} right answers name group and number, {places[form, False]} do not")
    print(f"{time.monotonic() - began:.0f} s")


def print_table(title: str, table: dict[str, Counter]) -> None:
    """Print the grades by form."""
    print(f"\n{title:22}" + "".join(f"{name:>8}" for name in GRADES) + "   of")
    rows = [(form, table[form]) for form in FORMS if table.get(form)]
    for name, row in (*rows, ("all forms", sum((row for _, row in rows), Counter()))):
        total = sum(row[grade] for grade in GRADES)
        print(f"{name:22}" + "".join(f"{row[grade]:8}" for grade in GRADES) + f"{total:5}  ({row['untold']})")


if __name__ == "__main__":
    main()
