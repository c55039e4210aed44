"""Sends and receives in which ranks stand, and the partner that is missing.

`nccl:send 1->2` and `nccl:recv 3<-0` name ranks inside the group. The k-th send of a pair of ranks belongs to its k-th
receive; where the dumps have lost finished calls, as many sends as receives are taken to be finished. Gloo does not
record them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from triage.artifacts.flight.first_calls import FirstCalls
from triage.artifacts.flight.grid import comparable
from triage.artifacts.flight.model import STARTED, Recording
from triage.base.lazy_re import lazy_re

_NAME = lazy_re(r"[^:]*:(send|recv) (\d{1,7})(->|<-)(\d{1,7})$")
Kind = Literal["no-receive", "no-send", "no-dump", "queued", "sizes-differ", "stuck"]


class Transfer(NamedTuple):
    """The name of a send or receive: `own` and `peer` are ranks inside the group."""

    action: str
    own: int
    peer: int


def parse_p2p(op: str) -> Transfer | None:
    """Return what the name of a send or receive says; None for collectives."""
    name = _NAME.match(op)
    return Transfer(name[1], int(name[2]), int(name[4])) if name else None


def peer_of(op: str, members: Sequence[int]) -> int | None:
    """Return the global rank that a send goes to or a receive comes from; None for collectives."""
    transfer = parse_p2p(op)
    return members[transfer.peer] if transfer and transfer.peer < len(members) else None


@dataclass(frozen=True, slots=True)
class Pair:
    """A send and its receive, as rows of the table; -1 for the one that is missing."""

    group: int
    source: int
    target: int
    send: int
    recv: int

    @property
    def ranks(self) -> frozenset[int]:
        """Sender and receiver."""
        return frozenset((self.source, self.target))


@dataclass(frozen=True, slots=True)
class Channel:
    """The sends of `source` to `target` and their receives, as rows of the table, oldest first."""

    group: int
    source: int
    target: int
    sends: tuple[int, ...]
    recvs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class P2pStall:
    """A send or receive that does not end.

    `standing` ranks wait in the call of `pair`, for the `missing` ones. `odd` are the ranks at fault where the calls
    themselves are wrong.
    """

    kind: Kind
    pair: Pair
    standing: frozenset[int]
    missing: frozenset[int] = frozenset()
    odd: frozenset[int] = frozenset()

    @property
    def row(self) -> int:
        """The row of the table with the call that waits."""
        return self.pair.send if self.pair.send >= 0 else self.pair.recv


def find_channels(recording: Recording) -> list[Channel]:
    """Return all channels in a fixed order."""
    table = recording.table
    transfers = [parse_p2p(op) for op in recording.ops]
    rows_of: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    for row in np.flatnonzero(table.is_p2p).tolist():
        transfer = transfers[int(table.op[row])]
        group = int(table.group[row])
        members = recording.groups[group].members
        if transfer is None or max(transfer.own, transfer.peer) >= len(members):
            continue
        own, peer = members[transfer.own], members[transfer.peer]
        if own != int(table.rank[row]):
            continue
        source, target = (own, peer) if transfer.action == "send" else (peer, own)
        rows_of.setdefault((group, source, target), ([], []))[0 if transfer.action == "send" else 1].append(row)
    return [Channel(*key, tuple(sends), tuple(recvs)) for key, (sends, recvs) in sorted(rows_of.items())]


def match_pairs(recording: Recording, channel: Channel) -> Iterator[Pair]:
    """Yield the pairs of a channel with a call that is not done."""
    done = recording.table.done
    sends, recvs = list(channel.sends), list(channel.recvs)
    dumps = [recording.dumps.get(rank) for rank in (channel.source, channel.target)]
    if any(dump is None or dump.has_wrapped or not dump.is_complete for dump in dumps):
        count = min(int(done[sends].sum()), int(done[recvs].sum()))
        sends, recvs = _newest(recording, sends, count), _newest(recording, recvs, count)
    for index in range(max(len(sends), len(recvs))):
        send = sends[index] if index < len(sends) else -1
        recv = recvs[index] if index < len(recvs) else -1
        if any(row >= 0 and not done[row] for row in (send, recv)):
            yield Pair(channel.group, channel.source, channel.target, send, recv)


def _newest(recording: Recording, rows: list[int], count: int) -> list[int]:
    """The last `count` finished calls and all that are not finished."""
    finished = [row for row in rows if recording.table.done[row]]
    return finished[len(finished) - count :] + [row for row in rows if not recording.table.done[row]]


def find_p2p_stalls(recording: Recording, first_calls: FirstCalls, older: frozenset[int]) -> list[P2pStall]:
    """Return a stall for each pair in which a rank stands."""
    first_rows = {row for rank, rows in first_calls.items() if rank not in older for row in rows}
    channels = find_channels(recording)
    pairs = [pair for channel in channels for pair in match_pairs(recording, channel)]
    stalls = [_examine(recording, pair, first_rows, older) for pair in pairs if {pair.send, pair.recv} & first_rows]
    return list(_hold_batches(stalls))


def _hold_batches(stalls: Sequence[P2pStall]) -> Iterator[P2pStall]:
    """A batch ends as a whole: a transfer that both sides made waits for the side with an unmatched call beside it."""
    unmatched = {rank for stall in stalls if stall.kind != "stuck" for rank in stall.standing}
    for stall in stalls:
        held = stall.standing & unmatched if stall.kind == "stuck" else frozenset()
        if not held:
            yield stall
        elif stall.standing - held:
            yield replace(stall, kind="queued", standing=stall.standing - held, missing=held, odd=frozenset())


def _examine(recording: Recording, pair: Pair, first_rows: set[int], older: frozenset[int]) -> P2pStall:
    table = recording.table
    sides = ((pair.source, pair.send), (pair.target, pair.recv))
    standing = frozenset(rank for rank, row in sides if row in first_rows or (row >= 0 and table.state[row] == STARTED))
    if all(row >= 0 for _, row in sides) and not pair.ranks & older:
        if _sizes_differ(recording, pair):
            return P2pStall("sizes-differ", pair, standing, odd=pair.ranks)
        queued = frozenset(rank for rank, row in sides if not table.done[row]) - standing
        if queued:
            return P2pStall("queued", pair, standing, missing=queued)
        return P2pStall("stuck", pair, standing, odd=pair.ranks)
    partner = min(pair.ranks - standing or pair.ranks)
    dump = recording.dumps.get(partner)
    if dump is None or partner in older or not dump.is_complete:
        return P2pStall("no-dump", pair, standing, missing=frozenset((partner,)))
    return P2pStall("no-receive" if pair.recv < 0 else "no-send", pair, standing, missing=frozenset((partner,)))


def _sizes_differ(recording: Recording, pair: Pair) -> bool:
    table = recording.table
    sent, received = (recording.shapes[int(table.shape[row])] for row in (pair.send, pair.recv))
    out = comparable("", sent)
    types = {recording.dtypes[int(table.dtype[row])] for row in (pair.send, pair.recv)} - {""}
    return out != (comparable("scatter", received) or comparable("", received)) or len(types) > 1
