"""Explain a signature file: the literals that the scan looks for, how each sample is read, and what explains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import CatalogError
from triage.catalog import backtracking, regex
from triage.catalog.check_context import (
    EvidenceReader,
    default_reader,
    list_samples,
    load_context,
    read_sample,
)
from triage.catalog.graph import GraphEdge, group_edges_by_effect
from triage.catalog.match import ClauseLine, describe_clause, evaluate_signature, explain_clauses, positive_leaves
from triage.catalog.model import Leaf, Sample, Signature
from triage.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class LeafStudy:
    """A leaf in words, its literals with how often healthy logs contain them, and its captures.

    A line must contain one of the literals, or the scan does not stop at it.
    """

    text: str
    literals: tuple[tuple[str, int], ...]
    captures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SampleStudy:
    """A sample, named as in its file, with its evidence and the clauses and captures of the match.

    `expected`: whether it must match. `matched`: whether it does.
    """

    name: str
    expected: bool
    matched: bool
    evidence: tuple[Evidence, ...]
    clauses: tuple[ClauseLine, ...]
    captures: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SignatureStudy:
    """A signature, its leaves and samples; `explained_by` are the edges of other signatures to it."""

    signature: Signature
    leaves: tuple[LeafStudy, ...]
    samples: tuple[SampleStudy, ...]
    explained_by: tuple[GraphEdge, ...]


def study_signature(
    path: Path, identifier: str | None = None, to_evidence: EvidenceReader | None = None
) -> SignatureStudy:
    """Study the signature in a file, or the row `identifier` of a table, with the shipped ones. Raises CatalogError."""
    context, problems = load_context([path], None)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise CatalogError("\n".join(map(str, errors)), hint="fix the reported lines, then try again")
    if identifier is None and len(context.checked) > 1:
        hint = f"name a row by its id, such as {min(context.checked)}"
        raise CatalogError(f"{path} is a table of {len(context.checked)} codes", hint=hint)
    signature = context.all_signatures[identifier or next(iter(context.checked))]
    read = to_evidence or default_reader()
    samples = (
        _study_sample(signature, ".".join(map(str, key_path)), key_path[1] == "match", sample, read)
        for key_path, sample in list_samples(signature)
    )
    return SignatureStudy(
        signature,
        tuple(_study_leaf(leaf, context.healthy_text) for leaf in positive_leaves(signature.match)),
        tuple(samples),
        tuple(group_edges_by_effect(context.all_signatures.values()).get(signature.id, ())),
    )


def _study_leaf(leaf: Leaf, healthy: str) -> LeafStudy:
    captures: tuple[str, ...] = ()
    if leaf.text and leaf.engine == "regex":
        captures = backtracking.list_group_names(leaf.text)
    elif leaf.text:
        captures = tuple(name for name, _ in regex.list_named_groups(leaf.text))
    literals = tuple((literal, healthy.count(literal)) for literal in leaf.literals)
    return LeafStudy(describe_clause(leaf), literals, captures)


def _study_sample(signature: Signature, name: str, expected: bool, sample: Sample, read: EvidenceReader) -> SampleStudy:
    evidence = tuple(read_sample(sample, read))
    match = evaluate_signature(signature, evidence)
    clauses = explain_clauses(signature, evidence)
    return SampleStudy(name, expected, match is not None, evidence, clauses, match.captures if match else {})
