"""The files to judge, read and put beside the rest of the catalog: where every check of contributed files starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.catalog import build, files, gate, read
from triage.catalog.marked import Marked
from triage.catalog.marked import Path as Inside
from triage.catalog.model import Sample, Signature
from triage.catalog.problems import Problem
from triage.model.evidence import Evidence, Origin

ToEvidence = Callable[[str], Sequence[Evidence]]


@dataclass(frozen=True, slots=True)
class Case:
    """The signatures to judge by id, all signatures of the catalog with their literals, and the judged files' trees by
    path.

    `beside` are the shipped ones that are not judged, `weak` the patterns that the scan cannot look for.
    """

    checked: Mapping[str, Signature]
    beside: Mapping[str, Signature]
    whole: Mapping[str, Signature]
    trees: Mapping[str, Marked]
    weak: Sequence[gate.Weakness]
    healthy: str
    roots: tuple[Path, ...]


def prepare(paths: Sequence[str | Path], shipped: Path | None) -> tuple[Case, list[Problem]]:
    """Read the files (nothing given means the shipped catalog), and everything that keeps them from being read."""
    base = shipped or files.shipped_directory()
    roots = [Path(path) for path in paths] or ([base] if base else [])
    problems = [
        Problem("error", str(root), None, None, "is not there", "give a file or a directory")
        for root in roots
        if not root.exists()
    ]
    found = list(dict.fromkeys(os.path.abspath(path) for root in roots for path in files.files(root)))
    shown = {path: os.path.relpath(path) if path.startswith(os.getcwd() + os.sep) else path for path in found}
    checked, remarks = build.read_all(shown[path] for path in found)
    beside = _shipped(base, set(found))
    whole = {**beside, **checked}
    healthy = build.healthy(base)
    equipped, _, weak = gate.equip([whole[identifier] for identifier in sorted(whole)], healthy)
    trees = {path: read.places(path) for path in {signature.path for signature in checked.values()}}
    case = Case(
        checked, beside, {signature.id: signature for signature in equipped}, trees, weak, healthy, tuple(roots)
    )
    return case, [*problems, *remarks]


def numbered(signature: Signature) -> Iterator[tuple[Inside, Sample]]:
    """The samples with their place in the file."""
    for index, sample in enumerate(signature.samples_match):
        yield ("samples", "match", index), sample
    for index, sample in enumerate(signature.samples_no_match):
        yield ("samples", "no_match", index), sample


def sample_evidence(sample: Sample, to_evidence: ToEvidence) -> Sequence[Evidence]:
    """The sample as evidence: read as a log, or taken as given when it names its kind."""
    if sample.kind is None:
        return to_evidence(sample.text)
    return [Evidence(sample.kind, sample.component, sample.text, Origin(), "sample", 0, fields=sample.fields)]


def ingest_evidence() -> ToEvidence:
    """How an ingest reads a text; imported late, for most of what the catalog does needs no log."""
    import importlib

    found: ToEvidence = importlib.import_module("triage.evidence").from_text
    return found


def _shipped(base: Path | None, without: set[str]) -> dict[str, Signature]:
    """The shipped signatures beside those that are checked; their own problems are no matter here."""
    if base is None:
        return {}
    return build.read_all(str(path) for path in files.files(base) if os.path.abspath(path) not in without)[0]
