"""Sends and receives of a group in pairs, and those without a partner.

`nccl:send 1->2` and `nccl:recv 3<-0` name ranks inside the group. The k-th send of a pair of ranks belongs to its k-th
receive; where a ring buffer has dropped the oldest, the finished calls are counted from their end. Gloo does not record
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from triage.artifacts.flight.grid import comparable
from triage.artifacts.flight.model import Recording
from triage.base.lazy_re import lazy_re

_NAME = lazy_re(r"[^:]*:(send|recv) (\d{1,7})(->|<-)(\d{1,7})$")
Kind = Literal["no-receive", "no-send", "wrong-target", "wrong-source", "sizes-differ", "stuck"]


def peer_of(op: str, members: Sequence[int]) -> int | None:
    """Return the global rank that a send goes to or a receive comes from; None for collectives."""
    name = _NAME.match(op)
    return members[int(name[4])] if name and int(name[4]) < len(members) else None


@dataclass(frozen=True, slots=True)
class Pair:
    """A send and its receive, as rows of the table; -1 for the one that is missing."""

    group: int
    source: int
    target: int
    send: int
    recv: int


def match_pairs(recording: Recording) -> list[Pair]:
    """Return the pairs with a call that is not done, in a fixed order."""
    return [
        pair
        for (group, source, target), (sends, recvs) in sorted(_channels(recording).items())
        for pair in _match(recording, group, source, target, sends, recvs)
    ]


def _channels(recording: Recording) -> dict[tuple[int, int, int], tuple[list[int], list[int]]]:
    """For (group, source, target) in global ranks: the rows of the sends and of the receives, oldest first."""
    table = recording.table
    names = [_NAME.match(op) for op in recording.ops]
    channels: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    for row in np.flatnonzero(table.is_p2p).tolist():
        name = names[int(table.op[row])]
        group = int(table.group[row])
        members = recording.groups[group].members
        if name is None or max(int(name[2]), int(name[4])) >= len(members):
            continue
        own, peer = members[int(name[2])], members[int(name[4])]
        if own != int(table.rank[row]):
            continue
        source, target = (own, peer) if name[1] == "send" else (peer, own)
        channels.setdefault((group, source, target), ([], []))[0 if name[1] == "send" else 1].append(row)
    return channels


def _match(
    recording: Recording, group: int, source: int, target: int, sends: list[int], recvs: list[int]
) -> Iterator[Pair]:
    done = recording.table.done
    if any(recording.dumps[rank].has_wrapped for rank in (source, target) if rank in recording.dumps):
        count = min(int(done[sends].sum()), int(done[recvs].sum()))
        sends, recvs = _newest(recording, sends, count), _newest(recording, recvs, count)
    for index in range(max(len(sends), len(recvs))):
        send = sends[index] if index < len(sends) else -1
        recv = recvs[index] if index < len(recvs) else -1
        if (send < 0 or not done[send]) and (recv < 0 or not done[recv]):
            yield Pair(group, source, target, send, recv)


def _newest(recording: Recording, rows: list[int], count: int) -> list[int]:
    """The last `count` finished calls and all that are not finished."""
    finished = [row for row in rows if recording.table.done[row]]
    return finished[len(finished) - count :] + [row for row in rows if not recording.table.done[row]]


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
    return (
        out != (comparable("scatter", received) or comparable("", received))
        or table.dtype[pair.send] != table.dtype[pair.recv]
    )
