"""Faults of sends and receives: the two ends do not meet."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from triage.testing.schedules.faults.edits import Fault, InjectedFault, draw_call, draw_place, edit, ranks_of
from triage.testing.schedules.model import Call, Program, Schedule, Transfer

_Change = Callable[[Schedule, int, Call, Transfer, random.Random], Transfer | None]


def _without(call: Call, transfer: Transfer) -> tuple[Call, ...]:
    """Return the call without one of its transfers; nothing if it was the only one."""
    left = tuple(one for one in call.transfers if one is not transfer)
    return (replace(call, transfers=left),) if left else ()


def _missing(is_send: bool) -> Callable[[Schedule, random.Random], InjectedFault | None]:
    def inject(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
        rank = rng.randrange(schedule.size)
        drawn = draw_call(schedule, rank, rng, lambda call: any(one.is_send == is_send for one in call.transfers))
        if drawn is None:
            return None
        place, call = drawn
        transfer = next(one for one in call.transfers if one.is_send == is_send)
        changed = edit(schedule, rank, place, 1, *_without(call, transfer))
        return InjectedFault(changed, frozenset((rank,)), frozenset((transfer.peer,)))

    return inject


def _changed(change: _Change) -> Callable[[Schedule, random.Random], InjectedFault | None]:
    def inject(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
        rank = rng.randrange(schedule.size)
        drawn = draw_call(schedule, rank, rng, lambda call: call.is_p2p)
        if drawn is None:
            return None
        place, call = drawn
        transfer = rng.choice(call.transfers)
        other = change(schedule, rank, call, transfer, rng)
        if other is None:
            return None
        transfers = tuple(other if one is transfer else one for one in call.transfers)
        numel = call.numel and other.numel
        changed = edit(schedule, rank, place, 1, replace(call, transfers=transfers, numel=numel))
        return InjectedFault(changed, frozenset((rank,)), frozenset((transfer.peer, other.peer)))

    return inject


def _wrong_peer(schedule: Schedule, rank: int, call: Call, transfer: Transfer, rng: random.Random) -> Transfer | None:
    others = [one for one in ranks_of(schedule, call.group) if one not in (rank, transfer.peer)]
    return replace(transfer, peer=rng.choice(others)) if others else None


def _other_size(schedule: Schedule, rank: int, call: Call, transfer: Transfer, rng: random.Random) -> Transfer | None:
    return replace(transfer, numel=rng.choice((transfer.numel * 2, transfer.numel // 2, transfer.numel + 4096)))


def _order(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """A send and a receive with the same peer in the other order: both ends send, or both receive."""

    def fits(program: Program, place: int) -> bool:
        pair = program[place : place + 2]
        if len(pair) < 2 or not all(isinstance(one, Call) and one.operation in ("send", "recv") for one in pair):
            return False
        first, second = (one.transfers[0] for one in pair if isinstance(one, Call))
        return first.peer == second.peer and first.is_send != second.is_send

    rank = rng.randrange(schedule.size)
    place = draw_place(schedule, rank, rng, fits)
    if place is None:
        return None
    first, second = schedule.programs[rank][place : place + 2]
    assert isinstance(first, Call)
    changed = edit(schedule, rank, place, 2, second, first)
    return InjectedFault(changed, frozenset((rank,)), frozenset((first.transfers[0].peer,)))


def _broken(schedule: Schedule, rng: random.Random) -> InjectedFault | None:
    """A transfer that both ends start and that never completes."""
    rank = rng.randrange(schedule.size)
    drawn = draw_call(schedule, rank, rng, lambda call: any(one.is_send for one in call.transfers))
    if drawn is None:
        return None
    place, call = drawn
    peer = next(one.peer for one in call.transfers if one.is_send)
    number = sum(
        transfer.is_send and transfer.peer == peer
        for step in schedule.programs[rank][: place + 1]
        if isinstance(step, Call) and step.group == call.group
        for transfer in step.transfers
    )
    broken = replace(schedule, broken=frozenset({(call.group, rank, peer, number)}))
    return InjectedFault(broken, frozenset(), frozenset((rank, peer)))


FAULTS = (
    Fault("missing-recv", "pair", _missing(is_send=False)),
    Fault("missing-send", "pair", _missing(is_send=True)),
    Fault("wrong-peer", "pair", _changed(_wrong_peer)),
    Fault("transfer-size", "pair", _changed(_other_size)),
    Fault("transfer-order", "pair", _order),
    Fault("broken-transfer", "transfer", _broken),
)
