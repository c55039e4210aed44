"""Who skipped a call: how many calls of another group the ranks had made when they entered the same call.

Where ranks wait for each other in a ring, each is ahead in one group and behind in another. The ranks that entered the
same call beside it, also those of parallel groups, show which count is usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triage.artifacts.flight.model import Recording, format_operation
from triage.artifacts.flight.stalls import Stall
from triage.artifacts.flight.usual_order import group_kind
from triage.base.rank_ranges import format_ranks


@dataclass(frozen=True, slots=True)
class OddCount:
    """The ranks whose count differs from that of most others, and the sentence that says so."""

    ranks: frozenset[int]
    text: str


def find_odd_count(recording: Recording, stalls: Sequence[Stall]) -> OddCount | None:
    """Return the rank of a ring that made fewer calls than the others; None where the counts do not decide."""
    for stall in stalls:
        for other in stalls:
            for rank in sorted(stall.absent & other.standing):
                odd = _compare(recording, stall, other, rank)
                if odd:
                    return odd
    return None


def _compare(recording: Recording, stall: Stall, other: Stall, rank: int) -> OddCount | None:
    """Whether `rank`, missing in `stall`, made fewer calls there than most of the ranks that entered `other`."""
    group = stall.grid.number
    own = _count_before(recording, rank, group, other.cell(rank))
    if own is None or own >= stall.seq:
        return None
    kind = group_kind(recording.groups[group])
    peers = {number for number, each in enumerate(recording.groups) if group_kind(each) == kind}
    fewer, more = [], []
    for peer in sorted(other.entered - {rank}):
        for number in peers:
            if peer in recording.groups[number].members and other.cell(peer) >= 0:
                count = _count_before(recording, peer, number, other.cell(peer))
                fewer += [peer] * (count == own)
                more += [peer] * (count is not None and count >= stall.seq)
    if len(more) <= max(1, 2 * len(fewer)):
        return None
    call = format_operation(recording, other.cell(rank))
    label = recording.groups[group].label
    where = f"#{own} of {label}" if len(peers) == 1 else f"#{own} of its group {label}"
    text = f"rank {rank} entered {call} after call {where}, {format_ranks(more)} after #{stall.seq}"
    return OddCount(frozenset((rank,)), text)


def _count_before(recording: Recording, rank: int, group: int, row: int) -> int | None:
    """The last number of a group that a rank enqueued before the call in a row; None if the dump does not show it."""
    table, dump = recording.table, recording.dumps[rank]
    in_group = (table.group[dump.start : dump.end] == group) & ~table.is_p2p[dump.start : dump.end]
    rows = np.flatnonzero(in_group) + dump.start
    before, after = rows[rows < row], rows[rows > row]
    if len(before):
        return int(table.seq[before[-1]])
    if len(after):
        return int(table.seq[after[0]]) - 1
    status = recording.status.get((rank, group))
    return status.enqueued if status else None if dump.has_wrapped else 0
