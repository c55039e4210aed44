"""The causal graph of a catalog: which signature leads to which, thinned so that a person can read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.model import Signature

WEAK_SCOPE = "other-ranks"  # two ranks may well complain about each other, so these edges may close a cycle


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """`cause` leads to `effect` within `scope`."""

    cause: str
    effect: str
    scope: str
    window: float | None = None

    @property
    def is_strong(self) -> bool:
        """Whether the edge stays on one rank, host or job, so that it must not close a cycle."""
        return self.scope != WEAK_SCOPE


@dataclass(frozen=True, slots=True)
class Graph:
    """Signatures in the order of their ids, the edges between them, and how many implied edges were left out."""

    nodes: tuple[Signature, ...]
    edges: tuple[GraphEdge, ...]
    implied_count: int = 0


def build_graph(signatures: Iterable[Signature], *, with_implied: bool = False) -> Graph:
    """Return the graph of all signatures but rows of tables; `with_implied` adds edges that other edges imply."""
    nodes = tuple(sorted((one for one in signatures if not one.table), key=lambda signature: signature.id))
    edges = _list_edges(nodes)
    shown = edges if with_implied else _remove_implied(nodes, edges)
    return Graph(nodes, shown, len(edges) - len(shown))


def build_neighbourhood(signatures: Iterable[Signature], identifier: str) -> Graph:
    """The signature with its causes, its effects and the edges between them and it. KeyError for an unknown id."""
    by_id = {signature.id: signature for signature in signatures}
    edges = tuple(edge for edge in _list_edges(tuple(by_id.values())) if identifier in (edge.cause, edge.effect))
    near = {identifier, *(edge.cause for edge in edges), *(edge.effect for edge in edges)}
    return Graph(tuple(by_id[name] for name in sorted(near)), edges)


def group_edges_by_effect(signatures: Iterable[Signature]) -> dict[str, list[GraphEdge]]:
    """Id to the edges that end there, in the order of their causes."""
    by_effect: dict[str, list[GraphEdge]] = {}
    for edge in _list_edges(tuple(sorted(signatures, key=lambda signature: signature.id))):
        by_effect.setdefault(edge.effect, []).append(edge)
    return by_effect


def order_causes_first(names: Iterable[str], edges: Iterable[GraphEdge]) -> tuple[list[str], set[GraphEdge]]:
    """The names in an order with causes first, and the edges against that order, which close a cycle.

    Only weak edges run against the order where that is enough to break all cycles.
    """
    ordered = sorted(names)
    edges = sorted(edges, key=lambda edge: (edge.cause, edge.effect))
    reachable = _find_reachable(ordered, edges)
    backward = {edge for edge in edges if not edge.is_strong and edge.cause in reachable[edge.effect]}
    forward = [edge for edge in edges if edge not in backward]
    sequence = _order_depth_first(ordered, forward)
    place = {name: number for number, name in enumerate(sequence)}
    return sequence, backward | {edge for edge in forward if place[edge.cause] >= place[edge.effect]}


def _list_edges(nodes: Sequence[Signature]) -> tuple[GraphEdge, ...]:
    """The edges between two different nodes, one for each pair."""
    known = {node.id for node in nodes}
    by_pair = {
        (node.id, edge.signature): GraphEdge(node.id, edge.signature, edge.scope, edge.window)
        for node in nodes
        for edge in node.causal_edges
    }
    return tuple(edge for edge in by_pair.values() if edge.effect in known and edge.effect != edge.cause)


def _remove_implied(nodes: Sequence[Signature], edges: Sequence[GraphEdge]) -> tuple[GraphEdge, ...]:
    """The transitive reduction of the forward edges, and all backward edges."""
    names = [node.id for node in nodes]
    _, backward = order_causes_first(names, edges)
    forward = [edge for edge in edges if edge not in backward]
    reachable = _find_reachable(names, forward)
    effects = _list_effects(names, forward)
    implied = {(name, far) for name in names for near in effects[name] for far in reachable[near]}
    return tuple(edge for edge in edges if edge in backward or (edge.cause, edge.effect) not in implied)


def _list_effects(names: Iterable[str], edges: Iterable[GraphEdge]) -> dict[str, list[str]]:
    effects: dict[str, list[str]] = {name: [] for name in names}
    for edge in edges:
        effects[edge.cause].append(edge.effect)
    return effects


def _find_reachable(names: Sequence[str], edges: Iterable[GraphEdge]) -> Mapping[str, set[str]]:
    """Name to all names that can be reached from it (itself only through a cycle)."""
    effects = _list_effects(names, edges)
    reachable: dict[str, set[str]] = {name: set() for name in names}
    for name, reached in reachable.items():
        pending = list(effects[name])
        while pending:
            current = pending.pop()
            if current not in reached:
                reached.add(current)
                pending += effects[current]
    return reachable


def _order_depth_first(names: Sequence[str], edges: Iterable[GraphEdge]) -> list[str]:
    """A topological order if there is one; a cycle is cut where the search meets it."""
    effects = _list_effects(names, edges)
    finished: list[str] = []
    visited: set[str] = set()
    for start in reversed(names):
        if start in visited:
            continue
        visited.add(start)
        pending = [(start, iter(effects[start]))]
        while pending:
            name, rest = pending[-1]
            following = next((effect for effect in rest if effect not in visited), None)
            if following is None:
                finished.append(name)
                pending.pop()
            else:
                visited.add(following)
                pending.append((following, iter(effects[following])))
    return finished[::-1]
