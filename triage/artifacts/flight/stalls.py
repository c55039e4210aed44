"""Where one process group stalls: the first wrong column of its grid, with the ranks that wait there or are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from triage.artifacts.flight.grid import Grid
from triage.artifacts.flight.model import SCHEDULED, STARTED, Bools, Ints, Recording

Kind = Literal[
    "calls-differ",
    "sizes-differ",
    "dtypes-differ",
    "absent",
    "no-dump",
    "possible-member",
    "partial",
    "not-started",
    "stuck",
]


@dataclass(frozen=True, slots=True)
class Stall:
    """A call of one group that does not end, or ends wrong.

    `waiting` ranks stand in column `column` of the grid, `absent` have not entered it, `without_dump` left no dump that
    could show it. `odd` are the ranks at fault in a stall that explains itself: their call differs, or only they have
    not started or finished it. Kind "possible-member": the dumps do not list the group's members, and the `absent`
    ranks, which wait in no call, may be some of them.
    """

    grid: Grid
    column: int
    kind: Kind
    waiting: frozenset[int]
    absent: frozenset[int] = frozenset()
    without_dump: frozenset[int] = frozenset()
    odd: frozenset[int] = frozenset()
    tied: bool = False

    @property
    def seq(self) -> int:
        """The sequence number of the call."""
        return int(self.grid.seqs[self.column])

    def cell(self, rank: int) -> int:
        """Return the row of the table with a rank's call in this column, -1 for none."""
        return int(self.grid.cell[self.grid.row(rank), self.column])

    @property
    def unfinished(self) -> frozenset[int]:
        """The waiting ranks that have not finished the call."""
        return frozenset(rank for rank in self.waiting if not self.grid.done[self.grid.row(rank), self.column])


@dataclass(frozen=True, slots=True)
class GroupExamination:
    """What one group shows.

    `stall` is where it stalls, `older` the ranks whose dump is older than those of the others, `lost` the ranks whose
    ring buffer no longer holds the stalled call.
    """

    stall: Stall | None
    older: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


def examine_group(recording: Recording, grid: Grid) -> GroupExamination:
    """Find the first thing that is wrong in the group."""
    older, open_calls = _open_calls(grid)
    older_ranks = tuple(np.array(grid.ranks)[older].tolist())
    waits: Bools = np.logical_or.reduce(open_calls, axis=0)
    stop = _first(waits)
    differ = _first(_unequal(grid.op, grid.present))
    if differ is not None and (stop is None or differ <= stop):
        return GroupExamination(_differing(grid, differ, "calls-differ", grid.op), older_ranks, _lost(grid, differ))
    if stop is None:
        # Types never differ on purpose: with the same number of bytes the call goes through, with a wrong result.
        wrong = _first(_unequal(grid.dtype, grid.present))
        stall = None if wrong is None else _differing(grid, wrong, "dtypes-differ", grid.dtype)
        return GroupExamination(stall, older_ranks)
    if mismatch := _mismatch(grid, stop, waits):
        return GroupExamination(mismatch, older_ranks, _lost(grid, stop))
    waiting = frozenset(np.array(grid.ranks)[open_calls[:, stop]].tolist())
    if missing := _missing(grid, stop, waiting, older):
        return GroupExamination(missing, older_ranks)
    return GroupExamination(_all_entered(recording, grid, stop, waiting), older_ranks, _lost(grid, stop))


def _open_calls(grid: Grid) -> tuple[Bools, Bools]:
    """The ranks (rows) whose dump is older than the others', and the cells of all other ranks that are not done."""
    open_calls: Bools = grid.present & ~grid.done
    # Where a rank has finished a call that needs all ranks, all had entered it: a call that is open before it comes
    # from an older dump.
    finished = np.flatnonzero((grid.done & grid.present & grid.needs_all).any(axis=0))
    frontier = int(finished[-1]) if len(finished) else -1
    frontier_seq = int(grid.seqs[frontier]) if frontier >= 0 else -1
    older: Bools = (grid.end < frontier_seq) & (grid.begin <= frontier_seq) & ~grid.is_truncated
    if frontier > 0:
        older = np.logical_or(older, open_calls[:, :frontier].any(axis=1))
    open_calls[older] = False
    open_calls[:, : max(frontier, 0)] = False
    return older, open_calls


def _mismatch(grid: Grid, stop: int, waits: Bools) -> Stall | None:
    """A stall whose calls have other sizes or types, in the first column where ranks wait."""
    signatures: tuple[tuple[Kind, Ints], ...] = (("sizes-differ", grid.size), ("dtypes-differ", grid.dtype))
    for kind, signature in signatures:
        if _first(np.logical_and(_unequal(signature, grid.present), waits)) == stop:
            return _differing(grid, stop, kind, signature)
    return None


def _missing(grid: Grid, stop: int, waiting: frozenset[int], older: Bools) -> Stall | None:
    """A stall that some ranks have not entered, or whose members left no dump that could show it."""
    names, present = np.array(grid.ranks), grid.present[:, stop]
    expected = (grid.begin <= grid.seqs[stop]) & ~present
    absent = frozenset(names[expected & (grid.end < grid.seqs[stop]) & ~grid.is_truncated & ~older].tolist())
    without_dump = frozenset(grid.group.members) - frozenset(grid.ranks)
    without_dump |= frozenset(names[(grid.is_truncated | older) & ~present].tolist())
    if not absent and not without_dump:
        return None
    return Stall(grid, stop, "absent" if absent else "no-dump", waiting, absent, without_dump)


def _all_entered(recording: Recording, grid: Grid, stop: int, waiting: frozenset[int]) -> Stall | None:
    """All members entered the same call, so the program is right: the stall names who has not started or finished."""
    if len(grid.ranks) == 1:
        return None
    finished = frozenset(np.array(grid.ranks)[grid.present[:, stop] & grid.done[:, stop]].tolist())
    if finished:
        stuck = frozenset(rank for rank in finished if _waits_later(grid, rank, stop)) or _timed_out(
            recording, grid, stop, waiting
        )
        return Stall(grid, stop, "partial", waiting | stuck, odd=waiting) if stuck else None
    states = {rank: int(recording.table.state[int(grid.cell[grid.row(rank), stop])]) for rank in waiting}
    behind = frozenset(rank for rank, state in states.items() if state == SCHEDULED)
    started = frozenset(rank for rank, state in states.items() if state == STARTED)
    if behind and started:
        return Stall(grid, stop, "not-started", waiting, odd=behind)
    return Stall(grid, stop, "stuck", waiting, odd=waiting)


def mark_possible_members(stalls: Sequence[Stall], ranks: Iterable[int]) -> list[Stall]:
    """Return the stalls, with ranks that wait in no call as possible members of groups that list none.

    Only a group's first call can miss members that no entry shows.
    """
    idle = frozenset(ranks) - {rank for stall in stalls for rank in stall.unfinished}
    return [
        replace(stall, kind="possible-member", absent=idle - frozenset(stall.grid.ranks), odd=frozenset())
        if stall.kind == "stuck"
        and stall.column == 0
        and not stall.grid.group.has_stated_members
        and idle - frozenset(stall.grid.ranks)
        else stall
        for stall in stalls
    ]


def _waits_later(grid: Grid, rank: int, column: int) -> bool:
    row = grid.row(rank)
    return bool((grid.present[row, column + 1 :] & ~grid.done[row, column + 1 :]).any())


def _timed_out(recording: Recording, grid: Grid, column: int, waiting: frozenset[int]) -> frozenset[int]:
    """The waiting ranks, where the watchdog gave the call up (retired, not done); else the call may be about to end."""
    retired = recording.table.retired
    return waiting if any(retired[int(grid.cell[grid.row(rank), column])] for rank in waiting) else frozenset()


def _unequal(signature: Ints, present: Bools) -> Bools:
    """Columns in which the ranks that made a call do not have the same signature."""
    high = np.where(present, signature, np.iinfo(np.int64).min).max(axis=0)
    low = np.where(present, signature, np.iinfo(np.int64).max).min(axis=0)
    unequal: Bools = np.logical_and(high != low, present.any(axis=0))
    return unequal


def _first(columns: Bools) -> int | None:
    numbers = np.flatnonzero(columns)
    return int(numbers[0]) if len(numbers) else None


def _differing(grid: Grid, column: int, kind: Kind, signature: Ints) -> Stall:
    """The stall whose odd ranks have another signature than most ranks; `tied` where two halves differ."""
    values = {rank: int(signature[row, column]) for row, rank in enumerate(grid.ranks) if grid.cell[row, column] >= 0}
    (usual, most), *others = Counter(values.values()).most_common()
    tied = bool(others) and others[0][1] == most
    odd = frozenset(rank for rank, value in values.items() if value != usual or tied)
    absent = frozenset(
        rank for row, rank in enumerate(grid.ranks) if grid.cell[row, column] < 0 and grid.end[row] < grid.seqs[column]
    )
    return Stall(grid, column, kind, frozenset(values), absent - frozenset(values), odd=odd, tied=tied)


def _lost(grid: Grid, column: int) -> tuple[int, ...]:
    """Ranks whose ring buffer has already dropped this column."""
    return tuple(rank for row, rank in enumerate(grid.ranks) if grid.begin[row] > grid.seqs[column])
