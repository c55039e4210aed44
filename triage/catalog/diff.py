"""Two catalogs side by side: what was added, removed or changed, and which findings would be other ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.case import ToEvidence, numbered, sample_evidence
from triage.catalog.match import Matcher
from triage.catalog.model import Catalog, Signature

_PARTS: tuple[tuple[str, Callable[[Signature], object]], ...] = (
    ("match", lambda one: one.fingerprint),
    ("role", lambda one: one.role),
    ("severity", lambda one: one.severity),
    ("status", lambda one: (one.status, one.replaced_by)),
    ("leads_to", lambda one: one.leads_to),
    ("applies_to", lambda one: dict(one.applies_to)),
    ("blames", lambda one: one.blames),
    ("words", lambda one: (one.title, one.meaning, one.impact, one.summary, one.steps, one.action)),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A signature that is in one catalog only (`what` is added or removed), or differs (`parts` says in what)."""

    signature: str
    what: str
    parts: tuple[str, ...] = ()
    old_revision: int | None = None
    new_revision: int | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """One job, stored report or sample: the findings that would come and go, and the root cause before and after (None:
    the same).
    """

    where: str
    gone: tuple[str, ...]
    new: tuple[str, ...]
    root: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    changes: tuple[Change, ...]
    moved: tuple[Moved, ...]
    looked_at: int


def changes(old: Catalog, new: Catalog) -> tuple[Change, ...]:
    """In the order of the ids."""
    before, after = _by_id(old), _by_id(new)
    found = []
    for identifier in sorted({*before, *after}):
        one, other = before.get(identifier), after.get(identifier)
        if one is None or other is None:
            found.append(Change(identifier, "added" if one is None else "removed"))
            continue
        parts = tuple(name for name, part in _PARTS if part(one) != part(other))
        if parts or one.revision != other.revision:
            found.append(Change(identifier, "changed", parts, one.revision, other.revision))
    return tuple(found)


def samples(old: Catalog, new: Catalog, to_evidence: ToEvidence) -> tuple[list[Moved], int]:
    """Every sample of both catalogs: which signatures match it now and then. The second value is how many were looked
    at.
    """
    left, right = Matcher(old), Matcher(new)
    moved = []
    seen: set[tuple[str, str, str | None]] = set()
    for signature in (*old.signatures, *new.signatures):
        for inside, sample in numbered(signature):
            key = (signature.id, sample.text, sample.kind)
            if key in seen:
                continue
            seen.add(key)
            evidence = sample_evidence(sample, to_evidence)
            where = f"{signature.id} {inside[1]} sample: {sample.text.strip().splitlines()[-1][:80]}"
            moved += compared(where, left.evaluate(evidence), right.evaluate(evidence))
    return moved, len(seen)


def compared(
    where: str, before: Iterable[str], after: Iterable[str], roots: tuple[str, str] | None = None
) -> list[Moved]:
    """Nothing if both are the same."""
    gone, new = set(before) - set(after), set(after) - set(before)
    root = roots if roots is not None and roots[0] != roots[1] else None
    return [Moved(where, tuple(sorted(gone)), tuple(sorted(new)), root)] if gone or new or root else []


def stored(
    where: str, findings: Sequence[Mapping[str, object]], texts: Sequence[str], new: Catalog, to_evidence: ToEvidence
) -> list[Moved]:
    """A stored report: which of its findings the new catalog would not make again from the evidence that was kept.

    `findings` have `signature` and `fingerprint`; `texts` are all pieces of evidence of the report, known and unknown.
    A finding whose fingerprint is that of the new catalog is the same without looking.
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
    return compared(where, before, {*same, *(name for name in matched if known[name].role != "noise")})


def _by_id(catalog: Catalog) -> dict[str, Signature]:
    return {signature.id: signature for signature in catalog.signatures}
