"""Ranks that must share a source with others, since lower and higher ones write in it, but of which no line was read.

Of a large source only its ends and the lines around failures are read, so that a rank without a failure may be missed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from triage.ranks.layouts import Layout
from triage.records.activity import Activity, find_earlier_activity

# With fewer others for each missing rank, a launcher may show the output of some ranks only.
_FEWEST_OTHERS = 4
_MOST = 64


def list_unread_ranks(ranks: Collection[int]) -> list[int]:
    """Return the few ranks that are missing between these; none where many are."""
    if not ranks:
        return []
    span = range(min(ranks), max(ranks) + 1)
    are_few = 0 < len(span) - len(ranks) <= min(_MOST, len(ranks) // _FEWEST_OTHERS)
    return [rank for rank in span if rank not in ranks] if are_few else []


def find_last_activity(
    read: Callable[[int, int], bytes],
    size: int,
    ranks: Sequence[int],
    others: Iterable[Activity],
    year: int,
    layout: Layout,
) -> list[Activity] | None:
    """Return the last activity of ranks whose lines begin as those of `others`, but for the number.

    None: the lines of the others do not begin with a rank, so that it is not known whether these wrote any.
    """
    examples = {parts: activity for activity in others if (parts := _split_writer(activity))}
    for (start, end), activity in sorted(examples.items()):
        writer = activity.writer.encode()
        if read(activity.offset, len(writer)) == writer:
            return find_earlier_activity(read, size, [f"{start}{rank}{end}" for rank in ranks], year, layout)
    return None


def _split_writer(activity: Activity) -> tuple[str, str] | None:
    """Return what stands before and behind the rank of a writer, `[rank` and `]:`, if its number is there once."""
    parts = re.split(rf"(?<!\d){activity.origin.rank}(?!\d)", activity.writer)
    return (parts[0], parts[1]) if len(parts) == 2 and activity.origin.rank is not None else None
