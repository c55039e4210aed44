"""The calls in which ranks wait by their Flight Recorder dumps, beside an answer that rests on other evidence.

A stack shows the place of a rank, and neither the group nor the number of its call: the dump of that rank has both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from triage.base.rank_ranges import format_ranks
from triage.diagnose.phrases import agree
from triage.model import Evidence, FlightDetail

_MOST_CALLS = 3


def describe_recorded_calls(facts: Iterable[Evidence], reasons: Sequence[str]) -> list[str]:
    """Return `By the dumps, rank 0 waits in barrier #3 of dp; ranks 1-3 wait in all_reduce #7 of tp`.

    The calls of most ranks come first. Nothing where no dump has an open call, or `reasons` name all of these.
    """
    waiting: dict[str, list[int]] = defaultdict(list)
    for fact in facts:
        if isinstance(fact.detail, FlightDetail) and fact.detail.call and fact.origin.rank is not None:
            waiting[fact.detail.call].append(fact.origin.rank)
    if all(any(call in reason for reason in reasons) for call in waiting):
        return []
    calls = sorted(waiting.items(), key=lambda item: (-len(item[1]), min(item[1])))
    parts = [f"{format_ranks(ranks)} {agree(ranks, 'waits', 'wait')} in {call}" for call, ranks in calls[:_MOST_CALLS]]
    more = len(calls) - _MOST_CALLS
    return [f"By the dumps, {'; '.join(parts)}" + (f"; and {more} more" if more > 0 else "")]
