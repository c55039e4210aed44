"""Who skipped a call: how many calls of another group the ranks had made when they entered the same call.

Where ranks wait for each other in a ring, each is ahead in one group and behind in another. The ranks that entered the
same call beside it, also those of parallel groups, show which count is usual. Where too few entered that call, the last
call that the rank made in each other group decides: if most ranks made it behind a later number, this one skipped one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from triage.artifacts.flight.model import Recording, format_operation
from triage.artifacts.flight.stalls import Stall
from triage.artifacts.flight.usual_order import group_kind
from triage.base.rank_ranges import format_ranks

_MOST_COMPARED = 32  # waits of a ring whose earlier calls are compared: each takes a pass over all calls


@dataclass(frozen=True, slots=True)
class OddCount:
    """The ranks whose count differs from that of most others, and the sentence that says so.

    `left_out` is the call that they skipped, as a later one in another group shows; None where their order may differ.
    """

    ranks: frozenset[int]
    text: str
    left_out: Stall | None = None


def find_odd_count(recording: Recording, stalls: Sequence[Stall]) -> OddCount | None:
    """Return the rank of a ring that made fewer calls than the others; None where the counts do not decide."""
    absent = [
        (stall, other, rank) for stall in stalls for other in stalls for rank in sorted(stall.absent & other.standing)
    ]
    for stall, other, rank in absent:
        cells = {peer: other.cell(peer) for peer in sorted(other.entered)}
        if odd := _compare(
            recording, stall, other.cell(rank), {peer: cell for peer, cell in cells.items() if cell >= 0}
        ):
            return odd
    for stall, other, rank in absent[:_MOST_COMPARED]:
        for row in _last_calls(recording, other.cell(rank)):
            if odd := _compare(recording, stall, row, _same_call(recording, row)):
                return replace(odd, left_out=stall)
    return None


def _last_calls(recording: Recording, row: int) -> list[int]:
    """The last call that the rank of a row made in each other group before it, as rows."""
    table = recording.table
    start = recording.dumps[int(table.rank[row])].start
    before = {int(table.group[each]): each for each in range(start, row) if not table.is_p2p[each]}
    return [each for group, each in sorted(before.items()) if group != table.group[row]]


def _compare(recording: Recording, stall: Stall, row: int, entered: Mapping[int, int]) -> OddCount | None:
    """Whether the rank of a row, missing in `stall`, made fewer calls there before it than most that made this call.

    `entered` has the rows of the ranks that made it.
    """
    rank, group = int(recording.table.rank[row]), stall.grid.number
    own = _count_before(recording, rank, group, row)
    if own is None or own >= stall.seq:
        return None
    peers = _parallel_groups(recording, group)
    fewer, more = [], []
    for peer, cell in entered.items():
        for number in peers if peer != rank else ():
            if peer in recording.groups[number].members:
                count = _count_before(recording, peer, number, cell)
                fewer += [peer] * (count == own)
                more += [peer] * (count is not None and count >= stall.seq)
    if len(more) <= max(1, 2 * len(fewer)):
        return None
    label = recording.groups[group].label
    where = f"#{own} of {label}" if len(peers) == 1 else f"#{own} of its group {label}"
    call = format_operation(recording, row)
    text = f"rank {rank} entered {call} after call {where}, {format_ranks(more)} after #{stall.seq}"
    return OddCount(frozenset((rank,)), text)


def _same_call(recording: Recording, row: int) -> dict[int, int]:
    """The rows with the call of this row, by its number and kind of group, each by its rank."""
    table = recording.table
    peers = list(_parallel_groups(recording, int(table.group[row])))
    is_same = np.isin(table.group, peers) & (table.seq == table.seq[row]) & ~table.is_p2p
    return {int(table.rank[each]): int(each) for each in np.flatnonzero(is_same)}


def _parallel_groups(recording: Recording, group: int) -> set[int]:
    kind = group_kind(recording.groups[group])
    return {number for number, each in enumerate(recording.groups) if group_kind(each) == kind}


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
