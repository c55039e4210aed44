"""The truth of each nature of a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from triage.testing.schedules import kinds
from triage.testing.schedules.cases import (
    WAITS,
    Case,
    Truth,
    differs_in_counts,
    is_shown_or_idle,
    places,
    shows_activity,
    shows_behind,
    waiting,
)
from triage.testing.schedules.observe import OpenSlot


def _nobody(case: Case) -> Truth | None:
    """Nothing hangs. A moment of a healthy job looks like a hang: whom the others wait for then may be named."""
    situation = case.situation
    awaited = case.injected.ranks.union(*situation.waits.values())
    awaited |= situation.idle & frozenset().union(*(one.missing for one in situation.slots))
    accepted = kinds.BEHIND.union(*(kinds.ACTIVITIES.get(case.views[rank].activity, ()) for rank in awaited))
    return Truth(accepted, awaited, awaited, waiting(case), (), False, False)


def _outside(case: Case) -> Truth | None:
    """A rank stands outside of all calls, and the others wait for it, at once or through others."""
    guilty = frozenset(rank for rank in case.injected.ranks if case.views[rank].activity not in WAITS)
    slots = [one for one in case.situation.slots_missing(guilty) if one.started - guilty]
    if not guilty or not slots:
        return None
    accepted = set(kinds.BEHIND)
    for rank in guilty:
        accepted |= kinds.ACTIVITIES.get(case.views[rank].activity, frozenset())
    # Fewer ranks that wait than ranks that did not come may as well have made a call that nobody else makes.
    waits_of_most = [one for one in slots if len(one.started & case.shown.keys()) >= len(one.missing)]
    is_tellable = not case.hides_waits and all(
        shows_behind(case, rank, waits_of_most) or shows_activity(case, rank) for rank in guilty
    )
    return Truth(frozenset(accepted), guilty, guilty, waiting(case), places(case, slots), is_tellable)


def _left(case: Case) -> Truth | None:
    """The process is gone: in most files only its absence shows it."""
    slots = case.situation.slots_missing(case.injected.ranks)
    if not slots:
        return None
    ranks = case.injected.ranks
    is_tellable = all(rank in case.shown and case.shown[rank].has_left for rank in ranks)
    return Truth(kinds.LEFT, ranks, ranks, waiting(case), places(case, slots), is_tellable)


def _device(case: Case) -> Truth | None:
    """What one rank has enqueued does not start, while the others have started it."""
    ranks = case.injected.ranks
    slots = [one for one in case.situation.slots_missing(ranks) if one.started]
    if not slots:
        return None
    rank = next(iter(ranks))
    is_enqueued = any(rank in one.calls for one in slots)
    members = frozenset().union(*(one.members for one in slots))
    if not is_enqueued:
        return Truth(
            kinds.STUCK | kinds.BEHIND, ranks, ranks, waiting(case), places(case, slots),
            shows_behind(case, rank, slots),
        )  # fmt: skip
    is_timed = all(one.has_started for one in case.shown.values())
    is_tellable = is_timed and any(case.shows_call(rank, one) and rank in one.calls for one in slots)
    accepted = kinds.STUCK | (kinds.BEHIND if is_timed else frozenset())
    allowed = ranks if is_timed else members
    return Truth(
        accepted, allowed, allowed, waiting(case), places(case, slots), is_tellable, may_omit_ranks=not is_timed
    )


def _transfer(case: Case) -> Truth | None:
    """All have started the call, and it does not complete."""
    slots = [one for one in case.situation.contested() if one.slot in case.injected.schedule.broken]
    if not slots:
        return None
    members = slots[0].members
    is_tellable = all(
        rank in case.shown and case.shown[rank].has_started and case.shows_content(rank, slots[0]) for rank in members
    )
    accepted = kinds.STUCK | (kinds.PAIR if case.injected.schedule.groups and len(slots[0].slot) == 4 else frozenset())
    return Truth(accepted, members, members, waiting(case), places(case, slots), is_tellable, may_omit_ranks=True)


def _divergent(case: Case) -> Truth | None:
    """A rank calls something else than the others: all have started and it does not match, or ranks wait crosswise."""
    ranks = case.injected.ranks
    rank = next(iter(ranks))
    accepted = kinds.ORDER | kinds.EXTRA | kinds.SIZE | kinds.TYPE | _of_fault(case.fault.name)
    contested = [one for one in case.situation.contested() if rank in one.members]
    truth = truth_of_contested(case, rank, contested, accepted) if contested else _crosswise(case, rank, accepted)
    if truth is not None and truth.guilty == ranks and differs_in_counts(case, rank):
        return replace(truth, is_tellable=True)
    return truth


def truth_of_contested(case: Case, rank: int, slots: list[OpenSlot], accepted: frozenset[str]) -> Truth:
    """All members have started calls of one number that do not match."""
    slot = slots[0]
    minority = slot.minority()
    guilty = (
        frozenset((rank,))
        if minority == frozenset((rank,))
        else slot.members
        if minority is None
        else minority | {rank}
    )
    witnesses = [other for other in slot.members if case.shows_content(other, slot)]
    others = [other for other in witnesses if other != rank]
    is_tellable = (
        rank in witnesses
        and minority in (frozenset((rank,)), None)
        and (len(others) > 1 or len(slot.members) == 2)
        and 2 * len(others) >= len(slot.members)
        and (case.fault.name != "other-dtype" or all(case.shown[other].has_types for other in witnesses))
    )
    return Truth(accepted, guilty, guilty, waiting(case), places(case, slots), is_tellable)


def _crosswise(case: Case, rank: int, accepted: frozenset[str]) -> Truth | None:
    """The rank is missing in a call of the others, or is alone in one; on a cycle it waits for those who wait for it.

    Of two ranks that wait crosswise, or of the two members of a group, either may be the one that differs.
    """
    situation = case.situation
    slots = situation.slots_missing((rank,))
    slots = slots or [one for one in situation.slots if rank in one.started and one.missing]
    if not slots:
        return None
    ranks = frozenset((rank,))
    guilty, allowed = ranks, ranks
    members = frozenset().union(*(one.members for one in slots))
    if rank in situation.cycle:
        accepted |= kinds.GROUPS
        allowed = situation.cycle
        guilty = allowed if len(allowed) == 2 else ranks
    elif len(members) == 2:
        guilty = allowed = members
        accepted |= kinds.BEHIND
    if rank not in situation.waits:
        accepted |= kinds.BEHIND
    witnesses = (rank, *(sorted(allowed) if len(allowed) < 5 else ()))
    is_tellable = all(is_shown_or_idle(case, one) for one in witnesses)
    return Truth(accepted, guilty, allowed, waiting(case), places(case, slots), is_tellable)


def _of_fault(name: str) -> frozenset[str]:
    if name == "uneven-batches":
        return kinds.UNEVEN | kinds.LEFT
    return kinds.GROUPS if name in ("swapped-groups", "wrong-group") else frozenset()


def _pair(case: Case) -> Truth | None:
    """The two ends of a transfer do not meet: they name different peers, or one of them is elsewhere."""
    rank = next(iter(case.injected.ranks))
    ends = case.injected.ranks | case.injected.partners
    slots = [one for one in case.situation.slots if one.members & ends]
    if not slots:
        return None
    cycle = case.situation.cycle
    is_on_cycle = bool(cycle & ends)
    guilty = frozenset((rank,)) if case.fault.name == "wrong-peer" else ends | (cycle if len(cycle) == 2 else set())
    allowed = ends | cycle
    accepted = kinds.PAIR | kinds.ORDER | kinds.SIZE | kinds.EXTRA | (kinds.GROUPS if is_on_cycle else frozenset())
    is_tellable = all(is_shown_or_idle(case, one) for one in sorted(ends)) and bool(
        case.fault.name == "transfer-size" or is_on_cycle
    )
    return Truth(accepted | kinds.BEHIND, guilty, allowed, waiting(case), places(case, slots), is_tellable)


BY_NATURE: Mapping[str, Callable[[Case], Truth | None]] = {
    "none": _nobody,
    "outside": _outside,
    "left": _left,
    "device": _device,
    "transfer": _transfer,
    "divergent": _divergent,
    "pair": _pair,
}
