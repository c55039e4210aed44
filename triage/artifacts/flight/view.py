"""What a page shows of a recording: its faults, and the state of every call by group and rank.

Calls in one state form runs, and ranks with equal runs form one row, so that a thousand ranks with two thousand calls
each stay a small picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from triage.artifacts.flight.first_calls import find_first_calls
from triage.artifacts.flight.grid import Grid, group_grids
from triage.artifacts.flight.model import STARTED, Analysis, Bools, Fault, Ints, Recording, operation_name
from triage.base.errors import OptionError
from triage.model.evidence import Warning

State = Literal["lost", "done", "open", "missing", "differs", "unknown", "queued"]
STATES: tuple[State, ...] = ("lost", "done", "open", "missing", "differs", "unknown", "queued")
"""lost: dropped from the ring buffer; open: the rank waits here; missing: not entered; unknown: the dump ends early;
queued: entered behind an open call of the same rank."""
AROUND = 20
"""Sequence numbers shown on each side of the chosen one."""


@dataclass(frozen=True, slots=True)
class Run:
    """Columns `first` to `last` (indices into the lane's `seqs`) in one state."""

    first: int
    last: int
    state: State


@dataclass(frozen=True, slots=True)
class Row:
    """Ranks whose calls are in the same states."""

    ranks: tuple[int, ...]
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """One group: its members, the shown sequence numbers, the operation of most ranks at each, and its rows by rank."""

    group: str
    members: tuple[int, ...]
    seqs: tuple[int, ...]
    ops: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class View:
    """Everything that the text, JSON and HTML pages show."""

    path: str
    ranks: tuple[int, ...]
    entries: int
    versions: tuple[str, ...]
    analysis: Analysis
    lanes: tuple[Lane, ...]
    warnings: tuple[Warning, ...]
    stacks: bool


def view(
    recording: Recording,
    analysis: Analysis,
    *,
    path: str = "",
    group: str = "",
    around: int | None = None,
    warnings: Sequence[Warning] = (),
) -> View:
    """Return the view of the groups whose label or name is `group`, or whose description contains it.

    With `around`, only the calls near this sequence number are shown. Raises OptionError when there is no such group.
    """
    chosen = _choose_groups(recording, group)
    calls = find_first_calls(recording)
    first_rows = np.array(sorted(row for rows in calls.values() for row in rows), dtype=np.int64)
    lanes = [
        _lane(recording, grid, around, first_rows)
        for grid in group_grids(recording)
        if not group or grid.number in chosen
    ]
    labels = {recording.groups[number].label for number in chosen}
    return View(
        path=path,
        ranks=tuple(recording.dumps),
        entries=len(recording.table.seq),
        versions=tuple(sorted({dump.version for dump in recording.dumps.values() if dump.version})),
        analysis=replace(analysis, faults=tuple(_faults_of(analysis.faults, labels)) if group else analysis.faults),
        lanes=tuple(lane for lane in lanes if lane.seqs),
        warnings=(*warnings, *(Warning(code, source, message) for code, source, message in analysis.notes)),
        stacks=len(recording.stacks) > 1,
    )


def _choose_groups(recording: Recording, group: str) -> list[int]:
    """The numbers of the groups that match `group`."""
    chosen = [
        number
        for number, each in enumerate(recording.groups)
        if group in (each.label, each.name) or (group and group in each.desc)
    ]
    if group and not chosen:
        names = ", ".join(each.label for each in recording.groups[:12])
        raise OptionError(
            f"no group is called {group!r}",
            hint=f"groups in the dumps: {names}" if names else "the dumps name no group",
        )
    return chosen


def _faults_of(faults: Sequence[Fault], labels: set[str]) -> Iterable[Fault]:
    """The faults of the chosen groups and their causes, with `explained_by` renumbered."""
    wanted = {index for index, fault in enumerate(faults) if fault.group in labels}
    todo = list(wanted)
    while todo:
        more = set(faults[todo.pop()].explained_by) - wanted
        wanted |= more
        todo += more
    order = {old: new for new, old in enumerate(sorted(wanted))}
    for index in sorted(wanted):
        yield replace(faults[index], explained_by=tuple(order[cause] for cause in faults[index].explained_by))


def _lane(recording: Recording, grid: Grid, around: int | None, first_rows: Ints) -> Lane:
    columns = np.arange(len(grid.seqs)) if around is None else np.flatnonzero(np.abs(grid.seqs - around) <= AROUND)
    usual, states = _states(grid, columns)
    cells = grid.cell[:, columns]
    is_queued = (states == STATES.index("open")) & ~np.isin(cells, first_rows)
    states[is_queued & (recording.table.state[cells] != STARTED)] = STATES.index("queued")
    names = tuple(operation_name(recording.ops[int(recording.table.op[cell])]) if cell >= 0 else "" for cell in usual)
    rows: dict[bytes, list[int]] = {}
    for row, rank in enumerate(grid.ranks):
        rows.setdefault(states[row].tobytes(), []).append(rank)
    lane_rows = [Row(tuple(ranks), _runs(np.frombuffer(key, dtype=np.int8))) for key, ranks in rows.items()]
    return Lane(grid.group.label, grid.group.members, tuple(grid.seqs[columns].tolist()), names, tuple(lane_rows))


def _states(grid: Grid, columns: Ints) -> tuple[list[int], Ints]:
    """The cell of the usual call in each column, and the states of all cells as indices of STATES."""
    cell, done = grid.cell[:, columns], grid.done[:, columns]
    present = cell >= 0
    seqs = grid.seqs[columns]
    states = np.where(present, np.where(done, 1, 2), 3).astype(np.int8)
    states[~present & (seqs[None, :] < grid.begin[:, None])] = 0
    states[~present & (seqs[None, :] > grid.end[:, None]) & grid.is_truncated[:, None]] = 5
    usual = [int(cell[int(present[:, column].argmax()), column]) for column in range(len(columns))]
    for column in np.flatnonzero(_varied(grid, columns, present)).tolist():
        parts = [part[:, columns[column]] for part in (grid.op, grid.size, grid.dtype)]
        signature = np.stack(parts, axis=1)[present[:, column]]
        _, first, inverse, counts = np.unique(
            signature, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        most = int(counts.argmax())
        there = np.flatnonzero(present[:, column])
        usual[column] = int(cell[there[first[most]], column])
        odd = there[inverse.reshape(-1) != most] if counts.max() * 2 > len(there) else there
        states[odd, column] = 4
    return usual, states


def _varied(grid: Grid, columns: Ints, present: Bools) -> Bools:
    """The columns in which ranks called with different signatures."""
    varied = np.zeros(len(columns), dtype=np.bool_)
    for part in (grid.op, grid.size, grid.dtype):
        values = part[:, columns]
        high = np.where(present, values, np.iinfo(np.int64).min).max(axis=0)
        varied |= present.any(axis=0) & (high != np.where(present, values, np.iinfo(np.int64).max).min(axis=0))
    return varied


def _runs(states: Ints) -> tuple[Run, ...]:
    if not len(states):
        return ()
    starts = np.flatnonzero(np.r_[True, states[1:] != states[:-1]])
    ends = [*(int(start) - 1 for start in starts[1:]), len(states) - 1]
    return tuple(Run(int(first), last, STATES[int(states[first])]) for first, last in zip(starts, ends, strict=True))
