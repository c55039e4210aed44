"""Point to point: sends and receives of a group put in pairs, and what is left over.

`nccl:send 1->2` and `nccl:recv 3<-0` name ranks inside the group. The k-th send of a pair of ranks belongs to its k-th
receive; where a ring has
dropped the oldest, those that are done are counted from their end. Gloo does not record them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triage.artifacts.flight.model import Recording
from triage.base.lazy_re import lazy_re

_NAME = lazy_re(r"[^:]*:(send|recv) (\d{1,7})(->|<-)(\d{1,7})$")


def peer_of(op: str, members: Sequence[int]) -> int | None:
    """The global rank that a send goes to or a receive comes from; None for collectives."""
    name = _NAME.match(op)
    return members[int(name[4])] if name and int(name[4]) < len(members) else None


@dataclass(frozen=True, slots=True)
class Pair:
    """A send and its receive, as rows of the table; -1 where there is none."""

    group: int
    source: int
    target: int
    send: int
    recv: int


def pairs(recording: Recording) -> list[Pair]:
    """All pairs of which one side is not done, in a fixed order."""
    found: list[Pair] = []
    for (group, source, target), (sends, recvs) in sorted(_channels(recording).items()):
        found.extend(_match(recording, group, source, target, sends, recvs))
    return found


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
    if any(recording.dumps[rank].wrapped for rank in (source, target) if rank in recording.dumps):
        kept = min(int(done[sends].sum()), int(done[recvs].sum()))
        sends, recvs = _newest(recording, sends, kept), _newest(recording, recvs, kept)
    for index in range(max(len(sends), len(recvs))):
        send = sends[index] if index < len(sends) else -1
        recv = recvs[index] if index < len(recvs) else -1
        if (send < 0 or not done[send]) and (recv < 0 or not done[recv]):
            yield Pair(group, source, target, send, recv)


def _newest(recording: Recording, rows: list[int], kept: int) -> list[int]:
    finished = [row for row in rows if recording.table.done[row]]
    return finished[len(finished) - kept :] + [row for row in rows if not recording.table.done[row]]
