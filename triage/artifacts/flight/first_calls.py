"""The first open call of each rank, in the order in which the rank enqueued its calls over all groups.

Only there a rank waits; what it enqueued behind that call waits for the rank itself.
"""

from __future__ import annotations

import numpy as np

from triage.artifacts.flight.model import STARTED, Recording

FirstCalls = dict[int, tuple[int, ...]]
"""Rank to rows of the table: one call, or the sends and receives of one batch."""


def find_first_calls(recording: Recording) -> FirstCalls:
    """Return the first open call of each rank that has one; no row where a ring buffer may have dropped it."""
    table = recording.table
    rows = np.flatnonzero(~table.done)
    ranks, firsts, counts = np.unique(table.rank[rows], return_index=True, return_counts=True)
    calls: FirstCalls = {}
    for rank, first, count in zip(ranks.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        row = int(rows[first])
        dump = recording.dumps[rank]
        if row == dump.start and dump.first_record > 0 and not dump.only_open:
            calls[rank] = ()
            continue
        batch = [row]
        if table.is_p2p[row] and table.p2p[row] > 0:
            others = rows[first : first + count]
            same = (table.p2p[others] == table.p2p[row]) & (table.group[others] == table.group[row])
            batch = others[same & table.is_p2p[others]].tolist()
        calls[rank] = tuple(batch)
    return calls


def records_starts(recording: Recording) -> bool:
    """Return whether the dumps say which calls have started; without timing torch writes `scheduled` until the end."""
    return bool((recording.table.state == STARTED).any()) or any(
        each.started >= 0 for each in recording.status.values()
    )


def may_lack_calls(recording: Recording) -> bool:
    """Return whether dumps of open calls may be full ring buffers, which dropped earlier open calls.

    Then they have equally many entries.
    """
    return all(dump.only_open for dump in recording.dumps.values()) and (
        len({dump.entries for dump in recording.dumps.values()}) == 1
    )
