"""Slow ranks, found where torch measured how long each collective took (TORCH_NCCL_ENABLE_TIMING).

The rank with the shortest time in a collective entered it last: the others waited for it.
"""

from __future__ import annotations

from triage.artifacts.flight.model import Ints, Recording, Straggler

MIN_SHARE = 0.05
"""A rank is slow when the others wait for it for at least this share of all their time in collectives."""


def find_stragglers(recording: Recording) -> tuple[Straggler, ...]:
    """Return the ranks that others waited for, worst first; empty where nothing was measured or all came together."""
    import numpy as np

    table = recording.table
    rows, starts, counts = _calls_of_several_ranks(recording)
    if not len(starts):
        return ()
    shortest = rows[starts]
    typical = table.duration[rows[starts + counts // 2]]
    lag = np.maximum(typical - table.duration[shortest], 0) / 1e3
    ranks, index = np.unique(table.rank[shortest], return_inverse=True)
    waited = np.bincount(index, weights=lag)
    times_last = np.bincount(index, weights=lag > typical / 1e3 * 0.2)
    total = float(typical.sum()) / 1e3
    stragglers = [
        Straggler(int(rank), int(count), round(float(seconds), 6))
        for rank, count, seconds in zip(ranks, times_last, waited, strict=True)
        if seconds >= MIN_SHARE * total and count
    ]
    return tuple(sorted(stragglers, key=lambda straggler: (-straggler.waited_seconds, straggler.rank)))


def _calls_of_several_ranks(recording: Recording) -> tuple[Ints, Ints, Ints]:
    """The timed rows, call by call and shortest first, with the start and length of each call of at least two ranks."""
    import numpy as np

    table = recording.table
    rows = np.flatnonzero((table.duration > 0) & ~table.is_p2p)
    key = np.stack([table.group[rows].astype(np.int64), table.seq[rows]])
    order = np.lexsort((table.duration[rows], key[1], key[0]))
    starts = np.flatnonzero(np.r_[True, (np.diff(key[:, order], axis=1) != 0).any(axis=0)][: len(rows)])
    counts = np.diff(np.r_[starts, len(rows)])
    return rows[order], starts[counts > 1], counts[counts > 1]
