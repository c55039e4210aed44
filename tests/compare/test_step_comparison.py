"""triage.compare.step_comparison: which values of many writers are equal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from triage.compare.quantities import RankValue
from triage.compare.step_comparison import are_equal, compare_step
from triage.model.evidence import Origin


def value(rank: int, text: str) -> RankValue:
    """Return a loss that a rank printed at the first step."""
    try:
        number = float(text)
    except ValueError:
        number = None
    return RankValue("loss", "must", rank, 0, 1, text, number, "job.log", rank, Origin(rank=rank), text)


def group_ranks(texts: Sequence[str]) -> list[list[int | None]]:
    """Return the ranks whose values are equal to each other."""
    values = [value(rank, text) for rank, text in enumerate(texts)]
    return [[one.rank for one in group] for group in compare_step({one.writer: one for one in values}).groups]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("2.3500", "2.3501", True),
        ("2.3500", "2.3502", False),
        ("100000", "100001", True),
        ("10000", "10001", False),
        ("nan", "NaN", True),
        ("inf", "Infinity", True),
        ("inf", "-inf", False),
        ("inf", "2.35", False),
        ("nan", "2.35", False),
        ("bf16", "BF16", True),
        ("bf16", "fp16", False),
    ],
)
def test_values_are_equal_up_to_rounding(one: str, other: str, equal: bool) -> None:
    """A last digit apart is rounding, two are not; what is no finite number equals only its own kind."""
    assert are_equal(value(0, one), value(1, other)) is equal
    assert are_equal(value(1, other), value(0, one)) is equal


def test_an_infinite_value_is_odd() -> None:
    """One rank with an infinite value stands apart from the others, whatever theirs are."""
    assert group_ranks(["2.3500", "2.3501", "inf", "2.3500"]) == [[0, 1, 3], [2]]


texts = st.one_of(
    st.sampled_from(["nan", "NaN", "inf", "-inf", "bf16", "BF16", "0", "-0.0"]),
    st.builds(
        lambda number, apart, digits: f"{number * (1 + apart):.{digits}f}",
        st.sampled_from([0.5, 2.35, -2.35, 1e5, 1e6]),
        st.sampled_from([0.0, 9e-6, 1.1e-5, 1e-4, 1e-3]),
        st.integers(0, 6),
    ),
)


@given(st.lists(texts, min_size=1, max_size=12))
def test_a_value_joins_the_first_group_that_it_equals(texts: list[str]) -> None:
    """The quick search among thousands of values gives what comparing each with each gives."""
    values = [value(rank, text) for rank, text in enumerate(texts)]
    groups: list[list[RankValue]] = []
    for one in sorted(values, key=lambda one: (-texts.count(one.text), one.writer)):
        near = [group for group in groups if are_equal(one, group[0])]
        if near:
            near[0].append(one)
        else:
            groups.append([one])
    expected = sorted(([one.rank for one in sorted(group, key=lambda one: one.writer)] for group in groups), key=repr)
    assert sorted(group_ranks(texts), key=repr) == expected
