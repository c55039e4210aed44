"""Which stall waits for which: a rank that is absent in one group may itself wait in another.

Stall A depends on stall B when a rank that A misses waits in B. A stall that depends on nothing is a root; stalls that
depend on each other in a ring are one deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WaitNode:
    """One stall: `waiting` ranks wait for the `absent` ones; without absent ranks it explains itself."""

    waiting: frozenset[int]
    absent: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class WaitGraph:
    """The dependencies of all stalls, by the index of their node.

    `depends` are those that each node depends on, `rings` the nodes of each deadlock in ascending order, `idle` the
    absent ranks of each node that wait in no node.
    """

    depends: tuple[tuple[int, ...], ...]
    rings: tuple[tuple[int, ...], ...]
    idle: tuple[frozenset[int], ...]


def build_wait_graph(nodes: Sequence[WaitNode]) -> WaitGraph:
    """Connect the nodes by the ranks that are absent in one and wait in another."""
    waits_in: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        for rank in node.waiting:
            waits_in.setdefault(rank, []).append(index)
    depends = tuple(
        tuple(sorted({other for rank in node.absent for other in waits_in.get(rank, ()) if other != index}))
        for index, node in enumerate(nodes)
    )
    idle = tuple(frozenset(rank for rank in node.absent if rank not in waits_in) for node in nodes)
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
