"""Where a failure belongs, and what came near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

How = Literal["exact", "nested", "new", "unanchored"]


@dataclass(frozen=True, slots=True)
class Near:
    """The nearest cluster that was not chosen: how near (0 to 1), and the words that stand on one side only."""

    cluster: str
    score: float
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The cluster of a failure and why. `joins` are other clusters that this failure shows to be the same as `cluster`."""

    cluster: str
    how: How
    why: tuple[str, ...]
    joins: tuple[str, ...] = ()
    runner_up: Near | None = None
