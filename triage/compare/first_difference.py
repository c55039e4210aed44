"""Find the first step at which a quantity differs, by bisection in a few of the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.compare import step_comparison
from triage.compare.observed_values import ObservedValues
from triage.compare.quantities import RankValue
from triage.compare.step_comparison import Row, StepComparison

_MAX_SEARCHED_FILES = 6  # files in which the first differing step is searched
_MAX_CONFIRMING_FILES = 64  # files that are read at that step to compare all ranks


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """Where a quantity first differs: the last equal step, the first differing one and the values there."""

    key: str
    equal_step: int | None
    step: int | None
    comparison: StepComparison


def find_first_difference(
    key: str, rows: Mapping[int | None, Row], compared: Mapping[int | None, StepComparison], values: ObservedValues
) -> FirstDifference:
    """The first difference, as exactly as the files allow. At one of the compared steps the writers must differ."""
    differing = next(step for step, item in compared.items() if item.outcome != "equal")
    steps = [step for step, item in compared.items() if step is not None and item.outcome == "equal"]
    equal = max((step for step in steps if differing is not None and step < differing), default=None)
    if differing is None or equal is None:
        return FirstDifference(key, equal, differing, compared[differing])
    everyone = list(rows[differing].values())
    selected = _select_values(compared[differing])
    equal, first, comparison = _bisect(key, (equal, differing), compared[differing], selected, values)
    if first != differing and len({value.source for value in everyone}) <= _MAX_CONFIRMING_FILES:
        row = _read_row_near(key, first, (first - 1, first + 1), everyone, values)
        whole = step_comparison.compare_step(row[1]) if row else comparison
        comparison = whole if whole.outcome != "equal" else comparison
    return FirstDifference(key, equal, first, comparison)


def _bisect(
    key: str,
    between: tuple[int, int],
    comparison: StepComparison,
    selected: Sequence[RankValue],
    values: ObservedValues,
) -> tuple[int, int, StepComparison]:
    """Narrow the steps between an equal and a differing one, by reading the selected writers only."""
    equal, differing = between
    while differing - equal > 1:
        step_and_row = _read_row_near(key, (equal + differing) // 2, (equal, differing), selected, values)
        if step_and_row is None:
            break
        step, row = step_and_row
        if step_comparison.compare_step(row).outcome == "equal":
            equal = step
        else:
            differing, comparison = step, _move_comparison(comparison, row)
    return equal, differing, comparison


def _move_comparison(known: StepComparison, row: Row) -> StepComparison:
    """The comparison of all writers with the values of a few at an earlier step; those stand first in their groups."""
    groups = (sorted(group, key=lambda value: (value.writer not in row, value.writer)) for group in known.groups)
    return StepComparison(known.outcome, tuple(tuple(row.get(one.writer, one) for one in group) for group in groups))


def _select_values(comparison: StepComparison) -> list[RankValue]:
    """Values of writers of all groups, whose files are read: the first of each group, then the second of each."""
    most = max(map(len, comparison.groups))
    turns = (group[number] for number in range(most) for group in comparison.groups if number < len(group))
    return [value for value, _ in zip(turns, range(_MAX_SEARCHED_FILES), strict=False)]


def _read_row_near(
    key: str, step: int, between: tuple[int, int], selected: Sequence[RankValue], values: ObservedValues
) -> tuple[int, Row] | None:
    """(step, values of the selected writers) at the logged step between two others that is nearest to `step`."""
    near = values.finders[selected[0].source].find_nearest_step(key, step, *between)
    if near is None:
        return None
    sources = dict.fromkeys(value.source for value in selected)
    row = {value.writer: value for source in sources for value in values.read_step(source, key, near)}
    return (near, row) if {value.writer for value in selected} <= set(row) else None
