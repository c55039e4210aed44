"""How far each rank is in each group by `pg_status`, and which open calls are complete in truth.

`pg_status` has the numbers of the last enqueued, started and completed call of each group, by torch's `pg_id`, which
each process counts for itself. A dump of the calls in flight shows only by it which calls a rank has behind it. In a
group with sends and receives the numbers are those of the last call, of either counter.

torch never updates the single calls of a batch (`batch_isend_irecv`, `coalescing_manager`): their state is that of the
entry `coalesced` that ends the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from triage.artifacts.flight.model import Bools, Group, GroupStatus, Ints

_NUMBERS = tuple(f"last_{state}_collective" for state in ("enqueued", "started", "completed"))
_MAX_GROUPS = 4096


def parse_status(value: Any) -> dict[str, tuple[int, int, int]]:
    """Return the three numbers of each `pg_id`; -1 for never. Numbers are text in JSON dumps."""
    status: dict[str, tuple[int, int, int]] = {}
    for name, numbers in list(value.items())[:_MAX_GROUPS] if isinstance(value, dict) else ():
        if isinstance(numbers, dict):
            texts = [str(numbers.get(key, "")) for key in _NUMBERS]
            if all(text.lstrip("-").isdigit() and len(text) < 19 for text in texts):
                status[str(name)] = (int(texts[0]), int(texts[1]), int(texts[2]))
    return status


class StatusOfRank(NamedTuple):
    """The `pg_status` of one rank, and which group (by its number in the recording) each `pg_id` in its entries is."""

    rank: int
    status: Mapping[str, tuple[int, int, int]]
    groups: Mapping[str, int]


def join_status(groups: Sequence[Group], ranks: Sequence[StatusOfRank]) -> dict[tuple[int, int], GroupStatus]:
    """Return the status by (rank, number of the group).

    Where a rank has no entry of a group, the group has the `pg_id` that all other ranks use for it.
    """
    usual: dict[int, str] = {}
    ambiguous = set()
    for each in ranks:
        for pg_id, number in each.groups.items():
            if usual.setdefault(number, pg_id) != pg_id:
                ambiguous.add(number)
    by_rank = {each.rank: each for each in ranks}
    joined: dict[tuple[int, int], GroupStatus] = {}
    for number, group in enumerate(groups):
        for rank in group.members:
            owner = by_rank.get(rank)
            if owner is None:
                continue
            own = next((pg_id for pg_id, other in owner.groups.items() if other == number), None)
            pg_id = own if own is not None else usual.get(number, "") if number not in ambiguous else ""
            if pg_id in owner.status and (own is not None or pg_id not in owner.groups):
                joined[rank, number] = GroupStatus(*owner.status[pg_id])
    return joined


@dataclass(frozen=True, slots=True)
class CallColumns:
    """The columns of all entries that show which calls are complete; `in_order`: of a backend that runs them in order.

    `is_batch_end` are the entries `coalesced`. `done` and `state` are changed in place.
    """

    rank: Ints
    group: Ints
    number: Ints
    is_p2p: Bools
    is_batch_end: Bools
    in_order: Bools
    state: Ints
    done: Bools

    @property
    def counters(self) -> Ints:
        """A number for each counter: rank, group, and whether it counts sends and receives."""
        return (self.rank.astype(np.int64) * (int(self.group.max(initial=0)) + 1) + self.group) * 2 + self.is_p2p


def settle_batches(calls: CallColumns) -> None:
    """Give the calls of each batch the state of the entry that ends it."""
    if not calls.is_batch_end.any():
        return
    keys = calls.counters * (int(calls.number.max(initial=0)) + 1) + calls.number
    ends = np.flatnonzero(calls.is_batch_end)
    ends = ends[np.argsort(keys[ends], kind="stable")]
    place = np.minimum(np.searchsorted(keys[ends], keys), len(ends) - 1)
    members = np.flatnonzero((keys[ends][place] == keys) & ~calls.is_batch_end)
    calls.done[members] = calls.done[ends[place[members]]]
    calls.state[members] = calls.state[ends[place[members]]]


def mark_proven_complete(calls: CallColumns, status: Mapping[tuple[int, int], GroupStatus]) -> None:
    """Mark open calls as done that `pg_status` counts as complete, and collectives of which the rank has done a later.

    The calls of a communicator run one after another. Sends and receives of different partners do not.
    """
    open_calls = np.flatnonzero(~calls.done & calls.in_order)
    if not len(open_calls):
        return
    counters = calls.counters
    is_concerned = np.isin(counters // 2, np.unique(counters[open_calls] // 2))
    last: dict[int, int] = {}
    last_done: dict[int, int] = {}
    concerned = np.flatnonzero(is_concerned & calls.in_order)
    for row in concerned[np.argsort(calls.number[concerned], kind="stable")].tolist():
        last[int(counters[row])] = int(calls.number[row])
        if calls.done[row] and not calls.is_p2p[row]:
            last_done[int(counters[row])] = int(calls.number[row])
    for row in open_calls.tolist():
        counter, number = int(counters[row]), int(calls.number[row])
        each = status.get((int(calls.rank[row]), int(calls.group[row])))
        is_counted = each is not None and counter ^ 1 not in last and each.enqueued == last[counter]
        is_counted = is_counted and each is not None and number <= each.completed <= each.enqueued
        calls.done[row] = is_counted or number < last_done.get(counter, -1)
