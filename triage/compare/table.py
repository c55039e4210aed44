"""The same quantity of many ranks, step by step: do they agree, which rank is the odd one, and can they be compared at
all?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from triage.compare.quantities import Value, Worth

# Relative difference of printed numbers that is no more than rounding.
ROUNDING = 1e-5
# A loss with fewer digits than these can be equal by chance.
DIGITS = 4
# Of so many ranks so large a part must hold one value for the others to be the odd ones.
FEWEST, SHARE = 3, 2 / 3
PRESENT = 0.8

Row = Mapping[int, Value]


@dataclass(frozen=True, slots=True)
class Judged:
    """One step: `how` the ranks stand, the odd ranks (none where neither side is the larger by far), a value of each
    side, all ranks.
    """

    how: Literal["equal", "odd", "mixed"]
    odd: tuple[int, ...] = ()
    usual: Value | None = None
    other: Value | None = None
    ranks: tuple[int, ...] = ()


def rows(values: Sequence[Value]) -> dict[int | None, dict[int, Value]]:
    """Step to rank to value; a later line of the same step counts. Of several attempts only the last."""
    last = max((value.attempt for value in values), default=0)
    table: dict[int | None, dict[int, Value]] = {}
    for value in sorted(values, key=lambda value: (value.source, value.offset)):
        if value.attempt == last:
            table.setdefault(value.step, {})[value.rank] = value
    return table


def common(table: Mapping[int | None, Row]) -> list[int | None]:
    """The steps of which (nearly) all ranks tell, in order; what has no step counts when nothing has one."""
    ranks = {rank for row in table.values() for rank in row}
    steps: list[int] = sorted(
        step for step, row in table.items() if step is not None and len(row) >= max(2, PRESENT * len(ranks))
    )
    if steps or any(step is not None for step in table):
        return list(steps)
    return [None] if len(table.get(None, {})) >= max(2, PRESENT * len(ranks)) else []


def judge(row: Row) -> Judged:
    """How the ranks stand at one step."""
    usual = _usual(list(row.values()))
    odd = tuple(sorted(rank for rank, value in row.items() if not alike(value, usual)))
    if not odd:
        return Judged("equal", usual=usual)
    other = row[odd[0]]
    if len(row) >= FEWEST and len(row) - len(odd) >= SHARE * len(row):
        return Judged("odd", odd, usual, other, tuple(row))
    return Judged("mixed", (), usual, other, tuple(row))


def _usual(values: Sequence[Value]) -> Value:
    """The value that most ranks hold; of equally frequent ones that of the lowest rank."""
    counts = Counter(value.text for value in values)
    most = max(counts.values())
    return min((value for value in values if counts[value.text] == most), key=lambda value: value.rank)


def alike(one: Value, other: Value) -> bool:
    """Equal, up to rounding where the quantity is a number."""
    if one.text.lower() == other.text.lower():
        return True
    if one.number is None or other.number is None:
        return False
    if one.number != one.number or other.number != other.number:
        return one.number != one.number and other.number != other.number
    return abs(one.number - other.number) <= ROUNDING * max(abs(one.number), abs(other.number))


def comparable(worth: Worth, judged: Mapping[int | None, Judged], table: Mapping[int | None, Row]) -> bool:
    """Did anything show that these ranks should agree? Ranks that differ everywhere, or in halves, hold values of their
    own by design.
    """
    equal = [step for step, found in judged.items() if found.how == "equal"]
    odd = [found.odd for found in judged.values() if found.how == "odd"]
    if worth == "maybe":
        exact = all(
            _digits(value.text) >= DIGITS
            for row in table.values()
            for value in row.values()
            if value.number == value.number
        )
        others = min(
            (len(table[step]) - len(found.odd) for step, found in judged.items() if found.how == "odd"), default=0
        )
        return exact and (len(equal) > 1 or (len(odd) > 1 and len(set(odd)) == 1 and others >= FEWEST))
    return bool(equal or odd) or worth == "exact"


def _digits(text: str) -> int:
    mantissa = text.lower().partition("e")[0]
    return len(mantissa.replace(".", "").lstrip("+-0"))


def by_how_much(usual: Value, other: Value) -> str:
    """` (60 % more)`, ` (3.1e-05 relative)`; nothing for what is no number."""
    if (
        usual.number is None
        or other.number is None
        or not usual.number
        or usual.number != usual.number
        or other.number != other.number
    ):
        return ""
    share = (other.number - usual.number) / abs(usual.number)
    if abs(share) < 0.001:
        return f" ({abs(share):.1e} relative)"
    return f" ({abs(share) * 100:.3g} % {'more' if share > 0 else 'less'})"
