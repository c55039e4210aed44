"""Signatures and the catalog as frozen data, with nothing but data.

msgspec writes them to the cache, and checks their types when it reads them. Conditions are structs because dataclasses
have no tag that distinguishes the two kinds; edges and samples, of which there are many, because structs without names
in the cache are read three times as fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

import msgspec

from triage.base.lazy_dataclass import dataclass
from triage.model import Role, Severity, Warning as Note

Engine = Literal["re2", "regex"]

# Names of the attributes of `Signature` that differ from the keys of the YAML file; JSON output uses the file's keys.
FILE_KEYS = {"causal_edges": "leads_to", "indicates": "tells"}


class Leaf(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Conditions on one piece of evidence; all that are set must hold.

    `text` is searched (RE2 dialect) in the evidence's text, its named groups become captures; `not_text` must not be
    found. `fields` maps a field name to a pattern that must match the whole value; an absent field does not match.
    `literals` is filled in when a catalog is loaded: any text that `text` matches contains one of them (empty:
    unknown). `values` comes from a table of codes: one match of `text` must capture one of these values by name.
    With `engine` regex, `text` and `not_text` are patterns of `backtracking`. The evidence of a `context` leaf must
    exist, but healthy ranks write it too: it is no evidence of where or when the failure began.
    """

    kind: str | None = None
    component: str | None = None
    text: str | None = None
    not_text: str | None = None
    fields: Mapping[str, str] = msgspec.field(default_factory=dict)
    literals: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    engine: Engine = "re2"
    context: bool = False


class Clause(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """A combination of conditions; clauses nest.

    `any`: one part holds. `all`: each part holds somewhere in the job. `none`: evidence that a leaf matches is dropped.
    """

    op: Literal["any", "all"]
    parts: tuple[Leaf | Clause, ...]
    none: tuple[Leaf, ...] = ()


class CausalEdge(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An effect of the signature that owns the edge.

    `signature` is the effect. `scope` says where it appears: same-rank, same-host, other-ranks or any-rank. With a
    `window` (seconds) the effect must begin no later than that after the cause; the window is ignored where a time is
    missing or clocks cannot be compared.
    """

    signature: str
    scope: str = "any-rank"
    window: float | None = None


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A log text that a signature must match, or must not match.

    With `kind` the sample is a piece of evidence itself, for facts that no single text can show. `also` are the other
    signatures that may match it too.
    """

    text: str
    captures: Mapping[str, str] = msgspec.field(default_factory=dict)
    why: str = ""
    kind: str | None = None
    component: str = ""
    fields: Mapping[str, str] = msgspec.field(default_factory=dict)
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """One failure mode: how to recognise it, what it causes and what to do about it."""

    id: str
    revision: int
    title: str
    status: str
    role: Role
    severity: Severity
    match: Clause | Leaf | None  # None for role `guide`
    path: str = ""
    blames: str | None = None  # the capture that names the rank at fault
    # What it indicates about its rank: waiting, peer-lost, ending, outside, … (see docs/signatures.md).
    indicates: str | None = None
    causal_edges: tuple[CausalEdge, ...] = ()
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
    replaced_by: str | None = None  # the successor of a deprecated signature
    table: str = ""  # the table of codes that this signature is a row of
    yields_to: tuple[str, ...] = ()  # evidence that one of these matches does not count for this signature

    @property
    def domain(self) -> str:
        """The first part of the id: `nccl` of `nccl.remote-error`."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All signatures of a run, with what the scan needs to find their evidence.

    `literals` are the strings that the scan looks for, so that no leaf of any signature is missed. `windows` are short
    pieces of the literals and of the generic triggers, for a fast search (scan/windows.py). `warnings` name skipped
    files and patterns that the scan cannot look for.
    """

    version: str
    signatures: tuple[Signature, ...]
    literals: tuple[str, ...] = ()
    warnings: tuple[Note, ...] = ()
    windows: tuple[str, ...] = ()
