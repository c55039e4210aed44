"""Compare two catalogs: signatures added, removed or changed, and findings that would change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.check_context import EvidenceReader, list_samples, read_sample
from triage.catalog.match import Matcher
from triage.catalog.model import Catalog, Sample, Signature

_PARTS: tuple[tuple[str, Callable[[Signature], object]], ...] = (
    ("match", lambda one: one.fingerprint),
    ("role", lambda one: one.role),
    ("severity", lambda one: one.severity),
    ("status", lambda one: (one.status, one.replaced_by)),
    ("leads_to", lambda one: one.causal_edges),
    ("applies_to", lambda one: dict(one.applies_to)),
    ("blames", lambda one: one.blames),
    ("words", lambda one: (one.title, one.meaning, one.impact, one.summary, one.steps, one.action)),
)


@dataclass(frozen=True, slots=True)
class SignatureChange:
    """A signature that only one catalog has (`what` is added or removed), or that differs in `parts` (changed)."""

    signature: str
    what: str
    parts: tuple[str, ...] = ()
    old_revision: int | None = None
    new_revision: int | None = None


@dataclass(frozen=True, slots=True)
class FindingChange:
    """What changes for one job, stored report or sample: findings that go or come, and the root cause.

    `root` is (before, after), None if it stays the same.
    """

    where: str
    gone: tuple[str, ...]
    new: tuple[str, ...]
    root: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CatalogDiff:
    """All differences; `looked_at` is the number of jobs, reports and samples compared. JSON uses these field names."""

    changes: tuple[SignatureChange, ...]
    moved: tuple[FindingChange, ...]
    looked_at: int


def compare_signatures(old: Catalog, new: Catalog) -> tuple[SignatureChange, ...]:
    """The signatures that differ, in the order of their ids."""
    before, after = _by_id(old), _by_id(new)
    changes = []
    for identifier in sorted({*before, *after}):
        one, other = before.get(identifier), after.get(identifier)
        if one is None or other is None:
            changes.append(SignatureChange(identifier, "added" if one is None else "removed"))
            continue
        parts = tuple(name for name, part in _PARTS if part(one) != part(other))
        if parts or one.revision != other.revision:
            changes.append(SignatureChange(identifier, "changed", parts, one.revision, other.revision))
    return tuple(changes)


def compare_samples(old: Catalog, new: Catalog, to_evidence: EvidenceReader) -> tuple[list[FindingChange], int]:
    """Compare the signatures that match each sample of both catalogs. The second value is the number of samples."""
    left, right = Matcher(old), Matcher(new)
    samples: dict[tuple[str, str, str | None], tuple[object, Sample]] = {}
    for signature in (*old.signatures, *new.signatures):
        for key_path, sample in list_samples(signature):
            samples.setdefault((signature.id, sample.text, sample.kind), (key_path[1], sample))
    changes = []
    for (identifier, _, _), (group, sample) in samples.items():
        evidence = read_sample(sample, to_evidence)
        where = f"{identifier} {group} sample: {sample.text.strip().splitlines()[-1][:80]}"
        changes += compare_findings(where, left.evaluate(evidence), right.evaluate(evidence))
    return changes, len(samples)


def compare_findings(
    where: str, before: Iterable[str], after: Iterable[str], roots: tuple[str, str] | None = None
) -> list[FindingChange]:
    """The change between two sets of findings and roots (before, after); empty if both are the same."""
    gone, new = set(before) - set(after), set(after) - set(before)
    root = roots if roots is not None and roots[0] != roots[1] else None
    return [FindingChange(where, tuple(sorted(gone)), tuple(sorted(new)), root)] if gone or new or root else []


def compare_report(
    where: str,
    findings: Sequence[Mapping[str, object]],
    texts: Sequence[str],
    new: Catalog,
    to_evidence: EvidenceReader,
) -> list[FindingChange]:
    """Compare a stored report with what the new catalog finds in its evidence.

    `findings` have `signature` and `fingerprint`; `texts` are all pieces of evidence of the report, known and unknown.
    A finding whose fingerprint the new catalog still has stays the same without matching.
    """
    known = _by_id(new)
    matched = Matcher(new).evaluate([fact for text in texts for fact in to_evidence(text)])
    before = {str(finding["signature"]) for finding in findings if finding.get("signature")}
    same = {
        str(finding["signature"])
        for finding in findings
        if (one := known.get(str(finding.get("signature")))) is not None
        and one.status != "deprecated"
        and (one.fingerprint == finding.get("fingerprint") or one.id in matched)
    }
    return compare_findings(where, before, {*same, *(name for name in matched if known[name].role != "noise")})


def _by_id(catalog: Catalog) -> dict[str, Signature]:
    return {signature.id: signature for signature in catalog.signatures}
