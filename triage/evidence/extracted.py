"""What the sources of a job give, each alone and all together, before any reasoning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import msgspec

from triage.base.lazy_dataclass import dataclass
from triage.base.shared_types import share_type
from triage.model import DETAILS, Evidence, Origin, Warning
from triage.ranks.host_orders import HostOrder
from triage.ranks.identity import JobMap
from triage.ranks.layouts import Layout
from triage.ranks.separate_groups import Membership
from triage.records import (
    host_pairs,
    pairing_lines,
)
from triage.records.activity import Activity

_MOST_SHARED = 1 << 12
_TEXTS_OF_FACT = ("kind", "component", "text", "source", "excerpt", "rank_basis")

Read = Callable[[int, int], bytes]
"""Reads so many bytes from an offset of a source on."""


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What is known of a source from its first lines: its layout, and the activity of its first writers.

    It stays valid while the source grows. `year` is for timestamps without one. `has_one_writer`: its name is that of
    a rank.
    """

    layout: Layout
    year: int
    head_activity: tuple[Activity, ...]
    has_one_writer: bool = False


@dataclass(frozen=True, slots=True)
class ExtractedSource:
    """What one source gives without the others: the activity at its start and end, and its facts.

    `earlier` is the activity, further back, of writers that its end does not show. `lost` counts lines that Ray left
    out. `is_wrapped`: its lines stand in log wrappers that other files have not. `pairings` are what its lines join,
    `host_pairs` the names of one host. `stating_lines` are the first lines that may state a version, an address or the
    size of the job. `is_snapshot`: it shows a process from outside, and no process wrote it.
    `may_state_settings`: its start may; `has_logged_calls`: NCCL logs calls near its start or end. `silent_ranks` wrote
    nothing, although lower and higher ones write in it.
    """

    head: tuple[Activity, ...]
    tail: tuple[Activity, ...]
    earlier: tuple[Activity, ...]
    facts: tuple[Evidence, ...]
    lost: int
    is_wrapped: bool
    pairings: tuple[pairing_lines.Pairing, ...] = ()
    host_pairs: tuple[host_pairs.HostPair, ...] = ()
    host_orders: tuple[HostOrder, ...] = ()
    memberships: tuple[Membership, ...] = ()
    stating_lines: str = ""
    is_snapshot: bool = False
    may_state_settings: bool = False
    has_logged_calls: bool = False
    silent_ranks: tuple[int, ...] = ()


@dataclass
class ExtractedJob:
    """Everything read from the texts of a job, before any reasoning.

    `versions` has the first version of each program that any text states, `stated_versions` all of them.
    `shared_events` are (event, source, origin) of events that all hosts see at the same moment. `year` is for
    timestamps without one. `wrapped_sources` are those whose lines stand in log wrappers, `sources_with_settings` those
    whose start may state settings, `sources_with_calls` those in which NCCL logs calls.
    """

    facts: list[Evidence] = field(default_factory=list)
    job: JobMap = field(default_factory=JobMap)
    activity: list[tuple[str, Activity]] = field(default_factory=list)
    head_activity: list[tuple[str, Activity]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    stated_versions: dict[str, set[str]] = field(default_factory=dict)
    shared_events: list[tuple[str, str, Origin]] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    year: int = 1970
    wrapped_sources: set[str] = field(default_factory=set)
    sources_with_settings: set[str] = field(default_factory=set)
    sources_with_calls: set[str] = field(default_factory=set)


def pack(extracted: ExtractedSource) -> Any:
    """Return what one process sends to another, as JSON can carry it: a detail stands behind the name of its class."""
    packed = msgspec.to_builtins(extracted)
    for row, fact in zip(packed["facts"], extracted.facts, strict=True):
        if fact.detail is not None:
            row["detail"] = [type(fact.detail).__name__, row["detail"]]
    return packed


def unpack(packed: Any, shared: dict[str, str] | None = None) -> ExtractedSource:
    """Return what was packed. Equal texts are one object: facts of a source repeat their texts and names.

    `shared` has texts of earlier sources, which those of a job repeat too; the texts of this one are added.
    """
    shared = {} if shared is None else shared
    if len(shared) > _MOST_SHARED:
        shared.clear()
    share = shared.setdefault
    for row in packed["facts"]:
        for name in _TEXTS_OF_FACT:
            row[name] = share(row[name], row[name])
        fields = row["fields"]
        for name, text in fields.items():
            fields[name] = share(text, text)
    return msgspec.convert(packed, share_type(ExtractedSource), dec_hook=_unpack_details)


def _unpack_details(_: type, row: Any) -> Any:
    """Return the details that were packed with the name of their class."""
    return msgspec.convert(row[1], share_type(DETAILS[row[0]]))
