"""Which of two ways through the program is the odd one.

Ranks differ by calls that only some of them ever make, or by calls that they skip, swap or make once too often.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from triage.artifacts.flight.grid import Grid
from triage.artifacts.flight.model import Recording, Rule
from triage.artifacts.flight.stalls import Stall

Shift = Literal["extra", "missing", "swapped", ""]
RULE_OF_KIND: dict[str, Rule] = {
    "calls-differ": "divergent-call",
    "sizes-differ": "shape-mismatch",
    "dtypes-differ": "dtype-mismatch",
}
_MAX_DUMPS = 64


@dataclass(frozen=True, slots=True)
class PartialCall:
    """A call of `rank` in `column`, at a place of the program that the other side never visits."""

    rank: int
    column: int
    by_odd: bool


def find_partial_call(
    recording: Recording, grid: Grid, odd: Iterable[int], others: Iterable[int], column: int
) -> PartialCall | None:
    """Return the first call up to `column` that only one side ever makes, where the sides have gone the same way."""
    odd_rank, other_rank = min(odd, default=None), min(others, default=None)
    if odd_rank is None or other_rank is None:
        return None
    odd_ranks, other_ranks = set(odd), set(others)
    calls = [
        PartialCall(rank, first, by_odd)
        for by_odd, rank, peer, peers in (
            (True, odd_rank, other_rank, other_ranks),
            (False, other_rank, odd_rank, odd_ranks),
        )
        if (first := _first_partial(recording, grid, rank, peer, peers, column)) is not None
    ]
    return min(calls, key=lambda call: (call.column, not call.by_odd), default=None)


def _first_partial(recording: Recording, grid: Grid, rank: int, peer: int, peers: set[int], column: int) -> int | None:
    """The first column where `rank` called at a place that no peer visits, while `peer` is where `rank` has been."""
    stacks = recording.table.stack
    cells, peer_cells = (grid.cell[grid.row(each), : column + 1] for each in (rank, peer))
    called = np.flatnonzero(cells >= 0)
    called_stacks = stacks[cells[called]]
    dumps = [dump for each in sorted(peers) if (dump := recording.dumps.get(each))][:_MAX_DUMPS]
    visited = np.unique(
        np.concatenate([stacks[dump.start : dump.end] for dump in dumps] or [np.zeros(0, dtype=np.int32)])
    )
    dump = recording.dumps[rank]
    visited_by_rank = np.unique(stacks[dump.start : dump.end])
    for candidate in called[(called_stacks != 0) & ~np.isin(called_stacks, visited)].tolist():
        peer_cell = peer_cells[candidate]
        if peer_cell < 0 and candidate == column:
            return int(candidate)
        if peer_cell >= 0 and stacks[peer_cell] != 0 and stacks[peer_cell] in visited_by_rank:
            return int(candidate)
    return None


def find_shift(recording: Recording, grid: Grid, odd: int, usual: int, column: int) -> tuple[Shift, int] | None:
    """Return how and from which column the places of one rank are those of the other, one call earlier or later."""
    stacks = recording.table.stack
    mine, theirs = (
        [int(stacks[cell]) if cell >= 0 else 0 for cell in grid.cell[grid.row(rank), : column + 1].tolist()]
        for rank in (odd, usual)
    )
    length = max((index + 1 for index, stack in enumerate(mine) if stack), default=0)
    start = next(
        (index for index in range(length) if mine[index] and theirs[index] and mine[index] != theirs[index]), None
    )
    if start is None or length - start < 2:
        return None
    if mine[start:length] == theirs[start + 1 : length + 1]:
        return "missing", start
    if mine[start + 1 : length] == theirs[start : length - 1]:
        return "extra", start
    return None


def was_visited_by(recording: Recording, row: int, ranks: Iterable[int]) -> bool:
    """Return whether one of the ranks called from this row's place in another collective than the row's own."""
    table = recording.table
    stack, seq, group = table.stack[row], table.seq[row], table.group[row]
    for rank in ranks:
        dump = recording.dumps.get(rank)
        if dump is not None:
            part = slice(dump.start, dump.end)
            if ((table.stack[part] == stack) & ((table.seq[part] != seq) | (table.group[part] != group))).any():
                return True
    return False


def classify_shift(stall: Stall, odd: int, usual: int) -> Shift:
    """Return whether the later calls show that the odd rank has one more, one fewer, or two in the other order."""
    mine, theirs = (_calls(stall.grid, rank, stall.column) for rank in (odd, usual))
    if len(mine) > 1 and len(theirs) > 1 and mine[0] == theirs[1] and mine[1] == theirs[0] and mine[2:4] == theirs[2:4]:
        return "swapped"
    both = min(len(mine), len(theirs))
    if mine[1:both] == theirs[1:both]:
        return ""  # equal calls follow, so a shift would not show
    more = min(len(mine) - 1, len(theirs))
    fewer = min(len(mine), len(theirs) - 1)
    extra = more if more > 0 and mine[1 : more + 1] == theirs[:more] else 0
    missing = fewer if fewer > 0 and mine[:fewer] == theirs[1 : fewer + 1] else 0
    return "extra" if extra > missing else "missing" if missing > extra else ""


def _calls(grid: Grid, rank: int, column: int, limit: int = 64) -> list[tuple[int, int, int]]:
    """Operation, size and type of a rank's calls from a column on."""
    row = grid.row(rank)
    columns = [each for each in range(column, min(grid.cell.shape[1], column + limit)) if grid.cell[row, each] >= 0]
    return [(int(grid.op[row, each]), int(grid.size[row, each]), int(grid.dtype[row, each])) for each in columns]
