"""Layered layout of a graph from left to right, with few crossings (Sugiyama's method)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.graph import Graph, GraphEdge, order_causes_first

SWEEPS = 8
Joint = tuple[GraphEdge, int]  # where an arrow passes through a layer on its way


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Layers of ids and joints from the left; `loose`: ids without edges, `against`: edges that run to the left."""

    layers: tuple[tuple[str | Joint, ...], ...]
    loose: tuple[str, ...]
    against: frozenset[GraphEdge]


def lay_out(graph: Graph) -> GraphLayout:
    """Return a layout in which each edge goes at least one layer right, with a joint in every layer between."""
    touched = {name for arrow in graph.edges for name in (arrow.cause, arrow.effect)}
    sequence, against = order_causes_first(touched, graph.edges)
    forward = [arrow for arrow in graph.edges if arrow not in against]
    level = _levels(sequence, forward)
    layers: list[list[str | Joint]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for name in sequence:
        layers[level[name]].append(name)
    for arrow in forward:
        for number in range(level[arrow.cause] + 1, level[arrow.effect]):
            layers[number].append((arrow, number))
    _untangle(layers, _ties(forward, level))
    loose = tuple(node.id for node in graph.nodes if node.id not in touched)
    return GraphLayout(tuple(map(tuple, layers)), loose, frozenset(against))


def _levels(sequence: Sequence[str], forward: Sequence[GraphEdge]) -> dict[str, int]:
    """Return the layer of each id: as far left as causes allow, then as far right as effects allow."""
    level = dict.fromkeys(sequence, 0)
    causes: dict[str, list[str]] = {}
    effects: dict[str, list[str]] = {}
    for arrow in forward:
        causes.setdefault(arrow.effect, []).append(arrow.cause)
        effects.setdefault(arrow.cause, []).append(arrow.effect)
    for name in sequence:
        level[name] = max((level[cause] + 1 for cause in causes.get(name, ())), default=0)
    for name in reversed(sequence):
        level[name] = min((level[effect] - 1 for effect in effects.get(name, ())), default=level[name])
    return level


def _ties(forward: Sequence[GraphEdge], level: Mapping[str, int]) -> list[tuple[str | Joint, str | Joint]]:
    """Return the pieces of the edges, each from one layer to the next."""
    pieces: list[tuple[str | Joint, str | Joint]] = []
    for arrow in forward:
        points: list[str | Joint] = [
            arrow.cause,
            *((arrow, n) for n in range(level[arrow.cause] + 1, level[arrow.effect])),
            arrow.effect,
        ]
        pieces += itertools.pairwise(points)
    return pieces


def _untangle(layers: list[list[str | Joint]], ties: Sequence[tuple[str | Joint, str | Joint]]) -> None:
    """Order each layer by the mean place of its neighbours in the previous or next layer, back and forth."""
    before: dict[str | Joint, list[str | Joint]] = {}
    behind: dict[str | Joint, list[str | Joint]] = {}
    for left, right in ties:
        behind.setdefault(left, []).append(right)
        before.setdefault(right, []).append(left)
    for sweep in range(SWEEPS):
        neighbours, numbers = (
            (before, range(1, len(layers))) if sweep % 2 == 0 else (behind, range(len(layers) - 2, -1, -1))
        )
        for number in numbers:
            neighbour_layer = layers[number - 1 if sweep % 2 == 0 else number + 1]
            spots = {item: (index + 0.5) / len(neighbour_layer) for index, item in enumerate(neighbour_layer)}
            places_here = {item: (index + 0.5) / len(layers[number]) for index, item in enumerate(layers[number])}
            mean = {
                item: _mean([spots[other] for other in neighbours.get(item, ())], places_here[item])
                for item in layers[number]
            }
            layers[number].sort(key=mean.__getitem__)


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
