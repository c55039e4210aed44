"""What a writer of evidence gets and returns."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from triage.testing.schedules.model import Outcome, RankView, view


@dataclass(frozen=True, slots=True)
class Shown:
    """What the files show of one rank, as far as the truth needs it.

    `view` is the rank at the time when it was written. `records`: indexes of its calls that are in the files.
    `has_numbers`: the last enqueued and completed numbers of these groups stand there. `has_started`: it is shown
    which calls have started. `has_types`: so are the element types. `has_members`: so are the members of its groups
    and the peers of its transfers. `has_activity`: what the host does stands there. `has_content`: the number, the
    operation and the sizes of the calls in `records` do. `counted`: indexes of
    calls that are only counted there. `op_counts`: how many calls of each operation the rank made
    in these groups stands there. `has_left`: so does that its process is gone.
    """

    view: RankView
    records: frozenset[int] = frozenset()
    has_numbers: frozenset[int] = frozenset()
    has_started: bool = False
    has_types: bool = True
    has_members: bool = True
    has_activity: bool = False
    has_content: bool = True
    counted: frozenset[int] = frozenset()
    op_counts: frozenset[int] = frozenset()
    has_left: bool = False


@dataclass(frozen=True, slots=True)
class WrittenEvidence:
    """Files by relative path, and by rank what they show. A rank without files is absent from `shown`.

    `names_ranks`: it stands in the files which rank wrote what.
    """

    files: Mapping[str, bytes]
    shown: Mapping[int, Shown]
    names_ranks: bool = True


@dataclass(frozen=True, slots=True)
class Scene:
    """A played job at the moment when the evidence is written. `start` is the time of its first step since 1970."""

    outcome: Outcome
    moment: float
    start: float
    script: str = "/workspace/train.py"
    hosts: tuple[str, ...] = ("node0",)
    per_host: int = 8
    pids: tuple[int, ...] = field(default=())

    def views(self) -> list[RankView]:
        """Return the views of all ranks at the moment."""
        return [view(self.outcome, rank, self.moment) for rank in range(self.outcome.schedule.size)]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of evidence."""

    name: str
    write: Callable[[Scene, random.Random], WrittenEvidence]


def merge(*parts: WrittenEvidence) -> WrittenEvidence:
    """Return the files of all parts, and for each rank the sum of what they show."""
    files: dict[str, bytes] = {}
    shown: dict[int, Shown] = {}
    for part in parts:
        files.update(part.files)
        for rank, one in part.shown.items():
            shown[rank] = _add(shown[rank], one) if rank in shown else one
    return WrittenEvidence(files, shown, any(part.names_ranks for part in parts))


def _add(first: Shown, second: Shown) -> Shown:
    return replace(
        first,
        view=max(first.view, second.view, key=lambda one: one.time),
        records=first.records | second.records,
        has_numbers=first.has_numbers | second.has_numbers,
        has_started=first.has_started or second.has_started,
        has_types=first.has_types or second.has_types,
        has_members=first.has_members or second.has_members,
        has_activity=first.has_activity or second.has_activity,
        has_content=first.has_content or second.has_content,
        counted=first.counted | second.counted,
        op_counts=first.op_counts | second.op_counts,
        has_left=first.has_left or second.has_left,
    )
