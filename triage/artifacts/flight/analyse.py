"""The whole analysis: each group looked at, what waits for what across groups, and for every root the words that say
what happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triage.artifacts.flight import grid as grids_
from triage.artifacts.flight import waits, words
from triage.artifacts.flight.blocks import Block, Seen, examine, outside
from triage.artifacts.flight.links import Link, links
from triage.artifacts.flight.model import Analysis, Fault, Recording
from triage.artifacts.flight.places import say
from triage.artifacts.flight.slow import stragglers

MOST = 200
"""Faults that are told; a job of ten thousand ranks can wait in thousands of groups for one reason."""


@dataclass(frozen=True, slots=True)
class _Told:
    """Which knot a fault speaks of (its first, if of a ring), and the knots that are told by it."""

    fault: Fault
    knots: tuple[int, ...]


def analyse(recording: Recording) -> Analysis:
    """What is wrong in the recording, roots first."""
    seen = [examine(recording, grid) for grid in grids_.grids(recording)]
    blocks = outside([each.block for each in seen if each.block is not None], recording.dumps)
    pairs = links(recording)
    knots = [waits.Knot(block.standing, _missed(block)) for block in blocks] + [
        waits.Knot(link.waiting, link.absent) for link in pairs
    ]
    resolved = waits.resolve(knots)
    told = _tell(recording, blocks, pairs, resolved)
    return Analysis(
        faults=tuple(_ordered(told, resolved)),
        no_dump=tuple(rank for rank in recording.world if rank not in recording.dumps),
        stragglers=stragglers(recording),
        notes=tuple(dict.fromkeys([*recording.notes, *_notes(recording, seen)])),
    )


def _missed(block: Block) -> frozenset[int]:
    return (
        block.absent if block.kind in ("absent", "outside") else block.unseen if block.kind == "unseen" else frozenset()
    )


def _tell(
    recording: Recording, blocks: Sequence[Block], pairs: Sequence[Link], resolved: waits.Resolved
) -> list[_Told]:
    """One fault for each ring and for each other knot."""
    told: list[_Told] = []
    in_ring = {knot for ring in resolved.rings for knot in ring}
    for ring in resolved.rings:
        parts = [blocks[knot] for knot in ring if knot < len(blocks)]
        sides = [pairs[knot - len(blocks)] for knot in ring if knot >= len(blocks)]
        told.append(_Told(words.ring(recording, parts, sides), ring))
    for knot, block in enumerate(blocks):
        if knot not in in_ring:
            fault = words.block(recording, block, resolved.idle[knot], explained=bool(resolved.depends[knot]))
            told += [_Told(fault, (knot,))] if fault else []
    for index, link in enumerate(pairs):
        knot = len(blocks) + index
        if knot not in in_ring:
            told.append(_Told(words.link(recording, link), (knot,)))
    return told


def _ordered(told: Sequence[_Told], resolved: waits.Resolved) -> list[Fault]:
    """Roots first, then what follows from them; a knot that misses an idle rank nobody else answers for is a root too."""
    by_knot = {knot: index for index, each in enumerate(told) for knot in each.knots}
    causes: list[set[int]] = []
    for index, each in enumerate(told):
        found = {by_knot[other] for knot in each.knots for other in resolved.depends[knot] if other in by_knot} - {
            index
        }
        causes.append(found)
    blamed = {rank for index, each in enumerate(told) if not causes[index] for rank in each.fault.ranks}
    faults = []
    for index, each in enumerate(told):
        alone = frozenset().union(*(resolved.idle[knot] for knot in each.knots)) - blamed
        if causes[index] and alone and each.fault.waiting:
            blamed |= alone
            causes[index] = set() if alone >= set(each.fault.ranks) else causes[index]
        faults.append(each.fault)
    order = sorted(
        range(len(told)),
        key=lambda index: (bool(causes[index]), not faults[index].sure, faults[index].seq, faults[index].group),
    )
    place = {index: position for position, index in enumerate(order)}
    return [
        replace(faults[index], explained_by=tuple(sorted(place[cause] for cause in causes[index]))) for index in order
    ][:MOST]


def _notes(recording: Recording, seen: Sequence[Seen]) -> list[tuple[str, str | None, str]]:
    notes: list[tuple[str, str | None, str]] = []
    older = sorted({rank for each in seen for rank in each.older})
    if older:
        text = f"the dump of {say(older)} was written before those of the others, which are further; what it lacks proves nothing"
        notes.append(("older-moment", recording.dumps[older[0]].source, text))
    lost = sorted({rank for each in seen for rank in each.lost})
    if lost:
        size = _ring_size(recording, seen)
        text = f"the ring of {say(lost)} no longer holds the collective where the ranks differ; record more with TORCH_FR_BUFFER_SIZE={size}"
        notes.append(
            (
                "ring-too-small",
                recording.dumps[lost[0]].source,
                f"{text} (TORCH_NCCL_TRACE_BUFFER_SIZE in older releases)",
            )
        )
    missing = [rank for rank in recording.world if rank not in recording.dumps]
    if missing and recording.dumps:
        text = f"{say(missing)} left no dump: it died, could not write, or its file is not among those given"
        notes.append(("no-dump", None, text))
    return notes


def _ring_size(recording: Recording, seen: Sequence[Seen]) -> int:
    """Enough for twice what lies between the difference and the end of the furthest rank, in thousands."""
    need = max((dump.entries for dump in recording.dumps.values()), default=1000) * 2
    for block in (each.block for each in seen if each.lost and each.block):
        for row, rank in enumerate(block.grid.ranks):
            dump, cell = recording.dumps.get(rank), int(block.grid.cell[row, block.column])
            if dump and cell >= 0:
                need = max(
                    need, 2 * int(recording.table.record[dump.start : dump.end].max() - recording.table.record[cell])
                )
    return -(-need // 1000) * 1000
