"""What is true of a job at one moment beside what its files show of it: the ground on which a truth is stated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from triage.testing.schedules import kinds
from triage.testing.schedules.evidence.interface import Shown
from triage.testing.schedules.evidence.ras import name_operation
from triage.testing.schedules.faults import Fault, InjectedFault
from triage.testing.schedules.model import RankView
from triage.testing.schedules.observe import OpenSlot, Situation, slots_of

WAITS = ("item", "synchronize", "queue", "exit", "compute")
"""Activities of hosts that wait, or do what they should."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What answers are right.

    `kinds`: right signatures. `guilty`: the ranks where it began; an answer names at least one of them, and only ranks
    of `allowed`. `may_omit_ranks`: an answer without ranks is right, too. `waiting`: ranks that wait; a symptom names
    only these or `allowed` ones. `places`: (name of the group, number) of the calls in which others wait for the
    guilty ranks. `is_tellable`: the files are enough for an expert to be sure.
    """

    kinds: frozenset[str]
    guilty: frozenset[int]
    allowed: frozenset[int]
    waiting: frozenset[int]
    places: tuple[tuple[str, int], ...]
    is_tellable: bool
    is_hang: bool = True
    may_omit_ranks: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """What is true at the moment, and what the files show."""

    fault: Fault
    injected: InjectedFault
    situation: Situation
    views: tuple[RankView, ...]
    shown: Mapping[int, Shown]

    def shows_numbers(self, rank: int, slot: OpenSlot) -> bool:
        """Whether the files show how far a rank is in the group of a slot: by numbers, or by the call itself."""
        one = self.shown.get(rank)
        return one is not None and (slot.slot[0] in one.has_numbers or self.shows_call(rank, slot))

    def shows_call(self, rank: int, slot: OpenSlot) -> bool:
        """Whether the files show the call of a rank in a slot."""
        one, call = self.shown.get(rank), slot.calls.get(rank)
        if one is None or call is None:
            return False
        return any(slot.slot in slots_of(one.view.records)[index] for index in one.records | one.counted)

    def shows_content(self, rank: int, slot: OpenSlot) -> bool:
        """Whether the call of a rank in a slot is shown so that it can be compared with others."""
        if not self.shows_call(rank, slot) or not self.shown[rank].has_content:
            return False
        one = self.shown[rank]
        return any(slot.slot in slots_of(one.view.records)[index] for index in one.records)

    @property
    def hides_waits(self) -> bool:
        """Whether ranks wait in what the files do not count, as NCCL's RAS sends and receives: they seem to be idle."""
        if not any(one.counted and not one.records for one in self.shown.values()):
            return False
        waits = (record for one in self.situation.slots for record in one.calls.values())
        return any(not name_operation(record.call.operation) for record in waits)


def waiting(case: Case) -> frozenset[int]:
    """Return the ranks that have an open call."""
    return frozenset(view.rank for view in case.views if view.open)


def places(case: Case, slots: list[OpenSlot]) -> tuple[tuple[str, int], ...]:
    """Return (name of the group, number that torch prints) of these slots."""
    names = case.injected.schedule.groups
    numbers = {(names[one.slot[0]].name, record.sequence) for one in slots for rank, record in one.calls.items()}
    return tuple(sorted(numbers))


def shows_behind(case: Case, rank: int, slots: list[OpenSlot]) -> bool:
    """Whether a slot is shown in which the others wait, and that this rank did not come so far."""
    return any(
        rank in one.missing
        and rank not in one.calls
        and case.shows_numbers(rank, one)
        and any(case.shows_call(other, one) for other in one.started)
        for one in slots
    )


def shows_activity(case: Case, rank: int) -> bool:
    """Whether stacks show that this rank stands elsewhere, while most of the others wait for a device or a call.

    The stack of `loss.item()` ends in the program itself: of two ranks nobody can say which one of them waits.
    """
    activities = {one: case.views[one].activity for one, shown in case.shown.items() if shown.has_activity}
    own = activities.pop(rank, "")
    others = [activity for activity in activities.values() if activity in WAITS]
    is_clear = len(others) > 1 or any(activity in ("queue", "synchronize") for activity in others)
    return own in kinds.ACTIVITIES and is_clear and 2 * len(others) > len(case.views)


def is_shown_or_idle(case: Case, rank: int) -> bool:
    """Whether the files show the first open call of a rank, or that it has none, and the members of its groups."""
    if rank not in case.shown or not (case.shown[rank].has_members and case.shown[rank].has_content):
        return False
    shown, calls = case.shown[rank], case.views[rank].open
    if not calls:
        return bool(shown.has_numbers)
    first = next(index for index, one in enumerate(case.views[rank].records) if one.completed is None)
    return first in shown.records


def differs_in_counts(case: Case, rank: int) -> bool:
    """Whether the files count one operation of this rank too often and another too rarely, beside most of its group."""
    one = case.shown.get(rank)
    for group in one.op_counts if one is not None else ():
        members = case.injected.schedule.groups[group].ranks
        counts = {member: _count_by_operation(case.views[member], group) for member in members}
        usual, most = Counter(frozenset(own.items()) for own in counts.values()).most_common(1)[0]
        own, common = counts[rank], Counter(dict(usual))
        is_shown = all(group in case.shown[member].op_counts for member in members if member in case.shown)
        if is_shown and 2 * most > len(members) and own - common and common - own:
            return True
    return False


def _count_by_operation(view: RankView, group: int) -> Counter[str]:
    names = (name_operation(record.call.operation) for record in view.records if record.call.group == group)
    return Counter(name for name in names if name)
