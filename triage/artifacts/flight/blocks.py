"""Where one group stands still: the first column of its grid that did not go as it should, and who is in it, waits or
is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from triage.artifacts.flight.grid import Grid
from triage.artifacts.flight.model import SCHEDULED, STARTED, Bools, Ints, Recording

Kind = Literal[
    "calls-differ", "sizes-differ", "dtypes-differ", "absent", "unseen", "outside", "partial", "not-started", "stuck"
]


@dataclass(frozen=True, slots=True)
class Block:
    """`waiting` ranks stand in column `column` of the grid, `absent` have not come to it, `unseen` left no dump that
    could tell,
    `odd` are those at fault in a block that explains itself (their call differs, or they alone have not started or
    finished it).
    "outside": the group's members are not stated, and `absent` ranks that wait nowhere may be some of them."""

    grid: Grid
    column: int
    kind: Kind
    waiting: frozenset[int]
    absent: frozenset[int] = frozenset()
    unseen: frozenset[int] = frozenset()
    odd: frozenset[int] = frozenset()
    tied: bool = False

    @property
    def seq(self) -> int:
        return int(self.grid.seqs[self.column])

    def cell(self, rank: int) -> int:
        return int(self.grid.cell[self.grid.row(rank), self.column])

    @property
    def standing(self) -> frozenset[int]:
        """Those of the waiting that are not through."""
        return frozenset(rank for rank in self.waiting if not self.grid.done[self.grid.row(rank), self.column])


@dataclass(frozen=True, slots=True)
class Seen:
    """What one group shows: where it stands still, ranks whose dump is older than the others', and ranks whose ring no
    longer holds what is needed.
    """

    block: Block | None
    older: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


def examine(recording: Recording, grid: Grid) -> Seen:
    """The first thing that is wrong in the group."""
    import numpy as np

    present, done = grid.present, grid.done
    # Where somebody has finished a call that needs all, all had come to it: what stands open before is of an older
    # dump.
    finished = np.flatnonzero((done & present & grid.needs_all).any(axis=0))
    frontier = int(finished[-1]) if len(finished) else -1
    rank_frontier = int(grid.seqs[frontier]) if frontier >= 0 else -1
    older = (grid.end < rank_frontier) & (grid.begin <= rank_frontier) & ~grid.blind
    if frontier > 0:
        older = np.logical_or(older, (present & ~done)[:, :frontier].any(axis=1))
    differ = _first(_unequal(grid.op, present))
    open_ = present & ~done
    open_[older] = False
    open_[:, : max(frontier, 0)] = False
    waits: Bools = np.logical_or.reduce(open_, axis=0)
    stop = _first(waits)
    names = np.array(grid.ranks)
    older_ranks = tuple(names[older].tolist())
    if differ is not None and (stop is None or differ <= stop):
        return Seen(_differing(grid, differ, "calls-differ", grid.op), older_ranks, _lost(grid, differ))
    if stop is None:
        # Types are never meant to differ: where the bytes are as many, the call went through, with garbage as its
        # result.
        garbage = _first(_unequal(grid.dtype, present))
        return Seen(None if garbage is None else _differing(grid, garbage, "dtypes-differ", grid.dtype), older_ranks)
    sizes = _first(np.logical_and(_unequal(grid.size, present), waits))
    types = _first(np.logical_and(_unequal(grid.dtype, present), waits))
    expected = (grid.begin <= grid.seqs[stop]) & ~present[:, stop]
    absent = expected & (grid.end < grid.seqs[stop]) & ~grid.blind & ~older
    for column, kind, signature in ((sizes, "sizes-differ", grid.size), (types, "dtypes-differ", grid.dtype)):
        if column == stop:
            return Seen(_differing(grid, stop, kind, signature), older_ranks, _lost(grid, stop))  # type: ignore[arg-type]
    waiting = frozenset(names[open_[:, stop]].tolist())
    no_dump = frozenset(grid.group.members) - frozenset(grid.ranks)
    unseen = no_dump | frozenset(names[(grid.blind | older) & ~present[:, stop]].tolist())
    if absent.any():
        return Seen(Block(grid, stop, "absent", waiting, frozenset(names[absent].tolist()), unseen), older_ranks)
    if unseen:
        return Seen(Block(grid, stop, "unseen", waiting, frozenset(), unseen), older_ranks)
    return Seen(_all_there(recording, grid, stop, waiting, names), older_ranks, _lost(grid, stop))


def _all_there(recording: Recording, grid: Grid, stop: int, waiting: frozenset[int], names: Ints) -> Block | None:
    """All members came, with the same call: the program is right. Who has finished, who has started?"""
    if len(grid.ranks) == 1:
        return None
    finished = frozenset(names[grid.present[:, stop] & grid.done[:, stop]].tolist())
    if finished:
        held = frozenset(rank for rank in finished if _waits_later(grid, rank, stop)) or _timed_out(
            recording, grid, stop, waiting
        )
        return Block(grid, stop, "partial", waiting | held, odd=waiting) if held else None
    states = {rank: int(recording.table.state[int(grid.cell[grid.row(rank), stop])]) for rank in waiting}
    behind = frozenset(rank for rank, state in states.items() if state == SCHEDULED)
    started = frozenset(rank for rank, state in states.items() if state == STARTED)
    if behind and started:
        return Block(grid, stop, "not-started", waiting, odd=behind)
    return Block(grid, stop, "stuck", waiting, odd=waiting)


def outside(blocks: Sequence[Block], ranks: Iterable[int]) -> list[Block]:
    """Where a group without stated members stands in its very first call, whoever waits nowhere may be the member that
    is missing.
    """
    standing = {rank for block in blocks for rank in block.standing}
    idle = frozenset(ranks) - standing
    return [
        replace(block, kind="outside", absent=idle - frozenset(block.grid.ranks), odd=frozenset())
        if block.kind == "stuck"
        and block.column == 0
        and not block.grid.group.stated
        and idle - frozenset(block.grid.ranks)
        else block
        for block in blocks
    ]


def _waits_later(grid: Grid, rank: int, column: int) -> bool:
    row = grid.row(rank)
    return bool((grid.present[row, column + 1 :] & ~grid.done[row, column + 1 :]).any())


def _timed_out(recording: Recording, grid: Grid, column: int, waiting: frozenset[int]) -> frozenset[int]:
    """What is retired and not done was given up by the watchdog, so it is no call that was just about to end."""
    given_up = [rank for rank in waiting if recording.table.retired[int(grid.cell[grid.row(rank), column])]]
    return waiting if given_up else frozenset()


def _unequal(signature: Ints, present: Bools) -> Bools:
    """Columns in which the ranks that are there do not have the same signature."""
    import numpy as np

    high = np.where(present, signature, np.iinfo(np.int64).min).max(axis=0)
    low = np.where(present, signature, np.iinfo(np.int64).max).min(axis=0)
    unequal: Bools = np.logical_and(high != low, present.any(axis=0))
    return unequal


def _first(columns: Bools) -> int | None:
    import numpy as np

    found = np.flatnonzero(columns)
    return int(found[0]) if len(found) else None


def _differing(grid: Grid, column: int, kind: Kind, signature: Ints) -> Block:
    """Who is odd: those whose signature is not that of most. Of two halves neither is, and that is said."""
    values = {rank: int(signature[row, column]) for row, rank in enumerate(grid.ranks) if grid.cell[row, column] >= 0}
    (usual, most), *others = Counter(values.values()).most_common()
    tied = bool(others) and others[0][1] == most
    odd = frozenset(rank for rank, value in values.items() if value != usual or tied)
    absent = frozenset(
        rank for row, rank in enumerate(grid.ranks) if grid.cell[row, column] < 0 and grid.end[row] < grid.seqs[column]
    )
    return Block(grid, column, kind, frozenset(values), absent - frozenset(values), odd=odd, tied=tied)


def _lost(grid: Grid, column: int) -> tuple[int, ...]:
    """Ranks whose ring has already dropped this column."""
    return tuple(rank for row, rank in enumerate(grid.ranks) if grid.begin[row] > grid.seqs[column])
