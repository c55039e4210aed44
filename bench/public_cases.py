"""Score the diagnosis of failures that people posted in public, and keep the answers in bench/public-cases.tsv.

    python bench/public_cases.py DIRECTORY [CATEGORY ...]

The texts are not in the repository: DIRECTORY/KEY.txt holds the text of one address, KEY being the first 16 digits of
the SHA-256 of the address. Each row of the table has the address, what an expert with only this text accepts as right,
and what is still honest; both were written before the text was diagnosed. Half of the cases, by a digit of that hash,
are set aside: nobody who writes rules looks at their texts, and only their numbers are printed. A case without its text
keeps its last answer; the numbers of those that were diagnosed now are printed too.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

import triage  # noqa: E402
from tests.shared_catalog import OPTIONS, share_catalog  # noqa: E402

TABLE = ROOT / "bench" / "public-cases.tsv"
SURE = 0.7
RESULTS = ("right", "acceptable", "unsure and wrong", "sure and wrong", "missed", "missed as clean")
_NO_CAUSE = ("unknown", "symptoms", "inconclusive")


@dataclass(frozen=True, slots=True)
class PublicCase:
    """One thread: `accepted` and `acceptable` are ids, `unknown` or `symptoms`, joined by commas.

    So is `answer`: a report of symptoms only has all three, `unknown`, `symptoms` and the symptom that it lists first.
    A symptom at the root has `symptoms` and its id.
    """

    address: str
    category: str
    accepted: str
    acceptable: str
    ranks: str
    devices: str
    answer: str = ""
    confidence: str = ""

    @property
    def key(self) -> str:
        """The name of its text."""
        return self._digest[:16]

    @property
    def is_set_aside(self) -> bool:
        """Whether nobody looks at its text while rules are written."""
        return int(self._digest[-1], 16) % 2 == 1

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.address.encode()).hexdigest()

    @property
    def result(self) -> str:
        """One of RESULTS. An honest `unknown` or `symptoms` is acceptable only where the table says so."""
        accepted, acceptable, answer = (
            set(names.split(",")) for names in (self.accepted, self.acceptable, self.answer)
        )
        if answer & accepted:
            return "right"
        if self.answer == "clean":
            return "missed as clean"
        if answer & acceptable:
            return "acceptable"
        if answer & set(_NO_CAUSE):
            return "acceptable" if (accepted | acceptable) & set(_NO_CAUSE) else "missed"
        return "sure and wrong" if float(self.confidence or 0) >= SURE else "unsure and wrong"


def read_cases() -> list[PublicCase]:
    """Return the rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as table:
        return [PublicCase(**row) for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)]


def write_cases(cases: Iterable[PublicCase]) -> None:
    """Write the table, sorted by category and address."""
    names = [one.name for one in fields(PublicCase)]
    rows = sorted(cases, key=lambda case: (case.category, case.address))
    lines = ["\t".join(names), *("\t".join(asdict(case)[name] for name in names) for case in rows)]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def count_results(cases: Sequence[PublicCase]) -> list[str]:
    """Return how many cases have each result, with the share."""
    counts = Counter(case.result for case in cases)
    return [f"{counts[result]} ({100 * counts[result] / max(1, len(cases)):.0f} %)" for result in RESULTS]


def table_rows(cases: Sequence[PublicCase]) -> list[list[Any]]:
    """Return the rows of the page: the two halves, then the categories of all."""
    groups = [("set aside", [case for case in cases if case.is_set_aside])]
    groups.append(("others", [case for case in cases if not case.is_set_aside]))
    for name in sorted({case.category for case in cases}):
        groups.append((name, [case for case in cases if case.category == name]))
    return [[name, len(members), *count_results(members)] for name, members in groups]


def _diagnose(directory: Path, case: PublicCase) -> PublicCase:
    text = directory / f"{case.key}.txt"
    if not text.exists():
        return case
    diagnosis = triage.ingest(text, options=OPTIONS)
    root = diagnosis.root_cause
    return replace(case, answer=_answer(diagnosis), confidence=f"{root.confidence:.2f}" if root else "")


def _answer(diagnosis: triage.Diagnosis) -> str:
    root = diagnosis.root_cause
    if root is None:
        return diagnosis.verdict
    symptoms = [one.signature for one in diagnosis.findings if one.role == "symptom" and one.signature]
    if root.signature is None and root.role == "symptom" and symptoms:
        return f"unknown,symptoms,{symptoms[0]}"
    if root.signature and root.role == "symptom":
        return f"symptoms,{root.signature}"
    return root.signature or "unknown"


def main(arguments: Sequence[str]) -> None:
    """Diagnose the texts of a directory, print what is wrong, and write the answers into the table."""
    if not arguments:
        sys.exit(__doc__)
    cases = read_cases()
    chosen = [case for case in cases if case.category in arguments[1:] or not arguments[1:]]
    with share_catalog(), multiprocessing.get_context("fork").Pool() as pool:
        scored = pool.map(functools.partial(_diagnose, Path(arguments[0])), chosen, chunksize=4)
    answers = {case.address: case for case in scored}
    write_cases(answers.get(case.address, case) for case in cases)
    for case in scored:
        if not case.is_set_aside and case.result not in RESULTS[:2]:
            print(f"{case.result}: {case.key} {case.category}: {case.answer} {case.confidence}, not {case.accepted}")
    for name, flag in (("others", False), ("set aside", True)):
        half = [case for case in scored if case.is_set_aside == flag]
        again = [case for case in half if (Path(arguments[0]) / f"{case.key}.txt").exists()]
        for part, label in ((half, name), (again, f"{name}, diagnosed now")):
            counts = zip(RESULTS, count_results(part), strict=True)
            print(f"{label}: {len(part)} cases:", ", ".join(f"{result} {count}" for result, count in counts))


if __name__ == "__main__":
    main(sys.argv[1:])
