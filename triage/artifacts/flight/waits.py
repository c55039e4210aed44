"""Who waits for whom across groups: a rank that is missing in one group may itself wait in another.

Knots are places where ranks wait. Knot A depends on knot B when a rank that A misses waits in B. What depends on
nothing is a root; knots that
depend on each other in a ring are one deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Knot:
    """`waiting` ranks wait for the `absent`; a knot without absent ranks explains itself."""

    waiting: frozenset[int]
    absent: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Resolved:
    """For each knot those it depends on; rings of knots, each ascending; and for each knot the absent ranks that wait
    nowhere.
    """

    depends: tuple[tuple[int, ...], ...]
    rings: tuple[tuple[int, ...], ...]
    idle: tuple[frozenset[int], ...]


def resolve(knots: Sequence[Knot]) -> Resolved:
    waits_in: dict[int, list[int]] = {}
    for index, knot in enumerate(knots):
        for rank in knot.waiting:
            waits_in.setdefault(rank, []).append(index)
    depends = tuple(
        tuple(sorted({other for rank in knot.absent for other in waits_in.get(rank, ()) if other != index}))
        for index, knot in enumerate(knots)
    )
    idle = tuple(frozenset(rank for rank in knot.absent if rank not in waits_in) for knot in knots)
    return Resolved(depends, _rings(depends), idle)


def _rings(depends: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Strongly connected parts of more than one knot (Tarjan, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    rings = []
    for start in range(len(depends)):
        work = [(start, 0)] if start not in order else []
        while work:
            node, child = work.pop()
            if child == 0:
                order[node] = low[node] = len(order)
                stack.append(node)
                on_stack.add(node)
            if child < len(depends[node]):
                work.append((node, child + 1))
                nxt = depends[node][child]
                if nxt not in order:
                    work.append((nxt, 0))
                elif nxt in on_stack:
                    low[node] = min(low[node], order[nxt])
                continue
            for nxt in depends[node]:
                if nxt in on_stack:
                    low[node] = min(low[node], low[nxt])
            if low[node] == order[node]:
                part = stack[stack.index(node) :]
                del stack[len(stack) - len(part) :]
                on_stack.difference_update(part)
                if len(part) > 1:
                    rings.append(tuple(sorted(part)))
    return tuple(sorted(rings))
