"""What dumps say when ranks are laid side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triage.stacks.live.model import Process, State


@dataclass(frozen=True, slots=True)
class Member:
    """One process of the job and where it stands; `key` is equal for those that stand at the same place."""

    label: str
    rank: int | None
    process: Process
    state: State
    key: tuple[str, ...]
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Processes with the same stack, innermost frame first."""

    members: tuple[Member, ...]
    key: tuple[str, ...]
    state: State
    usual: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What follows from all stacks together: `rule` for the catalog, about these ranks."""

    rule: str
    ranks: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Board:
    """All ranks side by side: the groups, largest first, helpers that are no ranks, and what follows."""

    groups: tuple[Group, ...] = ()
    helpers: tuple[Member, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
