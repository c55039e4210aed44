"""Which ranks of a hung HCCL job time out, when, and for which member each one waits.

A task that waits for a notify fails HCCL_EXEC_TIMEOUT after it has started on the device, so calls that are queued
behind another one do not time out. The first failed task of a process is the one that its plog describes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from triage.testing.schedules.evidence.interface import Scene
from triage.testing.schedules.model import RankView, Record
from triage.testing.schedules.observe import OpenSlot, Situation, Slot, slots_of

Algorithm = Literal["mesh", "ring", "doubling"]
ALGORITHMS: tuple[Algorithm, ...] = ("mesh", "ring", "doubling")


@dataclass(frozen=True, slots=True)
class Timeout:
    """A notify that did not come. `index` counts the calls of the rank; `is_late`: the rank came after the moment."""

    at: float
    index: int
    record: Record
    slot: Slot
    is_late: bool = False


def find_timeouts(scene: Scene, views: Sequence[RankView], situation: Situation) -> dict[int, Timeout]:
    """Return the timeout of each rank that has one, if nobody takes the job down before."""
    if scene.outcome.fired is None:
        return {}
    slots = {one.slot for one in situation.slots}
    limit = scene.outcome.schedule.timeout
    first = {view.rank: _first_timeout(view, limit) or _late_timeout(scene, view, slots, limit) for view in views}
    return {rank: one for rank, one in first.items() if one is not None}


def _first_timeout(view: RankView, limit: float) -> Timeout | None:
    open_calls = [
        (record.started, index) for index, record in enumerate(view.records)
        if record.completed is None and record.started is not None
    ]  # fmt: skip
    if not open_calls or view.has_left:
        return None
    started, index = min(open_calls)
    record = view.records[index]
    return Timeout(started + limit, index, record, slots_of(view.records)[index][0])


def _late_timeout(scene: Scene, view: RankView, slots: set[Slot], limit: float) -> Timeout | None:
    """Return that of a rank that comes when the others have given up: it waits as long, alone."""
    records = scene.outcome.records[view.rank]
    for index, (record, own) in enumerate(zip(records, slots_of(records), strict=True)):
        if record.enqueued > view.time and slots & set(own):
            return Timeout(record.enqueued + limit, index, record, min(slots & set(own)), is_late=True)
    return None


def find_peer(
    algorithm: Algorithm, members: Sequence[int], timeout: Timeout, slot: OpenSlot | None, rng: random.Random
) -> int:
    """Return the rank whose signal did not come. In a mesh all signal all; in a ring each waits for the one before;
    in recursive doubling each waits for the partner of the first step that its partner did not reach.
    """
    rank, call = timeout.record.rank, timeout.record.call
    if len(timeout.slot) == 4:
        return next(one for one in timeout.slot[1:3] if one != rank)
    if call.is_p2p:
        return call.transfers[0].peer
    others = [one for one in members if one != rank]
    if algorithm == "ring":
        return members[members.index(rank) - 1]
    missing = sorted(slot.missing - {rank}) if slot is not None and not timeout.is_late else []
    if algorithm == "mesh":
        return rng.choice(missing or others)
    return _find_partner(members, rank, slot.started if slot is not None and missing else frozenset())


def _find_partner(members: Sequence[int], rank: int, started: frozenset[int]) -> int:
    """Return the partner of the first step of recursive doubling that cannot end; of the first one, if all started."""
    reached = {place for place, one in enumerate(members) if one in started}
    place, distance = members.index(rank), 1
    while place in reached and place ^ distance in reached and 2 * distance < len(members):
        reached = {one for one in reached if one ^ distance in reached}
        distance *= 2
    return members[place ^ distance]
