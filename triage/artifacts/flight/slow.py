"""Slow ranks: where torch measured how long each collective took (TORCH_NCCL_ENABLE_TIMING), the rank with the shortest
time came last.
"""

from __future__ import annotations

from triage.artifacts.flight.model import Recording, Straggler

LEAST_SHARE = 0.05
"""A rank is slow when the others' waiting for it is at least this share of all the time that they spent in collectives."""


def stragglers(recording: Recording) -> tuple[Straggler, ...]:
    """Ranks that others waited for, worst first; empty when nothing was measured or all came together."""
    import numpy as np

    table = recording.table
    rows = np.flatnonzero((table.duration > 0) & ~table.is_p2p)
    if not len(rows):
        return ()
    key = np.stack([table.group[rows].astype(np.int64), table.seq[rows]])
    order = np.lexsort((table.duration[rows], key[1], key[0]))
    rows = rows[order]
    fresh = np.r_[True, (np.diff(key[:, order], axis=1) != 0).any(axis=0)]
    starts = np.flatnonzero(fresh)
    counts = np.diff(np.r_[starts, len(rows)])
    starts, counts = starts[counts > 1], counts[counts > 1]
    if not len(starts):
        return ()
    shortest = rows[starts]
    typical = table.duration[rows[starts + counts // 2]]
    lag = np.maximum(typical - table.duration[shortest], 0) / 1e3
    ranks, index = np.unique(table.rank[shortest], return_inverse=True)
    waited = np.bincount(index, weights=lag)
    last = np.bincount(index, weights=lag > typical / 1e3 * 0.2)
    total = float(typical.sum()) / 1e3
    found = [
        Straggler(int(rank), int(count), round(float(time), 6))
        for rank, count, time in zip(ranks, last, waited, strict=True)
        if time >= LEAST_SHARE * total and count
    ]
    return tuple(sorted(found, key=lambda straggler: (-straggler.waited, straggler.rank)))
