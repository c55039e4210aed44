"""Faults of ranks that stand outside of all calls, have left, or are late; and devices that do not start."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from triage.testing.schedules.faults.edits import (
    Fault,
    InjectedFault,
    draw_place,
    edit,
    is_start_of_step,
    ranks_of,
)
from triage.testing.schedules.model import FOREVER, Activity, Call, Kernel, Leave, Local, Program, Schedule, Step

_Inject = Callable[[Schedule, random.Random], InjectedFault | None]


def _anywhere(program: Program, place: int) -> bool:
    return True


def _insert(step: Step, fits: Callable[[Program, int], bool] = _anywhere) -> _Inject:
    def inject(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
        rank = rng.randrange(schedule.size)
        place = draw_place(schedule, rank, rng, fits)
        if place is None:
            return None
        return InjectedFault(edit(schedule, rank, place, 0, step), frozenset((rank,)))

    return inject


def _stuck(activity: Activity, fits: Callable[[Program, int], bool] = _anywhere) -> _Inject:
    return _insert(Local(activity, FOREVER), fits)


def _before(activity: Activity) -> Callable[[Program, int], bool]:
    def fits(program: Program, place: int) -> bool:
        step = program[place]
        return isinstance(step, Local) and step.activity == activity

    return fits


def _before_site(site: str) -> Callable[[Program, int], bool]:
    def fits(program: Program, place: int) -> bool:
        step = program[place]
        return isinstance(step, Call) and step.site == site

    return fits


def _late(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """The rank comes, after the timeout of the others."""
    delay = Local(rng.choice(("data", "io", "compile")), schedule.timeout * rng.uniform(1.1, 2.0))
    return _insert(delay, is_start_of_step)(schedule, rng)


def _slow(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """The rank is slow in each step, and nothing hangs."""
    rank = rng.randrange(schedule.size)
    program = tuple(
        replace(step, seconds=step.seconds + 2.0) if isinstance(step, Local) and step.activity == "data" else step
        for step in schedule.programs[rank]
    )
    programs = (*schedule.programs[:rank], program, *schedule.programs[rank + 1 :])
    return InjectedFault(replace(schedule, programs=programs), frozenset((rank,)), is_hang=False)


def _healthy(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    return InjectedFault(schedule, frozenset(), is_hang=False)


def _two_stuck(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """Two ranks, each for itself, before the same step or one after the other."""
    if schedule.size < 4:
        return None
    first = _stuck("io", is_start_of_step)(schedule, rng)
    if first is None:
        return None
    second = _stuck("lock", is_start_of_step)(first.schedule, rng)
    if second is None or first.ranks == second.ranks:
        return None
    return InjectedFault(second.schedule, first.ranks | second.ranks)


def _broken(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """A collective that all members start and that never completes, as on a broken link."""
    group = rng.randrange(len(schedule.groups))
    member = ranks_of(schedule, group)[0]
    count = sum(
        isinstance(step, Call) and step.group == group and not step.is_p2p for step in schedule.programs[member]
    )
    if count < 2:
        return None
    number = rng.randrange(count // 2, count) + 1
    broken = replace(schedule, broken=frozenset({(group, number)}))
    return InjectedFault(broken, frozenset(), frozenset(ranks_of(schedule, group)))


FAULTS = (
    Fault("stuck-data", "outside", _stuck("data", is_start_of_step)),
    Fault("stuck-lock", "outside", _stuck("lock")),
    Fault("stuck-io", "outside", _stuck("io")),
    Fault("stuck-compile", "outside", _stuck("compile")),
    Fault("stuck-evaluation", "outside", _stuck("evaluation", _before_site("evaluate"))),
    Fault("stuck-checkpoint", "outside", _stuck("checkpoint", _before_site("save_checkpoint"))),
    Fault("two-stuck", "outside", _two_stuck),
    Fault("late-rank", "outside", _late),
    Fault("rank-left", "left", _insert(Leave(), is_start_of_step)),
    Fault("stuck-device", "device", _insert(Kernel(FOREVER))),
    Fault("broken-collective", "transfer", _broken),
    Fault("slow-rank", "none", _slow),
    Fault("healthy", "none", _healthy),
)
