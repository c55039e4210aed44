"""From a score of evidence to the share of such answers that were right: calibration.txt, a monotone table that
`docs/measure.py --fit` writes.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("calibration.txt")
Point = tuple[float, float]  # score, share of right answers


@cache
def points() -> tuple[Point, ...]:
    """The table, ascending in both."""
    rows = (
        line.split()
        for line in TABLE.read_text(encoding="utf-8").splitlines()
        if line.strip() and not line.startswith("#")
    )
    return tuple((float(row[0]), float(row[1])) for row in rows)


def calibrated(score: float, table: Sequence[Point] | None = None) -> float:
    """The share for a score, in a straight line between the points of the table, and flat outside of them."""
    known = points() if table is None else table
    place = bisect.bisect_left(known, (score, 0.0))
    if place in (0, len(known)):
        return known[min(place, len(known) - 1)][1]
    (low, below), (high, above) = known[place - 1], known[place]
    return below + (above - below) * (score - low) / (high - low)


def fitted(claims: Iterable[tuple[float, bool]]) -> list[Point]:
    """The monotone table nearest to (score, was it right): neighbours that are out of order are pooled. A share of few
    claims is drawn to a half.
    """
    counts: dict[float, tuple[int, int]] = {}
    for score, right in claims:
        number, good = counts.get(score, (0, 0))
        counts[score] = (number + 1, good + right)
    blocks: list[tuple[float, int, int]] = []  # sum of scores, claims, right ones
    for score, (number, good) in sorted(counts.items()):
        block = (score * number, number, good)
        while blocks and _share(blocks[-1]) >= _share(block):
            total, more, better = blocks.pop()
            block = (block[0] + total, block[1] + more, block[2] + better)
        blocks.append(block)
    return [(total / number, _share((total, number, good))) for total, number, good in blocks]


def _share(block: tuple[float, int, int]) -> float:
    return (block[2] + 1) / (block[1] + 2)
