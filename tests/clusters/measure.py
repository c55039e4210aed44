"""How good a grouping is: pairwise precision and recall over labels, and how often what must stay apart was merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """`precision`: of the pairs put together, how many belong together; `recall`: of those that belong together, how
    many were put so.
    """

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / (self.precision + self.recall or 1)


def score(labels: Sequence[str], clusters: Sequence[str]) -> Score:
    """Pairwise precision and recall of `clusters` against `labels`."""
    together = _pairs(Counter(clusters).values())
    belonging = _pairs(Counter(labels).values())
    right = _pairs(Counter(zip(labels, clusters, strict=True)).values())
    return Score(right / together if together else 1.0, right / belonging if belonging else 1.0)


def merged(labels: Sequence[str], clusters: Sequence[str], apart: Sequence[tuple[str, str]]) -> float:
    """Of all pairs of failures that must stay apart, the share that is in one cluster."""
    at = {
        label: Counter(cluster for other, cluster in zip(labels, clusters, strict=True) if other == label)
        for pair in apart
        for label in pair
    }
    wrong = sum(at[one][cluster] * at[other][cluster] for one, other in apart for cluster in at[one])
    return wrong / (sum(at[one].total() * at[other].total() for one, other in apart) or 1)


def _pairs(counts: object) -> int:
    return sum(count * (count - 1) // 2 for count in counts)  # type: ignore[attr-defined]
