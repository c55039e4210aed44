"""Which of two ways through the program is the odd one: calls that only some ranks ever make, calls skipped, swapped or
made once too often.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from triage.artifacts.flight.blocks import Block
from triage.artifacts.flight.grid import Grid
from triage.artifacts.flight.model import Recording, Rule

Shift = Literal["extra", "missing", "swapped", ""]


@dataclass(frozen=True, slots=True)
class Extra:
    """`who` made a call in `column` at a place of the program where the others never were."""

    who: int
    column: int
    by_odd: bool


def only_some(recording: Recording, grid: Grid, odd: Iterable[int], others: Iterable[int], column: int) -> Extra | None:
    """The first call up to `column` that only one side ever makes, while the other side is where both have been."""
    one, other = min(odd, default=None), min(others, default=None)
    if one is None or other is None:
        return None
    own, theirs = set(odd), set(others)
    found = [
        Extra(one if by_odd else other, at, by_odd)
        for by_odd, (mine, peer, peers) in ((True, (one, other, theirs)), (False, (other, one, own)))
        if (at := _first_extra(recording, grid, mine, peer, peers, column)) is not None
    ]
    return min(found, key=lambda extra: (extra.column, not extra.by_odd), default=None)


def _first_extra(recording: Recording, grid: Grid, mine: int, peer: int, peers: set[int], column: int) -> int | None:
    import numpy as np

    table = recording.table
    my_cells, peer_cells = (grid.cell[grid.row(rank), : column + 1] for rank in (mine, peer))
    both = np.flatnonzero(my_cells >= 0)
    my_stacks = table.stack[my_cells[both]]
    known = [dump for rank in sorted(peers) if (dump := recording.dumps.get(rank))]
    visited = np.unique(
        np.concatenate([table.stack[dump.start : dump.end] for dump in known[:64]] or [np.zeros(0, dtype=np.int32)])
    )
    dump = recording.dumps[mine]
    mine_too = np.unique(table.stack[dump.start : dump.end])
    for at in both[(my_stacks != 0) & ~np.isin(my_stacks, visited)].tolist():
        there = peer_cells[at]
        if there < 0 and at == column:
            return int(at)
        if there >= 0 and table.stack[there] != 0 and table.stack[there] in mine_too:
            return int(at)
    return None


def shifted(recording: Recording, grid: Grid, odd: int, usual: int, column: int) -> tuple[Shift, int] | None:
    """From where on up to `column` are the places of one rank those of the other, one call earlier or later?"""
    stacks = recording.table.stack
    mine, theirs = (
        [int(stacks[cell]) if cell >= 0 else 0 for cell in grid.cell[grid.row(rank), : column + 1].tolist()]
        for rank in (odd, usual)
    )
    length = max((at + 1 for at, stack in enumerate(mine) if stack), default=0)
    start = next((at for at in range(length) if mine[at] and theirs[at] and mine[at] != theirs[at]), None)
    if start is None or length - start < 2:
        return None
    if mine[start:length] == theirs[start + 1 : length + 1]:
        return "missing", start
    if mine[start + 1 : length] == theirs[start : length - 1]:
        return "extra", start
    return None


def visited_by(recording: Recording, row: int, ranks: Iterable[int]) -> bool:
    """Has one of the ranks made a call at this row's place, other than in the row's own collective?"""
    table = recording.table
    stack, seq, group = table.stack[row], table.seq[row], table.group[row]
    for rank in ranks:
        dump = recording.dumps.get(rank)
        if dump is not None:
            part = slice(dump.start, dump.end)
            if ((table.stack[part] == stack) & ((table.seq[part] != seq) | (table.group[part] != group))).any():
                return True
    return False


def shift(block: Block, odd: int, usual: int) -> Shift:
    """What the calls after the difference say: the odd rank has one more, one fewer, or two in the other order."""
    mine, theirs = (_calls(block.grid, rank, block.column) for rank in (odd, usual))
    if len(mine) > 1 and len(theirs) > 1 and mine[0] == theirs[1] and mine[1] == theirs[0] and mine[2:4] == theirs[2:4]:
        return "swapped"
    both = min(len(mine), len(theirs))
    if mine[1:both] == theirs[1:both]:
        return ""  # they go on alike, whether the calls are shifted cannot be seen
    more = min(len(mine) - 1, len(theirs))
    fewer = min(len(mine), len(theirs) - 1)
    extra = more if more > 0 and mine[1 : more + 1] == theirs[:more] else 0
    missing = fewer if fewer > 0 and mine[:fewer] == theirs[1 : fewer + 1] else 0
    return "extra" if extra > missing else "missing" if missing > extra else ""


def _calls(grid: Grid, rank: int, column: int, most: int = 64) -> list[tuple[int, int, int]]:
    row = grid.row(rank)
    there = [at for at in range(column, min(grid.cell.shape[1], column + most)) if grid.cell[row, at] >= 0]
    return [(int(grid.op[row, at]), int(grid.size[row, at]), int(grid.dtype[row, at])) for at in there]


PLAIN: dict[str, Rule] = {
    "calls-differ": "divergent-call",
    "sizes-differ": "shape-mismatch",
    "dtypes-differ": "dtype-mismatch",
}
