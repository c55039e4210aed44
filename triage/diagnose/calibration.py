"""From a score of evidence to the share of such answers that were right.

calibration.txt is a monotone table that `docs/measure.py --fit` writes.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("calibration.txt")
Point = tuple[float, float]  # score, share of right answers


@cache
def load_points() -> tuple[Point, ...]:
    """Return the table, ascending in both columns."""
    rows = (
        line.split()
        for line in TABLE.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    )
    return tuple((float(row[0]), float(row[1])) for row in rows)


def calibrate(score: float, table: Sequence[Point] | None = None) -> float:
    """Return the share for a score: linear between the points of the table, constant outside of them."""
    points = load_points() if table is None else table
    place = bisect.bisect_left(points, (score, 0.0))
    if place in (0, len(points)):
        return points[min(place, len(points) - 1)][1]
    (low, below), (high, above) = points[place - 1], points[place]
    return below + (above - below) * (score - low) / (high - low)


def fit_table(claims: Iterable[tuple[float, bool]]) -> list[Point]:
    """Return the monotone table nearest to (score, was it right).

    Neighbours that are out of order are pooled, and the share of few claims is drawn towards a half.
    """
    counts: dict[float, tuple[int, int]] = {}
    for score, right in claims:
        number, good = counts.get(score, (0, 0))
        counts[score] = (number + 1, good + right)
    pools: list[tuple[float, int, int]] = []  # sum of scores, claims, right ones
    for score, (number, good) in sorted(counts.items()):
        pool = (score * number, number, good)
        while pools and _share(pools[-1]) >= _share(pool):
            total, more, better = pools.pop()
            pool = (pool[0] + total, pool[1] + more, pool[2] + better)
        pools.append(pool)
    return [(pool[0] / pool[1], _share(pool)) for pool in pools]


def _share(pool: tuple[float, int, int]) -> float:
    return (pool[2] + 1) / (pool[1] + 2)
