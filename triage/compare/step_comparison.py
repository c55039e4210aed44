"""Compare one quantity of many writers step by step: do they agree, who is odd, did they agree before?"""

from __future__ import annotations

import bisect
import functools
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.compare.quantities import Agreement, RankValue, Writer

ROUNDING = 1e-5  # relative difference of printed numbers that may come from rounding
MIN_DIGITS = 4  # a loss with fewer digits can be equal by chance
MOST_CHANCE = 1e-4  # that losses of their own were equal at the first steps
# Other ranks are odd only if at least this share of at least this many ranks has the same value.
MIN_RANKS, MAJORITY = 3, 2 / 3
MIN_PRESENT = 0.8  # share of the ranks that must print a step for a comparison
MIN_DIFFERING = 0.5  # share of the steps after the first differing one that must differ too
_DECIMAL = lazy_re(r"[+-]?\d+(?:\.(?P<fraction>\d*))?(?:[eE](?P<exponent>[+-]?\d+))?")
# Values that ranks with different shares of a model have in common as well: skipped steps, clipped norms.
_COMMON_TO_ALL = (0.0, 1.0)

Row = Mapping[Writer, RankValue]
Difference = Literal["drift", "odd", "none"]
"""Writers agreed and then differ; a few always differ from all others; nothing that tells a fault."""


@dataclass(frozen=True, slots=True)
class StepComparison:
    """The values of all writers at one step, compared.

    `outcome`: all equal, some odd against a clear majority, or mixed without one. `groups` are the values that are
    equal to each other, the largest group first, ordered by writer.
    """

    outcome: Literal["equal", "odd", "mixed"]
    groups: tuple[tuple[RankValue, ...], ...] = ()

    @property
    def odd(self) -> tuple[RankValue, ...]:
        """The values that differ from a clear majority, ordered by writer."""
        if self.outcome != "odd":
            return ()
        return tuple(sorted((one for group in self.groups[1:] for one in group), key=lambda one: one.writer))

    @property
    def writers(self) -> tuple[frozenset[Writer], ...]:
        """The writers of each group."""
        return tuple(frozenset(value.writer for value in group) for group in self.groups)


def group_by_step(values: Sequence[RankValue]) -> dict[int | None, dict[Writer, RankValue]]:
    """Step to writer to value, of the last attempt only; a later line of the same step replaces an earlier one."""
    last = max((value.attempt for value in values), default=0)
    table: dict[int | None, dict[Writer, RankValue]] = {}
    for value in sorted(values, key=lambda value: (value.source, value.offset)):
        if value.attempt == last:
            table.setdefault(value.step, {})[value.writer] = value
    return table


def list_common_steps(table: Mapping[int | None, Row]) -> Sequence[int | None]:
    """The steps that (nearly) all writers print, in order. Values without a step count only when no value has one."""
    fewest = max(2, MIN_PRESENT * len({writer for row in table.values() for writer in row}))
    if any(step is not None for step in table):
        return sorted(step for step, row in table.items() if step is not None and len(row) >= fewest)
    return [None] if len(table.get(None, {})) >= fewest else []


def compare_step(row: Row) -> StepComparison:
    """Compare the values of the writers at one step."""
    groups = _group_equal(list(row.values()))
    if len(groups) == 1:
        return StepComparison("equal", groups)
    is_odd = len(row) >= MIN_RANKS and len(groups[0]) >= MAJORITY * len(row)
    return StepComparison("odd" if is_odd else "mixed", groups)


def _group_equal(values: Sequence[RankValue]) -> tuple[tuple[RankValue, ...], ...]:
    """Groups of equal values. A value joins the first group whose most frequent text it equals."""
    counts = Counter(value.text for value in values)
    groups: list[list[RankValue]] = []
    known = _FirstValues()
    for value in sorted(values, key=lambda value: (-counts[value.text], value.writer)):
        place = known.find_equal(value)
        if place is None:
            known.add(value, len(groups))
            groups.append([value])
        else:
            groups[place].append(value)
    ordered = [tuple(sorted(group, key=lambda value: value.writer)) for group in groups]
    return tuple(sorted(ordered, key=lambda group: (-len(group), group[0].writer)))


class _FirstValues:
    """The first value of each group, by text and by number: of thousands of ranks each may have its own value.

    Numbers are apart by what their last printed digit is worth: so few are near to a value that do not equal it.
    """

    def __init__(self) -> None:
        self._by_text: dict[str, int] = {}
        self._numbers: dict[float, list[tuple[float, int]]] = {}  # sorted (number, place) by the last digit's worth
        self._without_number: list[tuple[int, RankValue]] = []

    def add(self, value: RankValue, place: int) -> None:
        self._by_text.setdefault(value.text.lower(), place)
        if value.number is None or not math.isfinite(value.number):
            self._without_number.append((place, value))
        else:
            bisect.insort(self._numbers.setdefault(_last_digit(value.text), []), (value.number, place))

    def find_equal(self, value: RankValue) -> int | None:
        """Return the place of the first group whose first value equals this one."""
        places = [self._by_text[text]] if (text := value.text.lower()) in self._by_text else []
        if value.number is not None and math.isfinite(value.number):
            places += self._list_near(value.number, _last_digit(value.text))
        elif value.number is not None:
            places += [place for place, other in self._without_number if are_equal(value, other)]
        return min(places, default=None)

    def _list_near(self, number: float, last_digit: float) -> Iterator[int]:
        for digit, numbers in self._numbers.items():
            reach = 1.01 * _tolerance(number, number, last_digit, digit)
            begin = bisect.bisect_left(numbers, (number - reach, -1))
            end = bisect.bisect_right(numbers, (number + reach, sys.maxsize))
            for other, place in numbers[begin:end]:
                if abs(number - other) <= _tolerance(number, other, last_digit, digit):
                    yield place


def are_equal(one: RankValue, other: RankValue) -> bool:
    """Equal; numbers up to rounding, which may change the last printed digit by one."""
    if one.text.lower() == other.text.lower():
        return True
    if one.number is None or other.number is None:
        return False
    if not (math.isfinite(one.number) and math.isfinite(other.number)):
        return one.number == other.number or (math.isnan(one.number) and math.isnan(other.number))
    return abs(one.number - other.number) <= _tolerance(
        one.number, other.number, _last_digit(one.text), _last_digit(other.text)
    )


def _tolerance(one: float, other: float, last_digit: float, other_last_digit: float) -> float:
    """How far two numbers may be apart and still be equal; the last digits are what those printed last are worth."""
    return max(ROUNDING * max(abs(one), abs(other)), 1.001 * max(last_digit, other_last_digit))


@functools.lru_cache(1 << 14)
def _last_digit(text: str) -> float:
    """The worth of the last printed digit of a number with a fraction: 0.001 of `1.234`, 0 of an integer."""
    match = _DECIMAL.match(text)
    if match is None or not match["fraction"]:
        return 0.0
    exponent = max(-300, min(300, int(match["exponent"] or 0) - len(match["fraction"])))
    return float(10.0**exponent)


def classify_difference(
    agreement: Agreement, rows: Mapping[int | None, Row], compared: Mapping[int | None, StepComparison]
) -> Difference:
    """Whether the values show that these writers should agree, and do not.

    Writers that differ at every step, or in halves, have different values by design. So have those that differ now in
    one way and now in another, or only now and then.
    """
    steps = list(compared)
    first = next((place for place, step in enumerate(steps) if compared[step].outcome != "equal"), None)
    if first is None:
        return "none"
    since = [compared[step] for step in steps[first:]]
    differing = [one for one in since if one.outcome != "equal"]
    if len(differing) < MIN_DIFFERING * len(since) or not _are_consistent(differing):
        return "none"
    if agreement == "maybe" and not _have_enough_digits([rows[step] for step in steps]):
        return "none"
    agreed = _count_agreed(agreement, [compared[step] for step in steps[:first]])
    chance = _chance_of_equal(differing) ** (agreed * (_count_writers(differing) - 1)) if agreement == "maybe" else 0.0
    if agreement != "fixed" and agreed >= (2 if agreement == "maybe" else 1) and chance <= MOST_CHANCE:
        return "drift"
    return "odd" if _are_odd(agreement, differing) else "none"


def _are_consistent(differing: Sequence[StepComparison]) -> bool:
    """Whether the same writers differ at all these steps, or more and more of them."""
    places = [{value.writer: place for place, group in enumerate(one.groups) for value in group} for one in differing]
    shared = set(places[0]).intersection(*places[1:])
    together = {tuple(place[writer] for place in places) for writer in shared}
    return len(together) <= max(len(one.groups) for one in differing)


def _count_agreed(agreement: Agreement, equal: Sequence[StepComparison]) -> int:
    """The number of different values on which all agreed; one that never changes shows nothing about numbers."""
    values = [one.groups[0][0] for one in equal]
    if agreement == "exact":
        return len(values)
    stated = [one for one in values if one.number is not None and _is_finite(one.number)]
    texts = {one.text for one in stated if one.number not in _COMMON_TO_ALL}
    return len(texts) if len(texts) > 1 or len(values) == 1 else 0


def _count_writers(compared: Sequence[StepComparison]) -> int:
    return min(sum(map(len, one.groups)) for one in compared)


def _chance_of_equal(differing: Sequence[StepComparison]) -> float:
    """The chance that two writers with values of their own print equal ones at a step: one in the mean difference in
    last digits, if their differences are distributed normally (values within 1.5 digits of each other are equal).
    """
    pairs = [(one.groups[0][0], one.groups[1][0]) for one in differing]
    apart = [
        abs(one.number - other.number) / (max(_last_digit(one.text), _last_digit(other.text)) or 1)
        for one, other in pairs
        if one.number is not None and other.number is not None and _is_finite(one.number - other.number)
    ]
    return 1 / max(1.0, sum(apart) / len(apart)) if apart else 0.0


def _are_odd(agreement: Agreement, differing: Sequence[StepComparison]) -> bool:
    """Whether the same few writers differ from all others at all these steps."""
    if any(one.outcome != "odd" for one in differing):
        return False
    if agreement != "maybe":
        return True
    odd = {frozenset(value.writer for value in one.odd) for one in differing}
    fewest = min(len(one.groups[0]) for one in differing)
    return len(differing) > 1 and len(odd) == 1 and fewest >= MIN_RANKS


def _have_enough_digits(rows: Sequence[Row]) -> bool:
    values = (value for row in rows for value in row.values())
    return all(value.number is None or not _is_finite(value.number) or _has_digits(value.text) for value in values)


def _is_finite(number: float) -> bool:
    return number - number == 0


def _has_digits(text: str) -> bool:
    return len(text.lower().partition("e")[0].replace(".", "").lstrip("+-0")) >= MIN_DIGITS


def format_difference(usual: RankValue, other: RankValue) -> str:
    """` (60 % more)` or ` (3.1e-05 relative)`; empty if one value is no number, or the usual one is 0."""
    if not usual.number or other.number is None or not _is_finite(usual.number) or not _is_finite(other.number):
        return ""
    share = (other.number - usual.number) / abs(usual.number)
    if abs(share) < 0.001:
        return f" ({abs(share):.1e} relative)"
    return f" ({abs(share) * 100:.3g} % {'more' if share > 0 else 'less'})"
