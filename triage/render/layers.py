"""Places for the boxes of a graph: layers from left to right, and an order in each layer with few crossings (Sugiyama's
way).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.graph import Arrow, Graph, order

SWEEPS = 8
Joint = tuple[Arrow, int]  # where an arrow passes through a layer on its way


@dataclass(frozen=True, slots=True)
class Layout:
    """Layers of ids and joints, from the left; `loose` are the ids that no arrow touches, `against` the arrows that run
    back.
    """

    layers: tuple[tuple[str | Joint, ...], ...]
    loose: tuple[str, ...]
    against: frozenset[Arrow]


def layout(graph: Graph) -> Layout:
    """Each arrow that does not run back goes at least one layer to the right, with a joint in every layer between."""
    touched = {name for arrow in graph.arrows for name in (arrow.cause, arrow.effect)}
    sequence, against = order(touched, graph.arrows)
    forward = [arrow for arrow in graph.arrows if arrow not in against]
    level = _levels(sequence, forward)
    layers: list[list[str | Joint]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for name in sequence:
        layers[level[name]].append(name)
    for arrow in forward:
        for number in range(level[arrow.cause] + 1, level[arrow.effect]):
            layers[number].append((arrow, number))
    _untangle(layers, _ties(forward, level))
    loose = tuple(node.id for node in graph.nodes if node.id not in touched)
    return Layout(tuple(map(tuple, layers)), loose, frozenset(against))


def _levels(sequence: Sequence[str], forward: Sequence[Arrow]) -> dict[str, int]:
    """As far left as the causes allow, then as far right as the effects allow, so that arrows are short."""
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


def _ties(forward: Sequence[Arrow], level: Mapping[str, int]) -> list[tuple[str | Joint, str | Joint]]:
    """The pieces of the arrows, each from one layer to the next."""
    pieces: list[tuple[str | Joint, str | Joint]] = []
    for arrow in forward:
        way: list[str | Joint] = [
            arrow.cause,
            *((arrow, n) for n in range(level[arrow.cause] + 1, level[arrow.effect])),
            arrow.effect,
        ]
        pieces += itertools.pairwise(way)
    return pieces


def _untangle(layers: list[list[str | Joint]], ties: Sequence[tuple[str | Joint, str | Joint]]) -> None:
    """Order each layer by the mean place of the neighbours in the layer before (or behind), back and forth."""
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
            beside = layers[number - 1 if sweep % 2 == 0 else number + 1]
            place = {item: (index + 0.5) / len(beside) for index, item in enumerate(beside)}
            own = {item: (index + 0.5) / len(layers[number]) for index, item in enumerate(layers[number])}
            mean = {
                item: _mean([place[other] for other in neighbours.get(item, ())], own[item]) for item in layers[number]
            }
            layers[number].sort(key=mean.__getitem__)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
