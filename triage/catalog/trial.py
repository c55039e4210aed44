"""Try the catalog on a contributor's log: which signatures match, on which lines, with which captures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.catalog.distinct_evidence import group_evidence
from triage.catalog.match import positive_leaves
from triage.catalog.model import Signature
from triage.model import Diagnosis, Evidence, Explanation, Finding


@dataclass(frozen=True, slots=True)
class Hit:
    """A piece of evidence that a signature matches, and the captures of its patterns."""

    evidence: Evidence
    captures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MatchedSignature:
    """A signature that matched `count` pieces of evidence, some of which are in `hits`."""

    signature: str
    title: str
    role: str
    count: int
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial of one signature, or of all.

    `named` explains the one signature (None: all were tried) and `hits` are its evidence; `others` are all other
    signatures that matched. `unmatched` are unknown failures; `left_out` are lines that an ingest ignores, and why.
    """

    named: Explanation | None
    hits: tuple[Hit, ...]
    others: tuple[MatchedSignature, ...]
    unmatched: tuple[Finding, ...]
    left_out: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether one signature was tried and did not match."""
        return self.named is not None and not self.named.matched


def build_trial(diagnosis: Diagnosis, known: Iterable[Signature], named: Explanation | None = None) -> Trial:
    """Build the trial from the diagnosis of the log, and the explanation of the named signature, if there is one."""
    signatures = {signature.id: signature for signature in known}
    others = [
        MatchedSignature(
            finding.signature,
            finding.title,
            finding.role,
            finding.count,
            list_hits(signatures[finding.signature], finding.evidence),
        )
        for finding in diagnosis.findings
        if finding.signature in signatures and (named is None or finding.signature != named.signature)
    ]
    own = list_hits(signatures[named.signature], named.evidence) if named is not None else ()
    left_out = tuple(f"{note.source}: {note.message}" for note in diagnosis.warnings if note.code == "handled")
    return Trial(named, own, tuple(others), diagnosis.unknown, left_out)


def list_hits(signature: Signature, evidence: Sequence[Evidence]) -> tuple[Hit, ...]:
    """Each piece of evidence with what the signature's patterns capture in it."""
    captures: dict[int, dict[str, str]] = {}
    for group in group_evidence(evidence):
        merged: dict[str, str] = {}
        for leaf in positive_leaves(signature.match):
            merged = {**(group.test(leaf) or {}), **merged}
        captures |= dict.fromkeys(group.indices, merged)
    return tuple(Hit(item, captures[index]) for index, item in enumerate(evidence))
