"""Which call usually follows which: where two sides call different things, one may do what nobody ever did.

Calls are equal here if operation, size, type and kind of group are: groups of one description and size are one kind, so
that parallel groups confirm each other. A send or receive is known by how far away its partner is in the group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from triage.artifacts.flight.grid import size_keys
from triage.artifacts.flight.model import Group, Ints, Recording
from triage.artifacts.flight.p2p import parse_p2p

_NO_DESCRIPTION = ("", "undefined")


class UsualOrder:
    """The calls of a recording as numbers that are equal for equal calls, each with the call before it."""

    def __init__(self, recording: Recording) -> None:
        table = recording.table
        group_kinds = _number([group_kind(group) for group in recording.groups])
        pairs, index = np.unique(
            np.stack([table.group.astype(np.int64), table.op.astype(np.int64)]), axis=1, return_inverse=True
        )
        call_kinds = _number(
            [
                (int(group_kinds[group]), _relative(recording.ops[op], len(recording.groups[group].members)))
                for group, op in pairs.T.tolist()
            ]
        )
        sizes = size_keys(recording)
        packed = call_kinds[index.reshape(-1)] * (int(sizes.max(initial=0)) + 1) + sizes
        packed = packed * (len(recording.dtypes) + 1) + table.dtype
        self._call: Ints = packed
        is_next = (table.rank[1:] == table.rank[:-1]) & (table.record[1:] - table.record[:-1] == 1)
        self._before: Ints = np.where(np.r_[False, is_next], np.r_[0, packed[:-1]], -1)
        self._rank: Ints = table.rank

    def _count(self, row: int, *, with_call_before: bool) -> int | None:
        """How often the call of a row is made elsewhere, after the same call; None if that one is not known."""
        same = self._call == self._call[row]
        if with_call_before:
            same &= self._before == self._before[row]
        return None if with_call_before and self._before[row] < 0 else int(same.sum()) - 1

    def find_unusual(self, calls: Mapping[int, int]) -> frozenset[int]:
        """Return the ranks (of rank to row) whose call nobody else ever made there, if all others made a usual one."""
        for with_call_before in (True, False):
            counts = {rank: self._count(row, with_call_before=with_call_before) for rank, row in calls.items()}
            unusual = frozenset(rank for rank, count in counts.items() if not count)
            if None not in counts.values() and 0 < len(unusual) < len(calls):
                return unusual
        return frozenset()


def _number(values: Sequence[object]) -> Ints:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def group_kind(group: Group) -> tuple[str, tuple[int, ...]]:
    """Return what parallel groups have in common: the description without numbers, and the size.

    Groups without a description are parallel if their ranks are equally far apart, as those of a mesh dimension are.
    """
    description = re.sub(r"\d+", "", group.desc)
    if description not in _NO_DESCRIPTION:
        return description, (len(group.members),)
    first = min(group.members, default=0)
    return description, tuple(sorted(rank - first for rank in group.members))


def _relative(op: str, size: int) -> tuple[str, int]:
    """Name of the operation, and the distance of the partner of a send or receive."""
    transfer = parse_p2p(op)
    if transfer is None:
        return op, 0
    return transfer.action, (transfer.peer - transfer.own) % max(size, 1)
