"""The states of the ranks as rows of marks, which the reports share."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.rank_ranges import format_rank_numbers
from triage.model import Diagnosis, RankState
from triage.render.phrases import STATE_MARKS

MOST_ROWS = 100
"""Rows that a report shows at most: of 100,000 ranks whose states alternate, every row is another."""


@dataclass(frozen=True)
class GridRow:
    """One mark for each rank from `first` to `last`; a row of equal rows ends at the last of them."""

    first: int
    last: int
    marks: str


def grid_rows(states: Sequence[RankState], cells: int, origins: Iterable[int] = ()) -> list[GridRow]:
    """Return rows of `cells` marks, each starting at a multiple of `cells`; equal rows without `origins` are merged.

    A rank without a state is a space inside a row; a row without any rank is left out.
    """
    rows: dict[int, list[str]] = {}
    for state in states:
        rows.setdefault(state.rank // cells, [" "] * cells)[state.rank % cells] = STATE_MARKS[state.state]
    merged: list[GridRow] = []
    origin_rows = {rank // cells for rank in origins}
    for number in sorted(rows):
        marks = "".join(rows[number]).rstrip()
        first, last = number * cells, number * cells + len(marks) - 1
        mergeable = origin_rows.isdisjoint((number, number - 1)) and len(marks) == cells
        if mergeable and merged and merged[-1].marks == marks and merged[-1].last == first - 1:
            merged[-1] = GridRow(merged[-1].first, last, marks)
        else:
            merged.append(GridRow(first, last, marks))
    return merged


def select_rows(rows: Sequence[GridRow], origins: Iterable[int]) -> tuple[list[GridRow], str]:
    """Return all rows, or of too many the first ones and those where the failure began; and a line on the others."""
    if len(rows) <= MOST_ROWS:
        return list(rows), ""
    starts = [row.first for row in rows]
    began = sorted({max(0, bisect.bisect_right(starts, rank) - 1) for rank in origins})
    shown = sorted({*range(MOST_ROWS // 2), *began[: MOST_ROWS // 2]})
    return [
        rows[number] for number in shown
    ], f"… {len(rows) - len(shown):,} more rows; JSON has the state of each rank"


def origin_ranks(diagnosis: Diagnosis) -> tuple[int, ...]:
    """Return the ranks where the failure began; none if they are more than half of all."""
    ranks = diagnosis.root_cause.ranks if diagnosis.root_cause is not None else ()
    return ranks if 2 * len(ranks) <= len(diagnosis.ranks) else ()


def format_origin_mark(row: GridRow, origins: Iterable[int], room: int) -> str:
    """Return what follows a row of marks: `  < 170`, shorter without room; empty if the failure began elsewhere."""
    ranks = [rank for rank in origins if row.first <= rank <= row.last]
    text = f"  < {format_rank_numbers(ranks)}" if ranks else ""
    return text if len(text) <= room else "  <" if room > 2 else ""


def state_legend(states: Sequence[RankState]) -> str:
    """Return the marks that occur with their meaning and count: `F failed (1)   . ok (7)`."""
    counts = {state: sum(1 for item in states if item.state == state) for state in STATE_MARKS}
    return "   ".join(f"{STATE_MARKS[state]} {state} ({count})" for state, count in counts.items() if count)
