"""What a signature is, once loaded: frozen, with nothing but data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triage.model.diagnosis import Role, Severity
from triage.model.evidence import Warning as Note


@dataclass(frozen=True, slots=True)
class Leaf:
    """Conditions on one Evidence; all that are given must hold.

    `text` is searched (RE2 dialect) in the evidence's text, its named groups become captures; `not_text` must not be
    found. `fields` maps a field name to a pattern that must match the whole value; an absent field does not match.
    `literals` is filled in when a catalog is loaded: any text that `text` matches contains one of them (empty: not
    known).
    `values` comes from a table of codes: one of the places where `text` is found must capture one of these values by
    name.
    """

    kind: str | None = None
    component: str | None = None
    text: str | None = None
    not_text: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    literals: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Clause:
    """`any` (one holds) and `all` (each holds somewhere in the job) and `none` (drops evidence that it matches) nest."""

    op: str  # "any" | "all"
    parts: tuple[Leaf | Clause, ...]
    none: tuple[Leaf, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """`signature` is explained by the one that holds the edge, within `scope`: same-rank, same-host, other-ranks,
    any-rank.

    With a `window` (seconds) the effect must begin no later than that after the cause began; where one of them has no
    time,
    or their clocks cannot be compared, the window is not looked at.
    """

    signature: str
    scope: str = "any-rank"
    window: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A text as it stands in a log. With `kind` it is an evidence as given, for facts that no single text can show.

    `also` are the other signatures that match it and may.
    """

    text: str
    captures: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    kind: str | None = None
    component: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    id: str
    revision: int
    title: str
    status: str
    role: Role
    severity: Severity
    match: Clause | Leaf | None  # None for role `guide`
    path: str = ""
    blames: str | None = None
    tells: str | None = (
        None  # waiting, peer-lost, ending, outside, own-failure, killed, link, node-lost: see docs/signatures.md
    )
    leads_to: tuple[Edge, ...] = ()
    applies_to: Mapping[str, str] = field(default_factory=dict)
    meaning: str = ""
    impact: str = ""
    summary: str = ""
    steps: tuple[str, ...] = ()
    action: str = "none"
    origin: str = ""
    falsepositives: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    samples_match: tuple[Sample, ...] = ()
    samples_no_match: tuple[Sample, ...] = ()
    fingerprint: str = ""
    replaced_by: str | None = None  # of a deprecated signature: the one that took its place
    table: str = ""  # the table of codes that this signature is a row of
    yields_to: tuple[str, ...] = ()  # where one of these matches the same evidence, this one says nothing

    @property
    def domain(self) -> str:
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Catalog:
    """`windows` are short pieces of the literals and of the generic triggers, for a fast search (scan/windows.py).

    `literals` are what the scan must look for so that no leaf of any signature can be missed.

    `warnings` say which files were skipped, and which patterns the scan cannot look for.
    """

    version: str
    signatures: tuple[Signature, ...]
    literals: tuple[str, ...] = ()
    warnings: tuple[Note, ...] = ()
    windows: tuple[str, ...] = ()
