"""Tracebacks below a heading that says whose they are: `[Rank 1 Error Snippet]:`, `Error on rank 3:`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from triage import evidence
from triage.model import Block, Evidence
from triage.ranks.stated_ranks import read_stated_ranks
from triage.records.text import Text

_LONGEST = 300
_ENDS = (":", "=", "-", "#", "*")


def extract_below_heading(block: Block, text: Text, read: Callable[[int, int], bytes]) -> list[Evidence]:
    """Return the facts in a block; those of a traceback without a rank have the one that the line above it names."""
    rank = _rank_above(block, text, read) if block.form == "traceback" and _has_no_rank(block) else None
    if rank is None:
        return evidence.extract(block)
    below = dataclasses.replace(block, origin=dataclasses.replace(block.origin, rank=rank))
    return [dataclasses.replace(fact, rank_basis="stated") for fact in evidence.extract(below)]


def _has_no_rank(block: Block) -> bool:
    return block.origin.rank is None and block.origin.local_rank is None and not block.ambiguous and not block.writers


def _rank_above(block: Block, text: Text, read: Callable[[int, int], bytes]) -> int | None:
    """Return the one rank that the line above a block names as a heading."""
    start = max(0, block.offset - _LONGEST)
    before = read(start, block.offset - start)
    at = before.rstrip(b"\n").rfind(b"\n") + 1
    if not before.endswith(b"\n") or (not at and start):
        return None
    line = before[at:].rstrip()
    if b"ank" not in line.lower() or not line.endswith(tuple(end.encode() for end in _ENDS)):
        return None
    lines = text.parse_line(line, start + at)
    stated = read_stated_ranks(lines[-1].parsed.text) if lines else None
    is_one = stated is not None and stated.part == "rank" and len(stated.numbers) == 1
    return stated.numbers[0] if stated is not None and is_one else None
