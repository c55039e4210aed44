"""What is true of a job at one time, whoever can see it: who waits for whom, in which call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.testing.schedules.model import Group, RankView, Record
from triage.testing.schedules.play import match_key

Slot = tuple[int, ...]
"""(group, number) of a collective; (group, source, target, number) of a transfer, counted by direction."""


@dataclass(frozen=True, slots=True)
class OpenSlot:
    """A collective or transfer that some rank waits in. `calls` by rank; those of `started` have started it."""

    slot: Slot
    members: frozenset[int]
    calls: Mapping[int, Record]
    started: frozenset[int]

    @property
    def missing(self) -> frozenset[int]:
        """The members that did not start it."""
        return self.members - self.started

    def minority(self) -> frozenset[int] | None:
        """Return the ranks whose call differs from that of most members; None if no call is that of most."""
        by_content: dict[tuple[str, int, str], set[int]] = defaultdict(set)
        for rank, record in self.calls.items():
            by_content[(*match_key(record.call), record.call.dtype)].add(rank)
        largest = max(by_content.values(), key=len)
        return frozenset(self.calls.keys() - largest) if 2 * len(largest) > len(self.members) else None


@dataclass(frozen=True, slots=True)
class Situation:
    """All open slots, who waits for whom, the ranks on a cycle of waits, and those with nothing open."""

    slots: tuple[OpenSlot, ...]
    waits: Mapping[int, frozenset[int]]
    cycle: frozenset[int]
    idle: frozenset[int]

    def slots_missing(self, ranks: Iterable[int]) -> list[OpenSlot]:
        """Return the slots that one of these ranks did not start while others wait in it."""
        wanted = set(ranks)
        return [one for one in self.slots if one.missing & wanted and one.started]

    def contested(self) -> list[OpenSlot]:
        """Return the slots that all members have started, and that do not complete."""
        return [one for one in self.slots if not one.missing]


def slots_of(records: Sequence[Record]) -> list[tuple[Slot, ...]]:
    """Return for each call of one rank, in order, the slots that it takes part in."""
    counts: dict[Slot, int] = defaultdict(int)
    result: list[tuple[Slot, ...]] = []
    for record in records:
        call = record.call
        if not call.is_p2p:
            result.append(((call.group, record.collective),))
            continue
        slots: list[Slot] = []
        for transfer in call.transfers:
            ends = (record.rank, transfer.peer) if transfer.is_send else (transfer.peer, record.rank)
            channel = (call.group, *ends, int(transfer.is_send))
            counts[channel] += 1
            slots.append((call.group, *ends, counts[channel]))
        result.append(tuple(slots))
    return result


def observe(groups: Sequence[Group], views: Sequence[RankView]) -> Situation:
    """Return the situation that the views of all ranks show together."""
    calls: dict[Slot, dict[int, Record]] = defaultdict(dict)
    for view in views:
        for record, slots in zip(view.records, slots_of(view.records), strict=True):
            for slot in slots:
                calls[slot][view.rank] = record
    open_slots = tuple(
        _open_slot(groups, slot, ranks)
        for slot, ranks in sorted(calls.items())
        if any(one.completed is None for one in ranks.values())
    )
    waits: dict[int, set[int]] = defaultdict(set)
    for one in open_slots:
        for rank in one.started:
            if one.calls[rank].completed is None:
                waits[rank] |= one.missing
    frozen = {rank: frozenset(others) for rank, others in waits.items()}
    idle = frozenset(view.rank for view in views if not view.open)
    return Situation(open_slots, frozen, _on_cycle(frozen), idle)


def _open_slot(groups: Sequence[Group], slot: Slot, calls: Mapping[int, Record]) -> OpenSlot:
    members = frozenset(slot[1:3] if len(slot) == 4 else groups[slot[0]].ranks)
    started = frozenset(rank for rank, one in calls.items() if one.started is not None)
    return OpenSlot(slot, members, calls, started)


def _on_cycle(waits: Mapping[int, frozenset[int]]) -> frozenset[int]:
    """Return the ranks that wait, through others, for themselves."""
    return frozenset(rank for rank in waits if rank in _reachable(waits, rank))


def _reachable(waits: Mapping[int, frozenset[int]], start: int) -> set[int]:
    reached: set[int] = set()
    pending = list(waits[start])
    while pending:
        rank = pending.pop()
        if rank not in reached:
            reached.add(rank)
            pending.extend(waits.get(rank, ()))
    return reached
