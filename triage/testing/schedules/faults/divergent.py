"""Faults of ranks that call something else than the other members of a group."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from triage.testing.schedules.faults.edits import (
    Fault,
    InjectedFault,
    draw_call,
    draw_place,
    edit,
    is_start_of_step,
    with_program,
)
from triage.testing.schedules.model import Call, Local, Program, Schedule, Sync

_Change = Callable[[Call, random.Random], Call | None]


def _is_collective(call: Call) -> bool:
    return not call.is_p2p


def _change(change: _Change, fits: Callable[[Call], bool] = _is_collective) -> Callable[..., InjectedFault | None]:
    def inject(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
        rank = rng.randrange(schedule.size)
        drawn = draw_call(schedule, rank, rng, fits)
        changed = change(drawn[1], rng) if drawn else None
        if drawn is None or changed is None:
            return None
        return InjectedFault(edit(schedule, rank, drawn[0], 1, changed), frozenset((rank,)))

    return inject


def _other_operation(call: Call, rng: random.Random) -> Call | None:
    others = [name for name in ("all_reduce", "broadcast", "_all_gather_base", "reduce") if name != call.operation]
    return replace(call, operation=rng.choice(others))


def _other_size(call: Call, rng: random.Random) -> Call | None:
    numel = rng.choice((call.numel * 2, call.numel + 64, max(call.numel // 2, 3)))
    return None if numel == call.numel else replace(call, numel=numel)


def _other_dtype(call: Call, rng: random.Random) -> Call | None:
    return replace(call, dtype="BFloat16" if call.dtype == "Float" else "Float")


def _has_size(call: Call) -> bool:
    return not call.is_p2p and call.operation not in ("all_to_all", "all_reduce_barrier")


def _skip(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    rank = rng.randrange(schedule.size)
    drawn = draw_call(schedule, rank, rng, _is_collective)
    return InjectedFault(edit(schedule, rank, drawn[0], 1), frozenset((rank,))) if drawn else None


def _extra(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """A call that the others do not make: it logs a value, or repeats a call by mistake."""
    rank = rng.randrange(schedule.size)
    drawn = draw_call(schedule, rank, rng, _is_collective)
    if drawn is None:
        return None
    logged = Call("all_reduce", drawn[1].group, 1, site="log_metrics")
    added = rng.choice((drawn[1], logged, logged, replace(logged, operation="broadcast", numel=4)))
    return InjectedFault(edit(schedule, rank, drawn[0], 0, added), frozenset((rank,)))


def _rank_conditional(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """`if rank == 0:` around a barrier or a reduction of the default group."""
    place = draw_place(schedule, 0, rng, is_start_of_step)
    if place is None:
        return None
    barrier = Call("all_reduce_barrier", 0, 1, site="save_best_model")
    reduction = Call("all_reduce", 0, rng.choice((1, 2, 16)), site="log_metrics")
    steps = rng.choice(((barrier, Sync("synchronize")), (reduction, Sync("item")), (reduction,)))
    return InjectedFault(edit(schedule, 0, place, 0, *steps), frozenset((0,)))


def _swapped(is_one_group: bool) -> Callable[[Schedule, random.Random], InjectedFault | None]:
    def fits(program: Program, place: int) -> bool:
        first, second = program[place], program[place + 1] if place + 1 < len(program) else None
        if not isinstance(first, Call) or not isinstance(second, Call) or first.is_p2p or second.is_p2p:
            return False
        if is_one_group:
            return first.group == second.group and (first.operation, first.numel) != (second.operation, second.numel)
        return first.group != second.group

    def inject(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
        rank = rng.randrange(schedule.size)
        place = draw_place(schedule, rank, rng, fits)
        if place is None:
            return None
        program = schedule.programs[rank]
        swapped = edit(schedule, rank, place, 2, program[place + 1], program[place])
        return InjectedFault(swapped, frozenset((rank,)))

    return inject


def _wrong_group(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    rank = rng.randrange(schedule.size)
    others = [index for index, group in enumerate(schedule.groups) if rank in group.ranks]
    drawn = draw_call(schedule, rank, rng, _is_collective)
    if drawn is None or len(others) < 2:
        return None
    place, call = drawn
    wrong = replace(call, group=rng.choice([index for index in others if index != call.group]))
    return InjectedFault(edit(schedule, rank, place, 1, wrong), frozenset((rank,)))


def _uneven(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """The rank has one batch less: its last step is missing."""
    rank = rng.randrange(schedule.size)
    program = schedule.programs[rank]
    last = max(place for place in range(len(program)) if is_start_of_step(program, place))
    end = next(
        (
            place
            for place in range(last + 1, len(program))
            if isinstance(program[place], Sync | Local) or _site(program, place) in ("evaluate", "finish")
        ),
        len(program),
    )
    return InjectedFault(with_program(schedule, rank, program[:last] + program[end:]), frozenset((rank,)))


def _site(program: Program, place: int) -> str:
    step = program[place]
    return step.site if isinstance(step, Call) else ""


FAULTS = (
    Fault("skipped-call", "divergent", _skip),
    Fault("extra-call", "divergent", _extra),
    Fault("rank-conditional", "divergent", _rank_conditional),
    Fault("other-operation", "divergent", _change(_other_operation)),
    Fault("other-size", "divergent", _change(_other_size, _has_size)),
    Fault("other-dtype", "divergent", _change(_other_dtype, _has_size)),
    Fault("swapped-calls", "divergent", _swapped(is_one_group=True)),
    Fault("swapped-groups", "divergent", _swapped(is_one_group=False)),
    Fault("wrong-group", "divergent", _wrong_group),
    Fault("uneven-batches", "divergent", _uneven),
)
