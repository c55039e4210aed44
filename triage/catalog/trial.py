"""A contributor's log against the catalog: which signatures match it, on which lines, with which captures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.catalog.facts import distinct
from triage.catalog.match import positive_leaves
from triage.catalog.model import Signature
from triage.model.diagnosis import Diagnosis, Explanation, Finding
from triage.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Hit:
    """One evidence that a signature matches, and what its patterns captured there."""

    evidence: Evidence
    captures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Played:
    """A signature that matched: `count` evidences, some of which are shown."""

    signature: str
    title: str
    role: str
    count: int
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """`named` explains the signature that was asked for (None: all were), `hits` are its evidence; `others` matched
    besides.

    `unmatched` are failures that nothing knows; `aside` are lines that an ingest leaves out, with the reason.
    """

    named: Explanation | None
    hits: tuple[Hit, ...]
    others: tuple[Played, ...]
    unmatched: tuple[Finding, ...]
    aside: tuple[str, ...]

    @property
    def failed(self) -> bool:
        return self.named is not None and not self.named.matched


def trial(diagnosis: Diagnosis, known: Iterable[Signature], named: Explanation | None = None) -> Trial:
    """From what an ingest of the log says, and what it says about the named signature."""
    signatures = {signature.id: signature for signature in known}
    others = [
        Played(
            finding.signature,
            finding.title,
            finding.role,
            finding.count,
            hits(signatures[finding.signature], finding.evidence),
        )
        for finding in diagnosis.findings
        if finding.signature in signatures and (named is None or finding.signature != named.signature)
    ]
    own = hits(signatures[named.signature], named.evidence) if named is not None else ()
    aside = tuple(f"{note.source}: {note.message}" for note in diagnosis.warnings if note.code == "handled")
    return Trial(named, own, tuple(others), diagnosis.unknown, aside)


def hits(signature: Signature, evidence: Sequence[Evidence]) -> tuple[Hit, ...]:
    """Each evidence with what the signature's patterns capture in it."""
    captures: dict[int, dict[str, str]] = {}
    for fact in distinct(evidence):
        found: dict[str, str] = {}
        for leaf in positive_leaves(signature.match):
            found = {**(fact.test(leaf) or {}), **found}
        captures |= dict.fromkeys(fact.indices, found)
    return tuple(Hit(item, captures[index]) for index, item in enumerate(evidence))
