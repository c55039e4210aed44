"""What was promised: the revision and the fingerprint of every signature that ever shipped, and the ids that are gone
for good.

`lock.tsv` beside the signatures holds id, revision, fingerprint of `match` and fingerprint of `leads_to`. A change of
`match`
without a new revision is refused, so that a stored finding can always be told from what the signature says today. Ids
that
are taken out stand in `retired.tsv` with a reason, and are never used again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from triage.catalog.model import Signature

LOCK = "lock.tsv"
RETIRED = "retired.tsv"
HEAD = "# id\trevision\tmatch\tleads_to; written by `make docs`, which refuses a new `match` under an old revision\n"
Remark = tuple[str, tuple[str, ...], str, str]  # severity, key of the signature, message, hint


@dataclass(frozen=True, slots=True)
class Entry:
    revision: int
    match: str
    edges: str


def entry(signature: Signature) -> Entry:
    edges = json.dumps(
        [[edge.signature, edge.scope, edge.window] for edge in signature.leads_to], separators=(",", ":")
    )
    return Entry(signature.revision, signature.fingerprint, hashlib.sha256(edges.encode()).hexdigest()[:12])


def read(base: Path | None) -> dict[str, Entry]:
    """What the directory has recorded; nothing if it keeps no record. Lines that are no entry are passed over."""
    found = {}
    for row in _rows(base, LOCK):
        if len(row) == 4 and row[1].isascii() and row[1].isdigit():
            found[row[0]] = Entry(int(row[1]), row[2], row[3])
    return found


def retired(base: Path | None) -> dict[str, str]:
    """Ids that are never used again, with the reason."""
    return {row[0]: row[1] if len(row) > 1 else "" for row in _rows(base, RETIRED)}


def remarks(signature: Signature, known: Mapping[str, Entry], gone: Mapping[str, str]) -> list[Remark]:
    """What the record says against this signature."""
    if signature.id in gone:
        return [
            (
                "error",
                ("id",),
                f"the id {signature.id} was retired: {gone[signature.id]}",
                "ids are never used again; choose another",
            )
        ]
    old, new = known.get(signature.id), entry(signature)
    if not known or old == new:
        return []
    if old is None:
        return [("info", ("id",), f"{signature.id} is new here", "`make docs` records its revision and fingerprint")]
    if new.match != old.match and new.revision == old.revision:
        hint = f"set `revision: {old.revision + 1}`, then run `make docs`"
        return [
            (
                "error",
                ("match",),
                f"`match` is not that of revision {old.revision} ({new.match}, not {old.match})",
                hint,
            )
        ]
    if new.revision < old.revision:
        return [
            ("error", ("revision",), f"the revision was {old.revision} already", f"set `revision: {old.revision + 1}`")
        ]
    if new.match == old.match and new.revision != old.revision:
        return [
            (
                "error",
                ("revision",),
                "the revision is raised, but `match` is the same",
                f"set `revision: {old.revision}`",
            )
        ]
    what = "leads_to" if new.edges != old.edges else "revision"
    return [
        (
            "error",
            (what,),
            f"`{what}` is not what {LOCK} has recorded",
            f"if it is meant, run `make docs`, which writes {LOCK}",
        )
    ]


def missing(known: Mapping[str, Entry], whole: Iterable[str], gone: Mapping[str, str]) -> list[str]:
    """Ids that were recorded and are neither there nor retired."""
    return sorted(set(known) - set(whole) - set(gone))


def text(signatures: Iterable[Signature], known: Mapping[str, Entry]) -> str:
    """The record after these signatures. ValueError for a new `match` under an old revision, which nobody may record."""
    entries = {**known}
    for signature in signatures:
        old, new = known.get(signature.id), entry(signature)
        if old is not None and (
            (old.match != new.match) != (old.revision != new.revision) or new.revision < old.revision
        ):
            raise ValueError(
                f"{signature.id}: `match` and `revision` change together; `triage catalog check` says which is to be mended"
            )
        entries[signature.id] = new
    return HEAD + "".join(f"{name}\t{of.revision}\t{of.match}\t{of.edges}\n" for name, of in sorted(entries.items()))


def _rows(base: Path | None, name: str) -> list[list[str]]:
    try:
        lines = (base / name).read_text(encoding="utf-8").splitlines() if base else []
    except (OSError, UnicodeDecodeError):
        return []
    return [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]
