"""Proving signature files: readable, well-formed, findable by the scan, true to their own samples, at home in the catalog."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.catalog import build, gate, lint, read
from triage.catalog import files as catalog_files
from triage.catalog.marked import Marked
from triage.catalog.marked import Path as Inside
from triage.catalog.match import Matcher, evaluate
from triage.catalog.model import Catalog, Sample, Signature
from triage.catalog.problems import Problem
from triage.model import Evidence, Origin

ToEvidence = Callable[[str], Sequence[Evidence]]
_ORDER = {"error": 0, "warning": 1, "info": 2}


def check(paths: Sequence[str | Path] = (), *, to_evidence: ToEvidence | None = None, shipped: Path | None = None) -> list[Problem]:
    """Everything to say about the files (directories are searched; nothing given means the shipped catalog), worst first.

    The files are judged together with the shipped catalog. `to_evidence` turns the text of a sample into evidence as an
    ingest would; by default it is `triage.evidence.from_text`. Errors mean that a file must not be merged.
    """
    base = shipped or catalog_files.shipped_directory()
    roots = [Path(path) for path in paths] or ([base] if base else [])
    problems = [
        Problem("error", str(root), None, None, "is not there", "give a file or a directory") for root in roots if not root.exists()
    ]
    files = list(dict.fromkeys(os.path.abspath(path) for root in roots for path in catalog_files.files(root)))
    shown = {path: os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path for path in files}
    checked, remarks = build.read_all(shown[path] for path in files)
    beside = _shipped(base, set(files))
    whole = {**beside, **checked}
    equipped, _, weak = gate.equip([whole[identifier] for identifier in sorted(whole)], build.healthy(base))
    case = _Case(checked, {signature.id: signature for signature in equipped}, {s.path: read.places(s.path) for s in checked.values()})
    problems += remarks
    problems += _replacing(case, beside)
    problems += lint.lint(checked.values(), whole, case.trees)
    problems += _weaknesses(case, weak)
    problems += _samples(case, to_evidence or _ingest_evidence())
    return sorted(dict.fromkeys(problems), key=lambda p: (_ORDER[p.severity], p.path, p.line or 0, p.column or 0, p.message))


@dataclass(frozen=True, slots=True)
class _Case:
    """The signatures to judge by id, all signatures of the catalog with their literals, and the judged files' trees by path."""

    checked: Mapping[str, Signature]
    whole: Mapping[str, Signature]
    trees: Mapping[str, Marked]


def _shipped(base: Path | None, without: set[str]) -> dict[str, Signature]:
    """The shipped signatures beside those that are checked; their own problems are no matter here."""
    if base is None:
        return {}
    return build.read_all(str(path) for path in catalog_files.files(base) if os.path.abspath(path) not in without)[0]


def _replacing(case: _Case, beside: Mapping[str, Signature]) -> list[Problem]:
    """What a user's directory does to the shipped catalog, so that nobody shadows a signature unawares."""
    shadowing = [case.checked[identifier] for identifier in case.checked if identifier in beside]
    return [
        Problem(
            "info",
            signature.path,
            *lint.place(case.trees[signature.path], signature, ("id",)),
            f"takes the place of {beside[signature.id].path}",
        )
        for signature in shadowing
    ]


def _ingest_evidence() -> ToEvidence:
    import importlib

    found: ToEvidence = importlib.import_module("triage.evidence").from_text
    return found


def _weaknesses(case: _Case, weak: Iterable[gate.Weakness]) -> list[Problem]:
    problems = []
    for weakness in weak:
        signature = case.checked.get(weakness.signature)
        if signature is not None:
            tree = case.trees[signature.path]
            place = next((place for place in lint.spots(tree, ("match",), weakness.pattern)), tree.place(("match",)))
            problems.append(Problem("error", signature.path, *place, f"{weakness.message}: {weakness.pattern}", weakness.hint))
    return problems


def _samples(case: _Case, to_evidence: ToEvidence) -> list[Problem]:
    """Each sample against its own signature, and then against all the others."""
    matcher = Matcher(Catalog("", tuple(case.whole.values())))
    problems: list[Problem] = []
    for identifier, signature in case.checked.items():
        equipped = case.whole[identifier]
        for inside, sample in _numbered(signature):
            place = lint.place(case.trees[signature.path], signature, inside)
            try:
                evidence = sample_evidence(sample, to_evidence)
            except Exception as error:  # the checker goes on, whatever a sample does to the readers
                problems.append(Problem("error", signature.path, *place, f"{_called(inside)} cannot be read as a log: {error!r}"))
                continue
            problems += [Problem("error", signature.path, *place, *said) for said in _own(equipped, sample, inside[1] == "match", evidence)]
            others = [other for other in matcher.evaluate(evidence) if other != identifier]
            if others:
                problems.append(Problem("info", signature.path, *place, f"{_called(inside)} is also matched by {', '.join(others)}"))
    return problems


def sample_evidence(sample: Sample, to_evidence: ToEvidence) -> Sequence[Evidence]:
    """The sample as evidence: read as a log, or taken as given when it names its kind."""
    if sample.kind is None:
        return to_evidence(sample.text)
    return [Evidence(sample.kind, sample.component, sample.text, Origin(), "sample", 0, fields=sample.fields)]


def _numbered(signature: Signature) -> list[tuple[Inside, Sample]]:
    match: list[tuple[Inside, Sample]] = [(("samples", "match", index), sample) for index, sample in enumerate(signature.samples_match)]
    return match + [(("samples", "no_match", index), sample) for index, sample in enumerate(signature.samples_no_match)]


def _called(inside: Inside) -> str:
    return f"samples.{inside[1]}.{inside[2]}"


def _own(signature: Signature, sample: Sample, expected: bool, evidence: Sequence[Evidence]) -> list[tuple[str, str]]:
    """What is wrong with the sample by the signature's own match: message and hint."""
    match = evaluate(signature, evidence)
    if not expected:
        hint = "narrow the pattern, or add a leaf under `none`"
        return [("the sample must not match, and does", hint)] if match else []
    if match is None:
        seen = "; ".join(f"{item.kind}/{item.component}: {item.text[:120]!r}" for item in evidence[:4]) or "nothing"
        return [("the sample must match, and does not", f"the readers made of it: {seen}")]
    wrong = [(name, value, match.captures.get(name)) for name, value in sample.captures.items() if match.captures.get(name) != value]
    return [(f"capture {name} is {found!r}, not {value!r}", "mend the group, or the sample") for name, value, found in wrong]
