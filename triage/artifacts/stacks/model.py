"""The stacks of all ranks, compared with each other."""

from __future__ import annotations

from dataclasses import dataclass

from triage.stacks.live.model import Process, State


@dataclass(frozen=True, slots=True)
class ComparedProcess:
    """One process of the job and where it stands; `key` is equal for processes at the same place."""

    label: str
    rank: int | None
    process: Process
    state: State
    key: tuple[str, ...]
    has_moved: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Processes with the same stack; `key` has the innermost frame first."""

    members: tuple[ComparedProcess, ...]
    key: tuple[str, ...]
    state: State
    is_usual: bool = False


@dataclass(frozen=True, slots=True)
class StackInference:
    """What follows from all stacks together: the name of a rule that signatures match, and the ranks that it names."""

    rule: str
    ranks: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class StackComparison:
    """The groups, largest first; helper processes, which are no ranks; what follows; and notes on its limits."""

    groups: tuple[Group, ...] = ()
    helpers: tuple[ComparedProcess, ...] = ()
    inferences: tuple[StackInference, ...] = ()
    notes: tuple[str, ...] = ()
