"""What the room gives away: fingerprints of failures and where they belong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

How = Literal["exact", "nested", "new", "unanchored"]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What stays the same when a failure comes again.

    `key` names it for good under `version` of the rules. Only failures with an equal `guard` (who spoke, the codes that carry the cause,
    the place of a built-in exception) can ever be the same. `title` is the masked headline, `words` its telling words. `related` are
    coarser keys (without the place; codes alone) for looking things up, never for merging. `trail` says how it came to be.
    A failure without a usable headline is not `anchored` and merges with nothing by itself.
    """

    version: int
    key: str
    guard: str
    title: str
    words: frozenset[str]
    codes: tuple[str, ...]
    location: str
    component: str
    anchored: bool
    related: tuple[str, ...]
    trail: tuple[str, ...]


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
