"""Load the signature files to check together with the rest of the catalog."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.catalog import build, edge_groups, literal_selection, read, signature_files
from triage.catalog.compiled_files import read_compiled_files
from triage.catalog.model import Sample, Signature
from triage.catalog.problems import Problem
from triage.catalog.yaml_document import KeyPath, YamlDocument
from triage.model.evidence import Evidence, Origin

EvidenceReader = Callable[[str], Sequence[Evidence]]


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The signatures to check, with everything they are checked against.

    `checked`, `unchecked` (the other shipped ones) and `all_signatures` (both, with literals) are by id. `documents`
    are the YAML trees of the checked files by path; `weak_patterns` are those that the scan cannot look for.
    """

    checked: Mapping[str, Signature]
    unchecked: Mapping[str, Signature]
    all_signatures: Mapping[str, Signature]
    documents: Mapping[str, YamlDocument]
    weak_patterns: Sequence[literal_selection.WeakPattern]
    healthy_text: str
    everyday_lines: Sequence[str]
    roots: tuple[Path, ...]


def load_context(paths: Sequence[str | Path], shipped: Path | None) -> tuple[CheckContext, list[Problem]]:
    """Read the files (by default the shipped catalog), and report what cannot be read."""
    base = shipped or signature_files.find_shipped_directory()
    roots = [Path(path) for path in paths] or ([base] if base else [])
    hint = "give a file or a directory"
    problems = [Problem("error", str(root), None, None, "does not exist", hint) for root in roots if not root.exists()]
    files = (path for root in roots for path in signature_files.list_signature_files(root))
    absolute = list(dict.fromkeys(map(os.path.abspath, files)))
    here = os.getcwd() + os.sep
    checked, file_problems = build.read_directory(
        os.path.relpath(path) if path.startswith(here) else path for path in absolute
    )
    unchecked = _load_shipped(base, set(absolute)) if checked else {}  # else there is nothing to check
    merged = {**unchecked, **checked}
    healthy = build.read_healthy_lines(base)
    equipped, _, weak = literal_selection.assign_literals([checked[one] for one in sorted(checked)], healthy)
    documents = {path: read.read_document(path) for path in {signature.path for signature in checked.values()}}
    by_id = dict(sorted({**unchecked, **{signature.id: signature for signature in equipped}}.items()))
    context = CheckContext(
        checked, unchecked, by_id, documents, weak, healthy, build.read_everyday_lines(base), tuple(roots)
    )
    group_problems = [problem for root in roots for problem in edge_groups.check_groups(root, merged)]
    return context, [*problems, *group_problems, *file_problems]


def list_samples(signature: Signature) -> Iterator[tuple[KeyPath, Sample]]:
    """The samples of a signature with their key paths, such as `("samples", "match", 0)`."""
    for index, sample in enumerate(signature.samples_match):
        yield ("samples", "match", index), sample
    for index, sample in enumerate(signature.samples_no_match):
        yield ("samples", "no_match", index), sample


def read_sample(sample: Sample, to_evidence: EvidenceReader) -> Sequence[Evidence]:
    """The evidence of a sample: its text read as a log, or the sample itself when it names its kind."""
    if sample.kind is None:
        return to_evidence(sample.text)
    return [Evidence(sample.kind, sample.component, sample.text, Origin(), "sample", 0, fields=sample.fields)]


def default_reader() -> EvidenceReader:
    """The function by which an ingest reads a text. Imported on demand: most uses of the catalog read no log."""
    from triage.evidence import extract_text

    return extract_text


def _load_shipped(base: Path | None, without: set[str]) -> dict[str, Signature]:
    """The shipped signatures other than the checked ones, with literals; their own problems do not matter here.

    They come from a cache; only files that changed are read again.
    """
    if base is None:
        return {}
    return {one.id: one for one in read_compiled_files(base) if os.path.abspath(one.path) not in without}
