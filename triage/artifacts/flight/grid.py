"""One process group as a grid: rows are ranks, columns sequence numbers, and each cell holds the call of that rank."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from triage.artifacts.flight.model import Bools, Group, Ints, Recording, Shape

# Sizes that must be equal on all ranks: those of the output, or none; of all other calls, those of the input.
_BY_OUTPUT = ("scatter",)
_FREE = ("all_to_all", "alltoall", "coalesced", "send", "recv", "barrier")
_NO_WAIT = frozenset(("broadcast", "reduce", "scatter", "gather", "_broadcast_oop", "_reduce_oop", "send", "recv"))
"""Calls that a rank can finish before the others enter: they do not prove that all ranks entered."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The calls of one group; all two-dimensional arrays have the shape (ranks, sequence numbers).

    `cell` holds the row in the table of the call's first entry, -1 where the rank has none. `begin` is the first
    sequence number that a rank's dump could show, `end` the last that it has enqueued, both by its entries and
    `pg_status`; `is_truncated`: what follows `end` is not known. The signatures of a cell (`op`, `size`, `dtype`) are
    equal where the calls are equal, and a `dtype` of 0 is not known. `needs_all`: the columns whose call no rank can
    finish alone.
    """

    group: Group
    number: int
    ranks: tuple[int, ...]
    seqs: Ints
    cell: Ints
    op: Ints
    size: Ints
    dtype: Ints
    done: Bools
    begin: Ints
    end: Ints
    is_truncated: Bools
    needs_all: Bools

    @property
    def present(self) -> Bools:
        """The cells that hold a call."""
        return self.cell >= 0

    def row(self, rank: int) -> int:
        """Return the row of a rank."""
        return bisect_left(self.ranks, rank)


def group_grids(recording: Recording) -> Iterator[Grid]:
    """Yield a grid for each group with collectives, in the order of the recording's groups."""
    table = recording.table
    rows = np.flatnonzero(~table.is_p2p)
    rows = rows[np.argsort(table.group[rows], kind="stable")]
    numbers = table.group[rows]
    sizes = size_keys(recording)
    mixed = set(np.unique(table.group[table.is_p2p]).tolist())
    for number in range(len(recording.groups)):
        low, high = np.searchsorted(numbers, [number, number + 1])
        if low < high:
            yield _grid(recording, number, rows[low:high], sizes, has_p2p=number in mixed)


def _grid(recording: Recording, number: int, rows: Ints, size_of: Ints, *, has_p2p: bool) -> Grid:
    table, group = recording.table, recording.groups[number]
    rank_of_row = table.rank[rows]
    ranks = sorted(set(group.members) & set(recording.dumps) | set(np.unique(rank_of_row).tolist()))
    line = np.searchsorted(np.array(ranks), rank_of_row)
    seqs, column = np.unique(table.seq[rows], return_inverse=True)
    shape = (len(ranks), len(seqs))
    place = line * len(seqs) + column
    # Entries of one coalesced call share their number; the first stands for it.
    first, start = np.unique(place, return_index=True)
    cell = np.full(shape, -1, dtype=np.int32)
    cell.flat[first] = rows[start]
    op, size, dtype = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    done = np.zeros(shape, dtype=np.bool_)
    done.flat[first] = table.done[rows[start]]
    for target, values in ((op, _comparable_ops(recording)[table.op[rows]]), (size, size_of[rows])):
        target.flat[first] = values[start] + 1
        if len(first) < len(rows):
            _coalesce(target, place, values)
    dtype.flat[first] = _dtype_keys(recording)[table.dtype[rows]][start]
    if len(first) < len(rows):
        np.logical_and.at(done.reshape(-1), place, table.done[rows])
    begin, end, is_truncated = _reach(recording, ranks, line, table.seq[rows], -1 if has_p2p else number)
    names = np.array([op.partition(":")[2] not in _NO_WAIT for op in recording.ops])
    needs = np.ones(len(seqs), dtype=np.bool_)
    np.logical_and.at(needs, column, names[table.op[rows]])
    return Grid(group, number, tuple(ranks), seqs, cell, op, size, dtype, done, begin, end, is_truncated, needs)


def _comparable_ops(recording: Recording) -> Ints:
    """For every operation a number that is equal where the calls are. Older torch records a barrier as all_reduce."""
    numbers = {op: number for number, op in enumerate(recording.ops)}
    is_mixed = len({dump.version for dump in recording.dumps.values()}) > 1
    ops = [op.replace(":all_reduce_barrier", ":all_reduce") if is_mixed else op for op in recording.ops]
    return np.array([numbers.get(op, number) for number, op in enumerate(ops)], dtype=np.int64)


def _dtype_keys(recording: Recording) -> Ints:
    """For every dtype its number, 0 where it is not recorded: torch before 2.4 writes none."""
    return np.array([number + 1 if dtype else 0 for number, dtype in enumerate(recording.dtypes)], dtype=np.int64)


def _coalesce(target: Ints, place: Ints, values: Ints) -> None:
    """Replace the signature of cells with several entries by one of all of them, in their order."""
    order = np.argsort(place, kind="stable")
    sorted_place = place[order]
    fresh = np.r_[True, sorted_place[1:] != sorted_place[:-1]]
    nth = np.arange(len(order)) - np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    mixed = (values[order].astype(np.uint64) + np.uint64(1)) * (
        nth.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    )
    sums = np.zeros(target.size, dtype=np.uint64)
    np.add.at(sums, sorted_place, mixed)
    many = np.unique(place[order][~fresh])
    target.flat[many] = sums[many].astype(np.int64)


def _reach(recording: Recording, ranks: list[int], line: Ints, seqs: Ints, status_of: int) -> tuple[Ints, Ints, Bools]:
    """The first and last sequence number that each rank's dump can show, and whether what follows is unknown.

    `status_of` is the number of the group whose `pg_status` counts; -1 for none.
    """
    low = np.full(len(ranks), np.iinfo(np.int64).max, dtype=np.int64)
    high = np.full(len(ranks), -1, dtype=np.int64)
    np.minimum.at(low, line, seqs)
    np.maximum.at(high, line, seqs)
    status = [recording.status.get((rank, status_of)) for rank in ranks]
    # Where it contradicts the entries it counts something else.
    if any(each and high[row] not in (-1, each.enqueued) for row, each in enumerate(status)):
        status = [None] * len(ranks)
    is_truncated = np.zeros(len(ranks), dtype=np.bool_)
    for row, (rank, numbers) in enumerate(zip(ranks, status, strict=True)):
        dump = recording.dumps[rank]
        is_truncated[row] = not dump.is_complete or (dump.has_wrapped and high[row] < 0 and numbers is None)
        if not dump.has_wrapped:
            low[row] = -1
        elif numbers:
            low[row] = min(int(low[row]), numbers.completed + 1)
        if numbers and dump.is_complete:
            high[row] = numbers.enqueued
    return low, high, is_truncated


def size_keys(recording: Recording) -> Ints:
    """Return for every entry a number that is equal where the sizes match.

    Counts of elements are compared, because [2, 3] and [6] are equal to a collective.
    """
    table = recording.table
    if not len(table.op):
        return np.zeros(0, dtype=np.int64)
    pairs, index = np.unique(table.op.astype(np.int64) * len(recording.shapes) + table.shape, return_inverse=True)
    numbers: dict[tuple[int, ...], int] = {}
    keys = []
    for pair in pairs.tolist():
        op, shape = divmod(pair, len(recording.shapes))
        counts = comparable(recording.ops[op].partition(":")[2], recording.shapes[shape])
        keys.append(numbers.setdefault(counts, len(numbers)))
    return np.array(keys, dtype=np.int64)[index]


def comparable(op: str, shape: Shape) -> tuple[int, ...]:
    """Return the element counts that must be equal on all ranks of one call; empty where ranks may differ."""
    if op.startswith(_FREE):
        return ()
    if op.startswith(_BY_OUTPUT):
        return tuple(map(math.prod, shape.outputs))
    if op.startswith(("all_gather", "allgather", "_all_gather", "_allgather")) and len(shape.outputs) > 1:
        return tuple(map(math.prod, shape.outputs))  # a list of outputs may be uneven, but is equal on all ranks
    return tuple(map(math.prod, shape.inputs))
