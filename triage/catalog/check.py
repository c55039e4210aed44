"""Proving signature files: readable, well-formed, findable by the scan, true to their own samples, at home in the
catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from triage.catalog import lint, lock
from triage.catalog.case import Case, ToEvidence, ingest_evidence, numbered, prepare, sample_evidence
from triage.catalog.marked import Path as Inside
from triage.catalog.match import Matcher, evaluate
from triage.catalog.model import Catalog, Sample, Signature
from triage.catalog.problems import Problem
from triage.model.evidence import Evidence

_ORDER = {"error": 0, "warning": 1, "info": 2}


def check(
    paths: Sequence[str | Path] = (), *, to_evidence: ToEvidence | None = None, shipped: Path | None = None
) -> list[Problem]:
    """Everything to say about the files (directories are searched; nothing given means the shipped catalog), worst
    first.

    The files are judged together with the shipped catalog. `to_evidence` turns the text of a sample into evidence as an
    ingest would; by default it is `triage.evidence.from_text`. Errors mean that a file must not be merged.
    """
    case, problems = prepare(paths, shipped)
    problems += _replacing(case)
    problems += lint.lint(case.checked.values(), {**case.beside, **case.checked}, case.trees)
    problems += _weaknesses(case)
    problems += _promises(case)
    problems += _samples(case, to_evidence or ingest_evidence())
    return ordered(problems)


def ordered(problems: Sequence[Problem]) -> list[Problem]:
    """Each once, the worst first, then by place."""
    return sorted(
        dict.fromkeys(problems), key=lambda p: (_ORDER[p.severity], p.path, p.line or 0, p.column or 0, p.message)
    )


def _replacing(case: Case) -> list[Problem]:
    """What a user's directory does to the shipped catalog, so that nobody shadows a signature unawares."""
    shadowing = [signature for identifier, signature in case.checked.items() if identifier in case.beside]
    return [_problem(case, "info", one, ("id",), f"takes the place of {case.beside[one.id].path}") for one in shadowing]


def _weaknesses(case: Case) -> list[Problem]:
    problems = []
    for weakness in case.weak:
        signature = case.checked.get(weakness.signature)
        if signature is not None:
            tree = case.trees[signature.path]
            place = next((place for place in lint.spots(tree, ("match",), weakness.pattern)), tree.place(("match",)))
            problems.append(
                Problem("error", signature.path, *place, f"{weakness.message}: {weakness.pattern}", weakness.hint)
            )
    return problems


def _promises(case: Case) -> list[Problem]:
    """Revisions and ids against the record of the directory that the files lie in."""
    homes = {path: Path(path).parent.parent for path in case.trees}
    known = {home: (lock.read(home), lock.retired(home)) for home in {*homes.values(), *case.roots}}
    problems = []
    for signature in case.checked.values():
        for severity, inside, message, hint in lock.remarks(signature, *known[homes[signature.path]]):
            problems.append(_problem(case, severity, signature, inside, message, hint))
    for root in case.roots:
        for identifier in lock.missing(known[root][0], case.whole, known[root][1]):
            hint = f"bring it back with `status: deprecated`, or list it with a reason in {lock.RETIRED}"
            problems.append(
                Problem("error", str(root / lock.LOCK), None, None, f"{identifier} was promised and is gone", hint)
            )
    return problems


def _samples(case: Case, to_evidence: ToEvidence) -> list[Problem]:
    """Each sample against its own signature, and then against all the others."""
    matcher = Matcher(Catalog("", tuple(case.whole.values())))
    problems: list[Problem] = []
    for identifier, signature in case.checked.items():
        equipped = case.whole[identifier]
        for inside, sample in numbered(signature):
            try:
                evidence = sample_evidence(sample, to_evidence)
            except Exception as error:  # the checker goes on, whatever a sample does to the readers
                problems.append(
                    _problem(case, "error", signature, inside, f"{_called(inside)} cannot be read as a log: {error!r}")
                )
                continue
            said = _own(equipped, sample, inside[1] == "match", evidence)
            if not signature.table or inside[1] == "match":  # the line of another row is explained there
                said += _others(equipped, sample, _called(inside), {*matcher.evaluate(evidence)} - {identifier})
            problems += [_problem(case, "error", signature, inside, *words) for words in said]
    return problems


def _own(signature: Signature, sample: Sample, expected: bool, evidence: Sequence[Evidence]) -> list[tuple[str, str]]:
    """What is wrong with the sample by the signature's own match: message and hint."""
    match = evaluate(signature, evidence)
    if not expected:
        hint = "narrow the pattern, or add a leaf under `none`"
        return [("the sample must not match, and does", hint)] if match else []
    if match is None:
        seen = "; ".join(f"{item.kind}/{item.component}: {item.text[:120]!r}" for item in evidence[:4]) or "nothing"
        return [("the sample must match, and does not", f"the readers made of it: {seen}")]
    wrong = [
        (name, value, match.captures.get(name))
        for name, value in sample.captures.items()
        if match.captures.get(name) != value
    ]
    return [
        (f"capture {name} is {found!r}, not {value!r}", "mend the group, or the sample") for name, value, found in wrong
    ]


def _others(signature: Signature, sample: Sample, called: str, others: set[str]) -> list[tuple[str, str]]:
    """One row of the cross table: what else matches the sample. Where nobody said that it may, nobody knew it."""
    undeclared = sorted(others - set(sample.also) - set(signature.yields_to))
    said = []
    if undeclared:
        hint = f"if all are right, declare it: `also: [{', '.join(sorted(others))}]`; else narrow one of the patterns"
        said.append((f"{called} is also matched by {', '.join(undeclared)}", hint))
    gone = sorted(set(sample.also) - others)
    if gone and not signature.table:
        said.append((f"{called} is not matched by {', '.join(gone)}, as `also` says", "take it out of `also`"))
    return said


def _called(inside: Inside) -> str:
    return f"samples.{inside[1]}.{inside[2]}"


def _problem(case: Case, severity: str, signature: Signature, inside: Inside, message: str, hint: str = "") -> Problem:
    return Problem(severity, signature.path, *lint.place(case.trees[signature.path], signature, inside), message, hint)
