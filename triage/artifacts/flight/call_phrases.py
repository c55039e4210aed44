"""What the ranks of a stall called, as parts of sentences and as call sites."""

from __future__ import annotations

from collections.abc import Iterable

from triage.artifacts.flight.model import (
    CallSite,
    Frame,
    Recording,
    call_site_of,
    format_location,
    format_operation,
    location_of,
)
from triage.artifacts.flight.stalls import Stall
from triage.base.rank_ranges import format_ranks

_MAX_CALL_SITES = 4


def find_first_row(stall: Stall) -> int:
    """The row of the table with the stalled call of the first rank that waits."""
    return stall.cell(min(stall.standing or stall.entered))


def list_call_sites(recording: Recording, stall: Stall) -> list[CallSite]:
    """The different calls in this column with the ranks that made them, then the last calls of the absent ranks."""
    calls: dict[tuple[int, ...], list[int]] = {}
    table = recording.table
    for row, rank in enumerate(stall.grid.ranks):
        cell = int(stall.grid.cell[row, stall.column])
        if cell >= 0:
            key = (int(table.op[cell]), int(table.shape[cell]), int(table.dtype[cell]), int(table.stack[cell]))
            calls.setdefault(key, []).append(rank)
    ordered = sorted(calls.values(), key=lambda ranks: (not set(ranks) & stall.odd, len(ranks), ranks[0]))
    sites = [call_site_of(recording, stall.cell(ranks[0]), ranks) for ranks in ordered[:_MAX_CALL_SITES]]
    return sites + _list_last_calls(recording, stall)[:_MAX_CALL_SITES]


def _list_last_calls(recording: Recording, stall: Stall) -> list[CallSite]:
    """The different last calls of the absent ranks, in the order of their first ranks."""
    ranks_of: dict[tuple[str, tuple[Frame, ...]], list[int]] = {}
    for rank in sorted(stall.absent):
        last = _last_row(recording, rank)
        if last is not None:
            site = call_site_of(recording, last, ())
            ranks_of.setdefault((site.call, site.stack), []).append(rank)
    return [CallSite(tuple(ranks), f"last call: {call}", stack) for (call, stack), ranks in ranks_of.items()]


def _last_row(recording: Recording, rank: int) -> int | None:
    dump = recording.dumps.get(rank)
    return dump.end - 1 if dump is not None and dump.entries else None


def format_last_call(recording: Recording, ranks: Iterable[int]) -> str:
    """What the first of the ranks did last, as the end of a sentence."""
    rank = min(ranks)
    row = _last_row(recording, rank)
    if row is None:
        return f"; the dump of rank {rank} holds no call" if rank in recording.dumps else ""
    state = "done" if recording.table.done[row] else "not done"
    call = format_operation(recording, row) + location_of(recording, row)
    return f"; the last call of rank {rank} was {call} ({state})"


def format_callers(recording: Recording, stall: Stall, ranks: frozenset[int]) -> str:
    """Return `rank 2 called broadcast [64] Float at train.py:22`."""
    return f"{format_ranks(ranks)} called {describe_call(recording, stall.cell(min(ranks)))}"


def describe_call(recording: Recording, row: int) -> str:
    """`all_reduce [64] Float at train.py:22`."""
    site = call_site_of(recording, row, ())
    return f"{site.call}{format_location(site.stack)}"
