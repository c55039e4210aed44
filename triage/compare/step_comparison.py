"""Compare one quantity of many ranks step by step: do they agree, which rank is odd, are they comparable?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from triage.compare.quantities import Agreement, RankValue

ROUNDING = 1e-5  # relative difference of printed numbers that may come from rounding
MIN_DIGITS = 4  # a loss with fewer digits can be equal by chance
# Other ranks are odd only if at least this share of at least this many ranks has the same value.
MIN_RANKS, MAJORITY = 3, 2 / 3
MIN_PRESENT = 0.8  # share of the ranks that must print a step for a comparison

Row = Mapping[int, RankValue]


@dataclass(frozen=True, slots=True)
class StepComparison:
    """The values of all ranks at one step, compared.

    `outcome`: all equal, some ranks odd against a clear majority, or mixed without one. `usual` is the most frequent
    value, `other` one that differs. `odd` is empty unless the outcome is odd.
    """

    outcome: Literal["equal", "odd", "mixed"]
    odd: tuple[int, ...] = ()
    usual: RankValue | None = None
    other: RankValue | None = None
    ranks: tuple[int, ...] = ()


def group_by_step(values: Sequence[RankValue]) -> dict[int | None, dict[int, RankValue]]:
    """Step to rank to value, of the last attempt only; a later line of the same step replaces an earlier one."""
    last = max((value.attempt for value in values), default=0)
    table: dict[int | None, dict[int, RankValue]] = {}
    for value in sorted(values, key=lambda value: (value.source, value.offset)):
        if value.attempt == last:
            table.setdefault(value.step, {})[value.rank] = value
    return table


def list_common_steps(table: Mapping[int | None, Row]) -> Sequence[int | None]:
    """The steps that (nearly) all ranks print, in order. Values without a step count only when no value has one."""
    fewest = max(2, MIN_PRESENT * len({rank for row in table.values() for rank in row}))
    if any(step is not None for step in table):
        return sorted(step for step, row in table.items() if step is not None and len(row) >= fewest)
    return [None] if len(table.get(None, {})) >= fewest else []


def compare_step(row: Row) -> StepComparison:
    """Compare the values of the ranks at one step."""
    usual = _most_frequent(list(row.values()))
    odd = tuple(sorted(rank for rank, value in row.items() if not are_equal(value, usual)))
    if not odd:
        return StepComparison("equal", usual=usual)
    other = row[odd[0]]
    if len(row) >= MIN_RANKS and len(row) - len(odd) >= MAJORITY * len(row):
        return StepComparison("odd", odd, usual, other, tuple(row))
    return StepComparison("mixed", (), usual, other, tuple(row))


def _most_frequent(values: Sequence[RankValue]) -> RankValue:
    """The value that most ranks have; of equally frequent ones that of the lowest rank."""
    counts = Counter(value.text for value in values)
    most = max(counts.values())
    return min((value for value in values if counts[value.text] == most), key=lambda value: value.rank)


def are_equal(one: RankValue, other: RankValue) -> bool:
    """Equal, up to rounding where the quantity is a number."""
    if one.text.lower() == other.text.lower():
        return True
    if one.number is None or other.number is None:
        return False
    if one.number != one.number or other.number != other.number:
        return one.number != one.number and other.number != other.number
    return abs(one.number - other.number) <= ROUNDING * max(abs(one.number), abs(other.number))


def are_comparable(agreement: Agreement, rows: Mapping[int | None, Row]) -> bool:
    """Whether the values show that these ranks should agree.

    Ranks that differ at every step, or in halves, have different values by design.
    """
    compared = [(row, compare_step(row)) for row in rows.values()]
    equal_count = sum(one.outcome == "equal" for _, one in compared)
    odd = [(one.odd, len(row) - len(one.odd)) for row, one in compared if one.outcome == "odd"]
    if agreement != "maybe":
        return bool(equal_count or odd) or agreement == "exact"
    values = (value for row, _ in compared for value in row.values() if not _is_nan(value.number))
    if not all(_count_digits(value.text) >= MIN_DIGITS for value in values):
        return False
    same_odd = len(odd) > 1 and len({ranks for ranks, _ in odd}) == 1
    return equal_count > 1 or (same_odd and min(others for _, others in odd) >= MIN_RANKS)


def _is_nan(number: float | None) -> bool:
    return number is not None and number != number


def _count_digits(text: str) -> int:
    return len(text.lower().partition("e")[0].replace(".", "").lstrip("+-0"))


def format_difference(usual: RankValue, other: RankValue) -> str:
    """` (60 % more)` or ` (3.1e-05 relative)`; empty if one value is no number, or the usual one is 0."""
    if not usual.number or other.number is None or _is_nan(usual.number) or _is_nan(other.number):
        return ""
    share = (other.number - usual.number) / abs(usual.number)
    if abs(share) < 0.001:
        return f" ({abs(share):.1e} relative)"
    return f" ({abs(share) * 100:.3g} % {'more' if share > 0 else 'less'})"
