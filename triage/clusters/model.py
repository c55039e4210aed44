"""The cluster of a failure, and the nearest other one."""

from __future__ import annotations

from typing import Literal

from triage.base.lazy_dataclass import dataclass

How = Literal["exact", "nested", "reworded", "taught", "new", "unanchored"]


@dataclass(frozen=True, slots=True)
class NearestCluster:
    """The nearest cluster that was not chosen: its score (0 to 1), and the words that only one of the two has."""

    cluster: str
    score: float
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The cluster of a failure and why. `joins` are other clusters that this failure shows to be the same one."""

    cluster: str
    how: How
    why: tuple[str, ...]
    joins: tuple[str, ...] = ()
    runner_up: NearestCluster | None = None
