"""What triage makes of a signature file: what stops the scan for it, how each of its samples is read, and what explains
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import CatalogError
from triage.catalog import regex
from triage.catalog.case import Case, ToEvidence, ingest_evidence, numbered, prepare, sample_evidence
from triage.catalog.graph import Arrow, explained_by
from triage.catalog.match import ClauseLine, describe, evaluate, explain, positive_leaves
from triage.catalog.model import Leaf, Sample, Signature
from triage.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Wanted:
    """A leaf in words, the literals of which one must stand in a line with how often healthy logs hold them, and its
    captures.
    """

    text: str
    literals: tuple[tuple[str, int], ...]
    captures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """A sample, called as in its file: should it match, does it, what the readers made of it, and which clauses held
    over that.
    """

    called: str
    expected: bool
    matched: bool
    evidence: tuple[Evidence, ...]
    clauses: tuple[ClauseLine, ...]
    captures: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Study:
    """A signature as triage understands it; `explained_by` are the edges of others that end here."""

    signature: Signature
    wanted: tuple[Wanted, ...]
    samples: tuple[Tried, ...]
    explained_by: tuple[Arrow, ...]


def study(path: Path, identifier: str | None = None, to_evidence: ToEvidence | None = None) -> Study:
    """The signature of the file, or the row `identifier` of a table, beside the shipped catalog.

    CatalogError when the file cannot be used, or is a table and no row of it is named.
    """
    case, problems = prepare([path], None)
    wrong = [problem for problem in problems if problem.severity == "error"]
    if wrong:
        raise CatalogError("\n".join(map(str, wrong)), hint="mend these places, then try again")
    if identifier is None and len(case.checked) > 1:
        raise CatalogError(
            f"{path} is a table of {len(case.checked)} codes", hint=f"name a row by its id, such as {min(case.checked)}"
        )
    signature = case.whole[identifier or next(iter(case.checked))]
    read = to_evidence or ingest_evidence()
    return Study(
        signature,
        tuple(_wanted(leaf, case) for leaf in positive_leaves(signature.match)),
        tuple(
            _tried(signature, ".".join(map(str, inside)), inside[1] == "match", sample, read)
            for inside, sample in numbered(signature)
        ),
        tuple(explained_by(case.whole.values()).get(signature.id, ())),
    )


def _wanted(leaf: Leaf, case: Case) -> Wanted:
    captures = tuple(name for name, _ in regex.named_groups(leaf.text)) if leaf.text else ()
    return Wanted(describe(leaf), tuple((literal, case.healthy.count(literal)) for literal in leaf.literals), captures)


def _tried(signature: Signature, called: str, expected: bool, sample: Sample, read: ToEvidence) -> Tried:
    evidence = tuple(sample_evidence(sample, read))
    match = evaluate(signature, evidence)
    return Tried(
        called, expected, match is not None, evidence, explain(signature, evidence), match.captures if match else {}
    )
