"""The whole analysis: where the ranks stand, which wait causes which, one fault for each, and stragglers.

Ranks are slow where torch measured how long each collective took (TORCH_NCCL_ENABLE_TIMING): the rank with the
shortest time in a collective entered it last, and the others waited for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from triage.artifacts.flight.fault_classifier import classify_stall
from triage.artifacts.flight.first_calls import find_first_calls
from triage.artifacts.flight.model import Analysis, Fault, Ints, Recording, Straggler
from triage.artifacts.flight.p2p import P2pStall, find_p2p_stalls
from triage.artifacts.flight.p2p_faults import classify_p2p_stall
from triage.artifacts.flight.ring_faults import classify_ring
from triage.artifacts.flight.stalls import Stall, Stalls, find_lost_ranks, find_stalls
from triage.artifacts.flight.wait_graph import WaitGraph, WaitNode, build_wait_graph
from triage.base.rank_ranges import format_ranks

MAX_FAULTS = 200
"""A job of ten thousand ranks can wait in thousands of groups for one reason."""
MIN_WAIT = 3.0
"""Seconds. Who has waited less when the dumps were written may wait in a job that goes on."""
MIN_SHARE = 0.05
"""A rank is slow when the others wait for it for at least this share of all their time in collectives."""


@dataclass(frozen=True, slots=True)
class _NodeFault:
    """A fault, and the nodes of the wait graph that it covers (several for a ring).

    `precedence` orders faults that wait for one rank: collectives first, then by the time of the first call.
    """

    fault: Fault
    nodes: tuple[int, ...]
    precedence: tuple[bool, int] = (False, 0)


def analyse(recording: Recording) -> Analysis:
    """Return what is wrong in the recording, roots first."""
    first_calls = find_first_calls(recording)
    group_stalls = find_stalls(recording, first_calls)
    stalls: list[Stall | P2pStall] = [
        *group_stalls.stalls,
        *find_p2p_stalls(recording, first_calls, group_stalls.older),
    ]
    graph = build_wait_graph(
        [WaitNode(stall.standing, stall.missing) for stall in stalls], first_calls.keys() - group_stalls.older
    )
    return Analysis(
        faults=tuple(_order_by_cause(list(_classify(recording, stalls, graph)), graph)),
        no_dump=tuple(rank for rank in recording.world if rank not in recording.dumps),
        stragglers=find_stragglers(recording),
        notes=tuple(dict.fromkeys([*recording.notes, *_notes(recording, group_stalls)])),
    )


def _classify(recording: Recording, stalls: Sequence[Stall | P2pStall], graph: WaitGraph) -> Iterator[_NodeFault]:
    """One fault for each ring and for each other node."""
    in_ring = {node for ring in graph.rings for node in ring}
    for ring in graph.rings:
        yield _NodeFault(classify_ring(recording, [stalls[node] for node in ring]), ring)
    waited_for = {other for depends in graph.depends for other in depends}
    for node, stall in enumerate(stalls):
        if node in in_ring:
            continue
        if isinstance(stall, P2pStall):
            is_decided = bool(graph.idle[node] or graph.depends[node] or not stall.missing)
            fault: Fault | None = classify_p2p_stall(recording, stall) if is_decided else None
        else:
            fault = classify_stall(
                recording, stall, graph.idle[node], is_explained=bool(graph.depends[node]), is_cause=node in waited_for
            )
        if fault:
            yield _NodeFault(_weaken_short_wait(recording, fault, stall), (node,), _precedence(recording, stall))


def _weaken_short_wait(recording: Recording, fault: Fault, stall: Stall | P2pStall) -> Fault:
    """A wait that began just before the dumps were written is no certain fault, unless the calls themselves differ."""
    rows = [stall.row] if isinstance(stall, P2pStall) else [stall.cell(rank) for rank in stall.standing]
    if not fault.is_certain or stall.kind in ("calls-differ", "sizes-differ", "dtypes-differ"):
        return fault
    waits = []
    for row in rows:
        dump = recording.dumps[int(recording.table.rank[row])] if row >= 0 else None
        created = int(recording.table.created[row]) / 1e9
        if dump and dump.written is not None and created:
            waits.append(dump.written - created)
    longest = max(waits, default=MIN_WAIT)
    if not 0 <= longest < MIN_WAIT:
        return fault
    return replace(fault, uncertainty=f"the dumps were written only {longest:.1f} s later, so the job may have gone on")


def _precedence(recording: Recording, stall: Stall | P2pStall) -> tuple[bool, int]:
    rows = [stall.row] if isinstance(stall, P2pStall) else [stall.cell(rank) for rank in stall.standing]
    return isinstance(stall, P2pStall), min((int(recording.table.created[row]) for row in rows if row >= 0), default=0)


def _order_by_cause(node_faults: Sequence[_NodeFault], graph: WaitGraph) -> list[Fault]:
    """Return roots first: faults that depend on no other, and those with idle ranks that no other root names.

    Each rank has at most one root: of several calls that wait for it, a collective, and the one that was made first.
    """
    by_node = {node: index for index, each in enumerate(node_faults) for node in each.nodes}
    causes = [
        {by_node[other] for node in each.nodes for other in graph.depends[node] if other in by_node} - {index}
        for index, each in enumerate(node_faults)
    ]
    faults = [_weaken_unexplained(each, causes[index], graph) for index, each in enumerate(node_faults)]
    if not any(fault.is_certain and not causes[index] for index, fault in enumerate(faults)):
        # Nothing that a ring also waits for is sure, and the ring suffices.
        causes = [set() if len(each.nodes) > 1 else causes[index] for index, each in enumerate(node_faults)]
    idle = [frozenset().union(*(graph.idle[node] for node in each.nodes)) for each in node_faults]
    root_of: dict[int, int] = {}
    for index in sorted(
        range(len(faults)),
        key=lambda index: (bool(causes[index]), _blames_waiting(faults[index]), node_faults[index].precedence),
    ):
        ranks = [rank for rank in faults[index].ranks if rank not in root_of]
        if _blames_waiting(faults[index]) and idle[index] <= root_of.keys():
            causes[index] |= {root_of[rank] for rank in idle[index]}
        if causes[index]:
            ranks = [rank for rank in ranks if rank in idle[index]]
            causes[index] = set() if ranks else causes[index]
        elif not ranks:
            causes[index] = {root_of[rank] for rank in faults[index].ranks}
        root_of |= dict.fromkeys(ranks if not causes[index] else (), index)
    return _sort(faults, causes)


def _blames_waiting(fault: Fault) -> bool:
    """Whether the ranks that wait are at fault, not those for which they wait."""
    return fault.rule in ("extra-collective", "rank-conditional")


def _weaken_unexplained(node_fault: _NodeFault, causes: set[int], graph: WaitGraph) -> Fault:
    """A wait whose ranks are held in calls that name no fault is itself no certain cause."""
    node = node_fault.nodes[0]
    if causes or len(node_fault.nodes) > 1 or not graph.depends[node] or graph.idle[node]:
        return node_fault.fault
    return replace(node_fault.fault, uncertainty="the dumps do not show what holds them")


def _sort(faults: Sequence[Fault], causes: Sequence[set[int]]) -> list[Fault]:
    """Return roots first. Faults that say the same of other waiting ranks are one."""
    order = sorted(
        range(len(faults)),
        key=lambda index: (bool(causes[index]), not faults[index].is_certain, faults[index].seq, faults[index].group),
    )
    same: dict[tuple[object, ...], list[int]] = {}
    for index in order:
        fault = faults[index]
        same.setdefault((fault.rule, fault.ranks, fault.group, fault.seq, fault.text), []).append(index)
    position_of = {index: position for position, indexes in enumerate(same.values()) for index in indexes}
    result = []
    for position, indexes in enumerate(same.values()):
        waiting = {rank for index in indexes for rank in faults[index].waiting}
        explained_by = {position_of[cause] for cause in causes[indexes[0]]} - {position}
        first = faults[indexes[0]]
        result.append(replace(first, waiting=tuple(sorted(waiting)), explained_by=tuple(sorted(explained_by))))
    return result[:MAX_FAULTS]


def _notes(recording: Recording, group_stalls: Stalls) -> list[tuple[str, str | None, str]]:
    """(code, source, message) of what limits the analysis."""
    notes: list[tuple[str, str | None, str]] = []
    older = sorted(group_stalls.older)
    if older:
        text = (
            f"the dump of {format_ranks(older)} is older than those of the other ranks, "
            "so a call that it lacks may have been made later"
        )
        notes.append(("older-moment", recording.dumps[older[0]].source, text))
    stalls = [(stall, lost) for stall in group_stalls.stalls if (lost := find_lost_ranks(recording, stall))]
    if stalls:
        dropped = sorted({rank for _, ranks in stalls for rank in ranks})
        text = (
            f"the ring buffer of {format_ranks(dropped)} no longer holds the collective where the ranks differ; "
            f"set TORCH_FR_BUFFER_SIZE={_buffer_size(recording, [stall for stall, _ in stalls])} to record more "
            f"(TORCH_NCCL_TRACE_BUFFER_SIZE in older releases)"
        )
        notes.append(("ring-too-small", recording.dumps[dropped[0]].source, text))
    missing = [rank for rank in recording.world if rank not in recording.dumps]
    if missing and recording.dumps:
        reason = "it died, could not write one" if len(missing) == 1 else "they died, could not write one"
        notes.append(("no-dump", None, f"{format_ranks(missing)} left no dump: {reason}, or the file was not given"))
    return notes


def _buffer_size(recording: Recording, stalls: Sequence[Stall]) -> int:
    """Entries for twice the distance from the difference to the end of the furthest rank, rounded up to thousands."""
    table = recording.table
    size = 2 * max((dump.entries for dump in recording.dumps.values()), default=1000)
    for stall in stalls:
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
