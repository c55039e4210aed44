"""Sends and receives that do not match, as places where ranks wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from triage.artifacts.flight.grid import comparable
from triage.artifacts.flight.model import Recording
from triage.artifacts.flight.p2p import Pair, match_pairs

Kind = Literal["no-receive", "no-send", "wrong-target", "wrong-source", "sizes-differ", "stuck"]


@dataclass(frozen=True, slots=True)
class P2pStall:
    """A send or receive that does not end.

    `waiting` ranks stand in the call of `pair`, `absent` is the side that did not call, `odd` are the ranks at fault
    where the calls themselves are wrong. `instead` is the rank that the call should have named, where it is known.
    """

    kind: Kind
    pair: Pair
    waiting: frozenset[int]
    absent: frozenset[int] = frozenset()
    odd: frozenset[int] = frozenset()
    instead: int | None = None

    @property
    def row(self) -> int:
        """The row of the table with the call that waits."""
        return self.pair.send if self.pair.send >= 0 else self.pair.recv


def find_p2p_stalls(recording: Recording) -> list[P2pStall]:
    """Return what is wrong between pairs of ranks, without matching calls that only wait behind something wrong."""
    pairs = match_pairs(recording)
    sends, receives = [pair for pair in pairs if pair.recv < 0], [pair for pair in pairs if pair.send < 0]
    stalls = [_lone_send(pair, receives) for pair in sends]
    misdirected = {stall.pair for stall in stalls if stall.kind == "wrong-target"}
    explained = {(stall.pair.source, stall.instead) for stall in stalls if stall.instead is not None}
    remaining = [pair for pair in sends if pair not in misdirected]
    stalls += [_lone_receive(pair, remaining) for pair in receives if (pair.source, pair.target) not in explained]
    answered = {(stall.instead, stall.pair.target) for stall in stalls if stall.kind == "wrong-source"}
    stalls = [
        stall
        for stall in stalls
        if stall.kind != "no-receive" or (stall.pair.source, stall.pair.target) not in answered
    ]
    stalls += [
        P2pStall("sizes-differ", pair, _both(pair), odd=_both(pair)) for pair in pairs if _sizes_differ(recording, pair)
    ]
    return stalls or [P2pStall("stuck", pair, _both(pair), odd=_both(pair)) for pair in pairs]


def _lone_send(pair: Pair, receives: Sequence[Pair]) -> P2pStall:
    """A send without a receive: to the wrong rank where another rank waits for the sender."""
    wanted = next((each for each in receives if each.source == pair.source and each.group == pair.group), None)
    source = frozenset((pair.source,))
    if wanted is None:
        return P2pStall("no-receive", pair, source, frozenset((pair.target,)))
    return P2pStall("wrong-target", pair, source | {wanted.target}, odd=source, instead=wanted.target)


def _lone_receive(pair: Pair, sends: Sequence[Pair]) -> P2pStall:
    """A receive without a send: from the wrong rank where another rank sends to the receiver."""
    offered = next((each for each in sends if each.target == pair.target and each.group == pair.group), None)
    target = frozenset((pair.target,))
    if offered is None:
        return P2pStall("no-send", pair, target, frozenset((pair.source,)))
    return P2pStall("wrong-source", pair, target | {offered.source}, odd=target, instead=offered.source)


def _both(pair: Pair) -> frozenset[int]:
    return frozenset((pair.source, pair.target))


def _sizes_differ(recording: Recording, pair: Pair) -> bool:
    if pair.send < 0 or pair.recv < 0:
        return False
    table = recording.table
    sent, received = (recording.shapes[int(table.shape[row])] for row in (pair.send, pair.recv))
    out = comparable("", sent)
    into = comparable("scatter", received) or comparable("", received)
    return out != into or table.dtype[pair.send] != table.dtype[pair.recv]
