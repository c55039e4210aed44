"""The lock file: revision and fingerprint of every signature that ever shipped, and the retired ids.

`lock.tsv` beside the signatures holds id, revision, fingerprint of `match` and fingerprint of `leads_to`. A change of
`match` without a new revision is refused (the rows of a table share its revision, so that some rows get a new one
without a new `match`): a stored finding then always shows whether today's signature still matches
the same. Removed ids are listed in `retired.tsv` with a reason and are never used again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from triage.catalog.model import Signature
from triage.catalog.problems import Remark

LOCK = "lock.tsv"
RETIRED = "retired.tsv"
HEADER = "# id\trevision\tmatch\tleads_to; written by `make docs`, which refuses a new `match` under an old revision\n"


@dataclass(frozen=True, slots=True)
class LockEntry:
    """What is recorded of one signature: revision, fingerprint of `match`, fingerprint of its edges."""

    revision: int
    match: str
    edges: str


def make_entry(signature: Signature) -> LockEntry:
    """The entry of a signature as it is now."""
    edges = [[edge.signature, edge.scope, edge.window] for edge in signature.causal_edges]
    digest = hashlib.sha256(json.dumps(edges, separators=(",", ":")).encode()).hexdigest()[:12]
    return LockEntry(signature.revision, signature.fingerprint, digest)


def read_lock(base: Path | None) -> dict[str, LockEntry]:
    """The entries of a directory by id; empty without a lock file. Malformed lines are skipped."""
    return {
        row[0]: LockEntry(int(row[1]), row[2], row[3])
        for row in _read_rows(base, LOCK)
        if len(row) == 4 and row[1].isascii() and row[1].isdigit()
    }


def read_retired(base: Path | None) -> dict[str, str]:
    """Ids that must never be used again, with the reason."""
    return {row[0]: row[1] if len(row) > 1 else "" for row in _read_rows(base, RETIRED)}


def check_signature(
    signature: Signature, recorded: Mapping[str, LockEntry], retired: Mapping[str, str]
) -> Iterator[Remark]:
    """Where the signature contradicts the lock file."""
    old, new = recorded.get(signature.id), make_entry(signature)
    if signature.id in retired:
        message = f"the id {signature.id} was retired: {retired[signature.id]}"
        yield "error", ("id",), message, "ids are never used again; choose another one"
    elif not recorded or old == new:
        return
    elif old is None:
        yield "info", ("id",), f"{signature.id} is new here", "`make docs` records its revision and fingerprint"
    elif new.match != old.match and new.revision == old.revision:
        message = f"`match` changed, but the revision is still {old.revision} ({new.match}, not {old.match})"
        yield "error", ("match",), message, f"set `revision: {old.revision + 1}`, then run `make docs`"
    elif new.revision < old.revision:
        message = f"the revision was already {old.revision}"
        yield "error", ("revision",), message, f"set `revision: {old.revision + 1}`"
    elif new.match == old.match and new.revision != old.revision and not signature.table:
        message = "the revision is higher, but `match` is the same"
        yield "error", ("revision",), message, f"set `revision: {old.revision}`"
    else:
        key = "leads_to" if new.edges != old.edges else "revision"
        yield "error", (key,), f"`{key}` differs from {LOCK}", f"if that is intended, run `make docs` to update {LOCK}"


def find_missing_ids(recorded: Mapping[str, LockEntry], known: Iterable[str], retired: Mapping[str, str]) -> list[str]:
    """Ids that are recorded, but neither exist nor are retired."""
    return sorted(set(recorded) - set(known) - set(retired))


def format_lock(signatures: Iterable[Signature], recorded: Mapping[str, LockEntry]) -> str:
    """The new text of the lock file. ValueError for a new `match` under an old revision."""
    entries = {**recorded}
    for signature in signatures:
        old, new = recorded.get(signature.id), make_entry(signature)
        if old is not None and (
            (old.match != new.match and old.revision == new.revision)
            or (old.match == new.match and old.revision != new.revision and not signature.table)
            or new.revision < old.revision
        ):
            hint = "run `triage catalog check` to see which one to fix"
            raise ValueError(f"{signature.id}: `match` and `revision` must change together; {hint}")
        entries[signature.id] = new
    rows = (f"{name}\t{entry.revision}\t{entry.match}\t{entry.edges}\n" for name, entry in sorted(entries.items()))
    return HEADER + "".join(rows)


def _read_rows(base: Path | None, name: str) -> list[list[str]]:
    try:
        lines = (base / name).read_text(encoding="utf-8").splitlines() if base else []
    except (OSError, UnicodeDecodeError):
        return []
    return [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]
