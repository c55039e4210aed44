"""The table that turns a score into a share."""

from __future__ import annotations

import itertools

from hypothesis import given, strategies as st

from triage.diagnose.calibration import calibrate, fit_table, load_points

CLAIMS = st.lists(st.tuples(st.integers(2, 19).map(lambda number: number / 20), st.booleans()), min_size=1, max_size=60)


@given(CLAIMS)
def test_a_fitted_table_never_falls(claims: list[tuple[float, bool]]) -> None:
    """A higher score is never told with less confidence, and every share lies between none and all."""
    table = fit_table(claims)
    assert table == sorted(table)
    shares = [round(calibrate(number / 100, table), 9) for number in range(5, 100)]
    assert shares == sorted(shares)
    assert all(0 < share < 1 for share in shares)


def test_shares_are_counted() -> None:
    """Nine of ten right at 0.8 and two of ten at 0.4 are told as nearly that, and in between in a straight line."""
    table = fit_table([(0.8, number > 0) for number in range(10)] + [(0.4, number > 7) for number in range(10)])
    assert table == [(0.4, 3 / 12), (0.8, 10 / 12)]
    assert abs(calibrate(0.6, table) - (3 / 12 + 10 / 12) / 2) < 1e-9
    assert (calibrate(0.1, table), calibrate(0.95, table)) == (3 / 12, 10 / 12)


def test_the_shipped_table_ascends() -> None:
    """Scores and shares rise together, within bounds."""
    table = load_points()
    assert len(table) > 1
    for one, other in itertools.pairwise(table):
        assert one[0] < other[0]
        assert one[1] < other[1]
    assert all(0 < score < 1 and 0 < share < 1 for score, share in table)
