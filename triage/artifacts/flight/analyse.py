"""The whole analysis: stalls of each group, which stall causes which, one fault for each, and stragglers.

Ranks are slow where torch measured how long each collective took (TORCH_NCCL_ENABLE_TIMING): the rank with the
shortest time in a collective entered it last, and the others waited for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from triage.artifacts.flight.fault_classifier import classify_p2p_stall, classify_ring, classify_stall
from triage.artifacts.flight.grid import group_grids
from triage.artifacts.flight.model import Analysis, Fault, Ints, Recording, Straggler
from triage.artifacts.flight.p2p import P2pStall, find_p2p_stalls
from triage.artifacts.flight.stalls import GroupExamination, Stall, examine_group, mark_possible_members
from triage.base.rank_ranges import format_ranks

MAX_FAULTS = 200
"""A job of ten thousand ranks can wait in thousands of groups for one reason."""
MIN_SHARE = 0.05
"""A rank is slow when the others wait for it for at least this share of all their time in collectives."""


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


@dataclass(frozen=True, slots=True)
class _NodeFault:
    """A fault, and the nodes of the wait graph that it covers (several for a ring)."""

    fault: Fault
    nodes: tuple[int, ...]


def analyse(recording: Recording) -> Analysis:
    """Return what is wrong in the recording, roots first."""
    examinations = [examine_group(recording, grid) for grid in group_grids(recording)]
    stalls = mark_possible_members([each.stall for each in examinations if each.stall is not None], recording.dumps)
    p2p_stalls = find_p2p_stalls(recording)
    nodes = [WaitNode(stall.unfinished, _missed_ranks(stall)) for stall in stalls]
    graph = build_wait_graph([*nodes, *(WaitNode(stall.waiting, stall.absent) for stall in p2p_stalls)])
    return Analysis(
        faults=tuple(_order_by_cause(_classify(recording, stalls, p2p_stalls, graph), graph)),
        no_dump=tuple(rank for rank in recording.world if rank not in recording.dumps),
        stragglers=find_stragglers(recording),
        notes=tuple(dict.fromkeys([*recording.notes, *_notes(recording, examinations)])),
    )


def _missed_ranks(stall: Stall) -> frozenset[int]:
    if stall.kind in ("absent", "possible-member"):
        return stall.absent
    return stall.without_dump if stall.kind == "no-dump" else frozenset()


def _classify(
    recording: Recording, stalls: Sequence[Stall], p2p_stalls: Sequence[P2pStall], graph: WaitGraph
) -> list[_NodeFault]:
    """One fault for each ring and for each other node."""
    count = len(stalls)
    faults: list[_NodeFault] = []
    in_ring = {node for ring in graph.rings for node in ring}
    for ring in graph.rings:
        collective = [stalls[node] for node in ring if node < count]
        p2p = [p2p_stalls[node - count] for node in ring if node >= count]
        faults.append(_NodeFault(classify_ring(recording, collective, p2p), ring))
    for node, stall in enumerate(stalls):
        if node not in in_ring:
            fault = classify_stall(recording, stall, graph.idle[node], explained=bool(graph.depends[node]))
            faults += [_NodeFault(fault, (node,))] if fault else []
    for node, p2p_stall in enumerate(p2p_stalls, count):
        if node not in in_ring:
            faults.append(_NodeFault(classify_p2p_stall(recording, p2p_stall), (node,)))
    return faults


def _order_by_cause(node_faults: Sequence[_NodeFault], graph: WaitGraph) -> list[Fault]:
    """Return roots first. A fault is also a root if its absent ranks wait nowhere and are at fault nowhere else."""
    by_node = {node: index for index, each in enumerate(node_faults) for node in each.nodes}
    causes = [
        {by_node[other] for node in each.nodes for other in graph.depends[node] if other in by_node} - {index}
        for index, each in enumerate(node_faults)
    ]
    blamed = {rank for index, each in enumerate(node_faults) if not causes[index] for rank in each.fault.ranks}
    for index, each in enumerate(node_faults):
        unblamed = frozenset().union(*(graph.idle[node] for node in each.nodes)) - blamed
        if causes[index] and unblamed and each.fault.waiting:
            blamed |= unblamed
            causes[index] = set() if unblamed >= set(each.fault.ranks) else causes[index]
    faults = [each.fault for each in node_faults]
    order = sorted(
        range(len(faults)),
        key=lambda index: (bool(causes[index]), not faults[index].is_certain, faults[index].seq, faults[index].group),
    )
    position_of = {index: position for position, index in enumerate(order)}
    return [
        replace(faults[index], explained_by=tuple(sorted(position_of[cause] for cause in causes[index])))
        for index in order
    ][:MAX_FAULTS]


def _notes(recording: Recording, examinations: Sequence[GroupExamination]) -> list[tuple[str, str | None, str]]:
    """(code, source, message) of what limits the analysis."""
    notes: list[tuple[str, str | None, str]] = []
    older = sorted({rank for each in examinations for rank in each.older})
    if older:
        text = (
            f"the dump of {format_ranks(older)} is older than those of the other ranks, "
            "so a call that it lacks may have been made later"
        )
        notes.append(("older-moment", recording.dumps[older[0]].source, text))
    lost = sorted({rank for each in examinations for rank in each.lost})
    if lost:
        text = (
            f"the ring buffer of {format_ranks(lost)} no longer holds the collective where the ranks differ; "
            f"set TORCH_FR_BUFFER_SIZE={_buffer_size(recording, examinations)} to record more "
            f"(TORCH_NCCL_TRACE_BUFFER_SIZE in older releases)"
        )
        notes.append(("ring-too-small", recording.dumps[lost[0]].source, text))
    missing = [rank for rank in recording.world if rank not in recording.dumps]
    if missing and recording.dumps:
        reason = "it died, could not write one" if len(missing) == 1 else "they died, could not write one"
        notes.append(("no-dump", None, f"{format_ranks(missing)} left no dump: {reason}, or the file was not given"))
    return notes


def _buffer_size(recording: Recording, examinations: Sequence[GroupExamination]) -> int:
    """Entries for twice the distance from the difference to the end of the furthest rank, rounded up to thousands."""
    table = recording.table
    size = 2 * max((dump.entries for dump in recording.dumps.values()), default=1000)
    for stall in (each.stall for each in examinations if each.lost and each.stall):
        for rank in stall.grid.ranks:
            dump, cell = recording.dumps.get(rank), stall.cell(rank)
            if dump and cell >= 0:
                size = max(size, 2 * int(table.record[dump.start : dump.end].max() - table.record[cell]))
    return -(-size // 1000) * 1000


def find_stragglers(recording: Recording) -> tuple[Straggler, ...]:
    """Return the ranks that others waited for, worst first; empty where nothing was measured or all came together."""
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
    table = recording.table
    rows = np.flatnonzero((table.duration > 0) & ~table.is_p2p)
    key = np.stack([table.group[rows].astype(np.int64), table.seq[rows]])
    order = np.lexsort((table.duration[rows], key[1], key[0]))
    starts = np.flatnonzero(np.r_[True, (np.diff(key[:, order], axis=1) != 0).any(axis=0)][: len(rows)])
    counts = np.diff(np.r_[starts, len(rows)])
    return rows[order], starts[counts > 1], counts[counts > 1]
