"""Sends and receives of a group in pairs, and those without a partner.

`nccl:send 1->2` and `nccl:recv 3<-0` name ranks inside the group. The k-th send of a pair of ranks belongs to its k-th
receive; where a ring buffer has dropped the oldest, the finished calls are counted from their end. Gloo does not record
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triage.artifacts.flight.model import Recording
from triage.base.lazy_re import lazy_re

_NAME = lazy_re(r"[^:]*:(send|recv) (\d{1,7})(->|<-)(\d{1,7})$")


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
    open_pairs: list[Pair] = []
    for (group, source, target), (sends, recvs) in sorted(_channels(recording).items()):
        open_pairs.extend(_match(recording, group, source, target, sends, recvs))
    return open_pairs


def _channels(recording: Recording) -> dict[tuple[int, int, int], tuple[list[int], list[int]]]:
    """For (group, source, target) in global ranks: the rows of the sends and of the receives, oldest first."""
    import numpy as np

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
