"""Ranks in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.base.rank_ranges import format_rank_numbers, format_ranks, to_ranges


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], "no known rank"),
        ([3], "rank 3"),
        ([3, 3], "rank 3"),
        ([1, 0], "ranks 0-1"),
        ([7, 0, 2, 1], "ranks 0-2, 7"),
    ],
)
def test_ranks_agree_in_number_and_fold_into_ranges(ranks: list[int], text: str) -> None:
    """One rank is singular, several are plural, consecutive ones are a range."""
    assert format_ranks(ranks) == text


@pytest.mark.parametrize(("count", "more"), [(12, ""), (13, ""), (14, " and 2 more ranges")])
def test_many_ranges_are_counted(count: int, more: str) -> None:
    """Twelve ranges are written out, a thirteenth alone too; more are counted."""
    text = format_rank_numbers(range(0, 2 * count, 2))
    assert text.endswith(more or f", {2 * count - 2}")
    assert text.count(",") == (11 if more else count - 1)


@given(st.sets(st.integers(0, 200)))
def test_ranges_hold_exactly_the_numbers(numbers: set[int]) -> None:
    """Expanding the ranges gives the numbers again."""
    assert {number for low, high in to_ranges(numbers) for number in range(low, high + 1)} == numbers
