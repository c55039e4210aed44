"""Which wait causes which: calls are nodes, and each points to the calls in which the ranks that it lacks stand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WaitNode:
    """One call: it is the first open call of the `standing` ranks, and the `missing` ranks have not reached it.

    Without missing ranks it explains itself.
    """

    standing: frozenset[int]
    missing: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class WaitGraph:
    """The dependencies of all calls, by the index of their node.

    `depends` are those that each node depends on, `rings` the nodes of each deadlock in ascending order, `idle` the
    missing ranks of each node that stand in no node.
    """

    depends: tuple[tuple[int, ...], ...]
    rings: tuple[tuple[int, ...], ...]
    idle: tuple[frozenset[int], ...]


def build_wait_graph(nodes: Sequence[WaitNode], busy: Collection[int] = ()) -> WaitGraph:
    """Connect the nodes by the ranks that are missing in one and stand in another.

    `busy` ranks are never idle: they stand in calls that the dumps do not show.
    """
    stands_in: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        for rank in node.standing:
            stands_in.setdefault(rank, []).append(index)
    depends = tuple(
        tuple(sorted({other for rank in node.missing for other in stands_in.get(rank, ()) if other != index}))
        for index, node in enumerate(nodes)
    )
    idle = tuple(
        frozenset(rank for rank in node.missing if rank not in stands_in and rank not in busy) for node in nodes
    )
    return WaitGraph(depends, _rings(depends), idle)


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
