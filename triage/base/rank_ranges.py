"""Rank numbers as text: `rank 3`, `ranks 0-2, 7`."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_RANGES = 12


def to_ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the numbers as (first, last) of each run of consecutive ones, in ascending order."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def format_range(low: int, high: int) -> str:
    """Return `7` or `4-7`."""
    return str(low) if low == high else f"{low}-{high}"


def format_rank_numbers(ranks: Iterable[int]) -> str:
    """Return `0-2, 7`; after 12 ranges only how many more there are."""
    ranges = to_ranges(ranks)
    # Naming a single range takes no more room than counting it.
    left_out = len(ranges) - _MOST_RANGES if len(ranges) > _MOST_RANGES + 1 else 0
    text = ", ".join(format_range(low, high) for low, high in ranges[: len(ranges) - left_out])
    return f"{text} and {left_out} more ranges" if left_out else text


def format_ranks(ranks: Iterable[int]) -> str:
    """Return `rank 3`, `ranks 0-2, 7` or, for none, `no known rank`."""
    numbers = set(ranks)
    if not numbers:
        return "no known rank"
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {format_rank_numbers(numbers)}"
