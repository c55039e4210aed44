"""What is shown of a recording: its faults, and for every group and rank the runs of sequence numbers that are in one
state.

Runs instead of cells, and rows that look alike as one row: so a thousand ranks with two thousand calls each stay a
small picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from triage.artifacts.flight import grid as grids_
from triage.artifacts.flight.model import Analysis, Bools, Fault, Ints, Recording
from triage.artifacts.flight.places import name_of
from triage.base.errors import OptionError
from triage.model.evidence import Warning

State = Literal["lost", "done", "open", "missing", "differs", "unknown"]
STATES: tuple[State, ...] = ("lost", "done", "open", "missing", "differs", "unknown")
"""lost: the ring had dropped it; open: entered and not done; missing: not entered; unknown: the dump ends early."""
AROUND = 20


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
    """One group: its members, the sequence numbers that are shown, what most ranks called there, and its rows in the
    order of ranks.
    """

    group: str
    members: tuple[int, ...]
    seqs: tuple[int, ...]
    ops: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class View:
    """What the renderers are given."""

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
    """The view of the groups whose label, name or description holds `group`, and of the numbers near `around`.

    Raises OptionError when there is no such group.
    """
    chosen = [
        number
        for number, each in enumerate(recording.groups)
        if group in (each.label, each.name) or (group and group in each.desc)
    ]
    if group and not chosen:
        known = ", ".join(each.label for each in recording.groups[:12]) or "none"
        raise OptionError(f"no group is called {group!r}", hint=f"the dumps know: {known}")
    lanes = [_lane(recording, each, around) for each in grids_.grids(recording) if not group or each.number in chosen]
    labels = {recording.groups[number].label for number in chosen}
    faults = tuple(_kept(analysis.faults, labels)) if group else analysis.faults
    told = [Warning(code, source, message) for code, source, message in analysis.notes]
    return View(
        path=path,
        ranks=tuple(recording.dumps),
        entries=len(recording.table.seq),
        versions=tuple(sorted({dump.version for dump in recording.dumps.values() if dump.version})),
        analysis=Analysis(faults, analysis.no_dump, analysis.stragglers, analysis.notes),
        lanes=tuple(lane for lane in lanes if lane.seqs),
        warnings=(*warnings, *told),
        stacks=len(recording.stacks) > 1,
    )


def _kept(faults: Sequence[Fault], labels: set[str]) -> Iterable[Fault]:
    """The faults of the chosen groups and what they follow from; their numbers stay right."""
    wanted = {index for index, fault in enumerate(faults) if fault.group in labels}
    todo = list(wanted)
    while todo:
        more = set(faults[todo.pop()].explained_by) - wanted
        wanted |= more
        todo += more
    order = {old: new for new, old in enumerate(sorted(wanted))}
    from dataclasses import replace

    for index in sorted(wanted):
        yield replace(faults[index], explained_by=tuple(order[cause] for cause in faults[index].explained_by))


def _lane(recording: Recording, grid: grids_.Grid, around: int | None) -> Lane:
    import numpy as np

    keep = np.arange(len(grid.seqs)) if around is None else np.flatnonzero(np.abs(grid.seqs - around) <= AROUND)
    usual, states = _states(grid, keep)
    names = tuple(name_of(recording.ops[int(recording.table.op[cell])]) if cell >= 0 else "" for cell in usual)
    rows: dict[bytes, list[int]] = {}
    for row, rank in enumerate(grid.ranks):
        rows.setdefault(states[row].tobytes(), []).append(rank)
    made = [Row(tuple(ranks), _runs(np.frombuffer(key, dtype=np.int8))) for key, ranks in rows.items()]
    return Lane(grid.group.label, grid.group.members, tuple(grid.seqs[keep].tolist()), names, tuple(made))


def _states(grid: grids_.Grid, keep: Ints) -> tuple[list[int], Ints]:
    """The cell that stands for each column, and the states of all cells as indices of STATES."""
    import numpy as np

    cell, done = grid.cell[:, keep], grid.done[:, keep]
    present = cell >= 0
    seqs = grid.seqs[keep]
    states = np.where(present, np.where(done, 1, 2), 3).astype(np.int8)
    states[~present & (seqs[None, :] < grid.begin[:, None])] = 0
    states[~present & (seqs[None, :] > grid.end[:, None]) & grid.blind[:, None]] = 5
    usual = [int(cell[int(present[:, column].argmax()), column]) for column in range(len(keep))]
    for column in np.flatnonzero(_varied(grid, keep, present)).tolist():
        signature = np.stack([part[:, keep[column]] for part in (grid.op, grid.size, grid.dtype)], axis=1)[
            present[:, column]
        ]
        kinds, first, inverse, counts = np.unique(
            signature, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        most = int(counts.argmax())
        there = np.flatnonzero(present[:, column])
        usual[column] = int(cell[there[first[most]], column])
        odd = there[inverse.reshape(-1) != most] if counts.max() * 2 > len(there) else there
        states[odd, column] = 4
        del kinds
    return usual, states


def _varied(grid: grids_.Grid, keep: Ints, present: Bools) -> Bools:
    import numpy as np

    varied = np.zeros(len(keep), dtype=np.bool_)
    for part in (grid.op, grid.size, grid.dtype):
        values = part[:, keep]
        high = np.where(present, values, np.iinfo(np.int64).min).max(axis=0)
        varied |= present.any(axis=0) & (high != np.where(present, values, np.iinfo(np.int64).max).min(axis=0))
    return varied


def _runs(states: Ints) -> tuple[Run, ...]:
    import numpy as np

    if not len(states):
        return ()
    starts = np.flatnonzero(np.r_[True, states[1:] != states[:-1]])
    ends = [*(int(start) - 1 for start in starts[1:]), len(states) - 1]
    return tuple(Run(int(first), last, STATES[int(states[first])]) for first, last in zip(starts, ends, strict=True))
