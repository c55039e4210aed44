"""Where process groups stall: the calls in which ranks stand, with the ranks that wait there or are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from triage.artifacts.flight.first_calls import FirstCalls, records_starts
from triage.artifacts.flight.grid import Grid, group_grids
from triage.artifacts.flight.model import SCHEDULED, STARTED, Bools, Ints, Recording

Kind = Literal[
    "calls-differ",
    "sizes-differ",
    "dtypes-differ",
    "missing",
    "no-dump",
    "possible-member",
    "partial",
    "not-started",
    "stuck",
]
Standing = dict[tuple[int, int], frozenset[int]]
"""(number of a group, sequence number) to the ranks whose first open call this is."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A call of one group that does not end, or ends wrong.

    `standing` are the ranks that wait in column `column` of the grid, `entered` all that have made the call, `blocked`
    those of them that stand in an earlier call of their own; `absent` have not made it, and `without_dump` left no dump
    that could show it. `odd` are the ranks at fault in a stall that explains itself: their call differs, or only they
    have not started or finished it. `has_starts`: the dumps say which calls have started. Kind "possible-member": the
    dumps do not list the group's members, and the `absent` ranks, which wait in no call, may be some of them.
    """

    grid: Grid
    column: int
    kind: Kind
    standing: frozenset[int]
    entered: frozenset[int]
    blocked: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()
    without_dump: frozenset[int] = frozenset()
    odd: frozenset[int] = frozenset()
    tied: bool = False
    has_starts: bool = False

    @property
    def seq(self) -> int:
        """The sequence number of the call."""
        return int(self.grid.seqs[self.column])

    def cell(self, rank: int) -> int:
        """Return the row of the table with a rank's call in this column, -1 for none."""
        return int(self.grid.cell[self.grid.row(rank), self.column])

    @property
    def unfinished(self) -> frozenset[int]:
        """The ranks that have made the call and not finished it."""
        return frozenset(rank for rank in self.entered if not self.grid.done[self.grid.row(rank), self.column])

    @property
    def missing(self) -> frozenset[int]:
        """The ranks for which the standing ones wait."""
        if self.kind in ("missing", "possible-member"):
            return self.absent | self.blocked
        return self.without_dump if self.kind == "no-dump" else frozenset()


@dataclass(frozen=True, slots=True)
class Stalls:
    """The stalls of all groups, and the ranks whose dump is older than those of the others."""

    stalls: tuple[Stall, ...]
    older: frozenset[int]


def find_stalls(recording: Recording, first_calls: FirstCalls) -> Stalls:
    """Return a stall for each call in which ranks stand, and for each group whose finished calls differ."""
    grids, older = [], set()
    table = recording.table
    for grid in group_grids(recording):
        older |= set(np.array(grid.ranks)[_is_older(grid)].tolist())
        grids.append(grid)
    standing: dict[tuple[int, int], set[int]] = {}
    for rank, rows in first_calls.items():
        if rows and rank not in older and not table.is_p2p[rows[0]]:
            standing.setdefault((int(table.group[rows[0]]), int(table.seq[rows[0]])), set()).add(rank)
    has_starts = records_starts(recording)
    by_group: dict[int, list[int]] = {}
    for number, seq in sorted(standing):
        by_group.setdefault(number, []).append(seq)
    stalls: list[Stall] = []
    for grid in grids:
        for seq in by_group.get(grid.number, ()):
            ranks = frozenset(standing[grid.number, seq])
            stalls.append(_examine(recording, grid, int(np.searchsorted(grid.seqs, seq)), ranks, older, has_starts))
        if grid.number not in by_group and (differing := _finished_differently(grid)):
            stalls.append(differing)
    idle = frozenset(recording.dumps) - first_calls.keys() - older
    return Stalls(tuple(_mark_possible_members(stalls, idle)), frozenset(older))


def _is_older(grid: Grid) -> Bools:
    """The ranks (rows) that lack a call which others have finished and which needs all ranks: dumped earlier."""
    finished = np.flatnonzero((grid.done & grid.present & grid.needs_all).any(axis=0))
    frontier = int(grid.seqs[finished[-1]]) if len(finished) else -1
    older: Bools = (grid.end < frontier) & (grid.begin <= frontier) & ~grid.is_truncated
    return older


def _finished_differently(grid: Grid) -> Stall | None:
    """Calls that differ and ended all the same. Types never differ on purpose; the result is wrong."""
    kinds: tuple[tuple[Kind, Ints], ...] = (("calls-differ", grid.op), ("dtypes-differ", grid.dtype))
    for kind, signature in kinds:
        column = _first(_unequal(signature, signature != 0))
        if column is not None:
            return _differing(grid, column, kind, signature, frozenset())
    return None


def _examine(
    recording: Recording, grid: Grid, column: int, standing: frozenset[int], older: set[int], has_starts: bool
) -> Stall:
    """What is wrong in a call in which ranks stand, or in an earlier call of the group."""
    earlier = _first(_unequal(grid.op[:, : column + 1], grid.present[:, : column + 1]))
    if earlier is not None:
        return _differing(grid, earlier, "calls-differ", grid.op, standing)
    signatures: tuple[tuple[Kind, Ints], ...] = (("sizes-differ", grid.size), ("dtypes-differ", grid.dtype))
    for kind, signature in signatures:
        if _unequal(signature[:, column : column + 1], signature[:, column : column + 1] != 0)[0]:
            return _differing(grid, column, kind, signature, standing)
    names, seq = np.array(grid.ranks), grid.seqs[column]
    present, is_older = grid.present[:, column], np.isin(names, sorted(older))
    unfinished = present & ~grid.done[:, column] & ~is_older
    # Without an entry, a later number enqueued and this one not finished by `pg_status`: the ring has dropped it.
    is_queued = ~present & (grid.begin <= seq) & (grid.end >= seq) & ~is_older
    states = np.where(unfinished, recording.table.state[grid.cell[:, column]], SCHEDULED)
    started = _ranks(names, unfinished & (states == STARTED))
    entered = _ranks(names, present)
    stall = Stall(grid, column, "missing", standing | started, entered, has_starts=has_starts)
    blocked = _ranks(names, unfinished | is_queued) - standing - started
    absent = _ranks(names, ~present & (grid.end < seq) & ~grid.is_truncated & ~is_older)
    unknown = _ranks(names, ~present & (grid.end < seq) & (grid.is_truncated | is_older))
    without_dump = frozenset(grid.group.members) - frozenset(grid.ranks) | unknown
    if absent or blocked:
        return replace(stall, blocked=blocked, absent=absent, without_dump=without_dump)
    if without_dump:
        return replace(stall, kind="no-dump", without_dump=without_dump)
    return _all_entered(stall, frozenset(standing - started), started)


def _all_entered(stall: Stall, scheduled: frozenset[int], started: frozenset[int]) -> Stall:
    """All members made the same call, so the program is right: the stall names who has not started or finished."""
    grid = stall.grid
    finished = grid.present[:, stall.column] & grid.done[:, stall.column]
    finished |= ~grid.present[:, stall.column] & (grid.begin > stall.seq) & (grid.end >= stall.seq)
    if finished.any():
        return replace(stall, kind="partial", odd=stall.standing)
    if scheduled and started:
        return replace(stall, kind="not-started", odd=scheduled)
    return replace(stall, kind="stuck", odd=stall.standing)


def _ranks(names: Ints, rows: Bools) -> frozenset[int]:
    return frozenset(names[rows].tolist())


def _mark_possible_members(stalls: Sequence[Stall], idle: frozenset[int]) -> Iterable[Stall]:
    """The stalls, with ranks that wait in no call as possible members of groups that list none.

    Only a group's first call can miss members that no entry shows.
    """
    for stall in stalls:
        others = idle - frozenset(stall.grid.ranks)
        if stall.kind == "stuck" and stall.column == 0 and not stall.grid.group.has_stated_members and others:
            yield replace(stall, kind="possible-member", absent=others, odd=frozenset())
        else:
            yield stall


def _unequal(signature: Ints, present: Bools) -> Bools:
    """Columns in which the ranks that made a call do not have the same signature."""
    high = np.where(present, signature, np.iinfo(np.int64).min).max(axis=0)
    low = np.where(present, signature, np.iinfo(np.int64).max).min(axis=0)
    unequal: Bools = np.logical_and(high != low, present.any(axis=0))
    return unequal


def _first(columns: Bools) -> int | None:
    numbers = np.flatnonzero(columns)
    return int(numbers[0]) if len(numbers) else None


def _differing(grid: Grid, column: int, kind: Kind, signature: Ints, standing: frozenset[int]) -> Stall:
    """The stall whose odd ranks have another signature than most ranks; `tied` where two halves differ."""
    values = {rank: int(signature[row, column]) for row, rank in enumerate(grid.ranks) if signature[row, column]}
    (usual, most), *others = Counter(values.values()).most_common()
    tied = bool(others) and others[0][1] == most
    odd = frozenset(rank for rank, value in values.items() if value != usual or tied)
    return Stall(grid, column, kind, standing, frozenset(values), odd=odd, tied=tied)


def find_lost_ranks(recording: Recording, stall: Stall) -> tuple[int, ...]:
    """Return the ranks whose ring buffer has already dropped this call."""
    rows = np.flatnonzero(~stall.grid.present[:, stall.column] & (stall.grid.begin > stall.seq))
    ranks = [stall.grid.ranks[row] for row in rows.tolist()]
    return tuple(rank for rank in ranks if not recording.dumps[rank].only_open)
