"""What happened in a job, and what its files can tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triage.testing.schedules import kinds
from triage.testing.schedules.cases import Case, Truth
from triage.testing.schedules.evidence.interface import Scene, Shown, WrittenEvidence
from triage.testing.schedules.faults import Fault, InjectedFault
from triage.testing.schedules.model import RankView
from triage.testing.schedules.natures import BY_NATURE
from triage.testing.schedules.observe import observe, slots_of

__all__ = ["Truth", "find_truth"]


def find_truth(fault: Fault, injected: InjectedFault, scene: Scene, written: WrittenEvidence) -> Truth | None:
    """Return the truth of a job; None if the fault did not show at this moment, so that another job must be drawn."""
    views = tuple(scene.views())
    situation = observe(injected.schedule.groups, views)
    shown = {rank: one for rank, one in written.shown.items() if _is_current(one, views[rank])}
    case = Case(fault, injected, situation, views, shown)
    truth = BY_NATURE[fault.nature](case)
    if truth is None:
        return None
    if not written.names_ranks:
        return replace(truth, may_omit_ranks=True)
    absent = frozenset(range(len(views))) - written.shown.keys()
    return _with_stale_ranks(_with_absent_ranks(truth, absent), written, shown)


def _with_absent_ranks(truth: Truth, absent: frozenset[int]) -> Truth:
    """Accept ranks without files beside a guilty one: nothing shows that they did not stand there, too."""
    return replace(truth, allowed=truth.allowed | absent)


def _is_current(shown: Shown, now: RankView) -> bool:
    """Whether nothing has changed since the files of this rank were written."""
    then = shown.view
    return len(then.records) == len(now.records) and len(then.open) == len(now.open)


def _with_stale_ranks(truth: Truth, written: WrittenEvidence, current: Mapping[int, Shown]) -> Truth:
    """Accept ranks whose files are of an earlier moment, unless other files prove that they went on."""
    completed = {
        slot
        for one in written.shown.values()
        for record, slots in zip(one.view.records, slots_of(one.view.records), strict=True)
        if record.completed is not None
        for slot in slots
    }
    stale = frozenset(
        rank for rank, one in written.shown.items() if rank not in current and not _is_refuted(one, completed)
    )
    if not stale:
        return truth
    return replace(
        truth,
        kinds=truth.kinds | kinds.BEHIND,
        guilty=truth.guilty | stale,
        allowed=truth.allowed | stale,
        is_tellable=False,
    )


def _is_refuted(one: Shown, completed: set[tuple[int, ...]]) -> bool:
    own = {slot for slots in slots_of(one.view.records) for slot in slots}
    reached: dict[int, int] = {}
    for slot in own:
        if len(slot) == 2:
            reached[slot[0]] = max(reached.get(slot[0], 0), slot[1])
    return any(len(slot) == 2 and slot[0] in reached and slot[1] > reached[slot[0]] for slot in completed)
