"""What faults are made of: draw a rank and a place in its program, and change the program there."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from triage.testing.schedules.model import Call, Local, Program, Schedule, Step


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A schedule with a fault in it: the ranks at fault, and those that may be named as well (the other end).

    `is_hang`: false if nothing hangs, though a rank is slow.
    """

    schedule: Schedule
    ranks: frozenset[int]
    partners: frozenset[int] = frozenset()
    is_hang: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault. `inject` returns None where the schedule has no place for it.

    `nature` says what the ranks show: "outside" (the rank stands outside of all calls), "left" (its process is gone),
    "divergent" (it calls something else than the others), "pair" (two ends of a transfer do not meet), "device" (its
    device does not start), "transfer" (all have started), "none" (nobody is at fault).
    """

    name: str
    nature: str
    inject: Callable[[Schedule, random.Random], InjectedFault | None]


def edit(schedule: Schedule, rank: int, place: int, removed: int, *added: Step) -> Schedule:
    """Return the schedule in which `removed` steps of a rank from `place` on are replaced."""
    program = schedule.programs[rank]
    changed = (*program[:place], *added, *program[place + removed :])
    return with_program(schedule, rank, changed)


def with_program(schedule: Schedule, rank: int, program: Program) -> Schedule:
    """Return the schedule with another program of one rank."""
    return replace(schedule, programs=(*schedule.programs[:rank], program, *schedule.programs[rank + 1 :]))


def draw_place(schedule: Schedule, rank: int, rng: random.Random, fits: Callable[[Program, int], bool]) -> int | None:
    """Return a place of the rank's program that fits, mostly not in its first third."""
    program = schedule.programs[rank]
    first = 0 if rng.random() < 0.1 else len(program) // 3
    places = [place for place in range(first, len(program)) if fits(program, place)]
    return rng.choice(places) if places else None


def draw_call(
    schedule: Schedule, rank: int, rng: random.Random, fits: Callable[[Call], bool]
) -> tuple[int, Call] | None:
    """Return a call of the rank's program that fits, with its place."""

    def is_fitting(program: Program, place: int) -> bool:
        step = program[place]
        return isinstance(step, Call) and fits(step)

    place = draw_place(schedule, rank, rng, is_fitting)
    if place is None:
        return None
    call = schedule.programs[rank][place]
    assert isinstance(call, Call)
    return place, call


def ranks_of(schedule: Schedule, group: int) -> Sequence[int]:
    """Return the global ranks of a group."""
    return schedule.groups[group].ranks


def is_start_of_step(program: Program, place: int) -> bool:
    """Whether a training step begins here: the rank fetches data."""
    step = program[place]
    return isinstance(step, Local) and step.activity == "data"
