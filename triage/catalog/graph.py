"""The causal graph of a catalog: who leads to whom, thinned to what a person can read, and what is odd in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.catalog.model import Signature

WEAK = "other-ranks"  # two ranks may well complain about each other, so these edges may close a circle


@dataclass(frozen=True, slots=True)
class Arrow:
    """`cause` leads to `effect` within `scope`."""

    cause: str
    effect: str
    scope: str
    window: float | None = None

    @property
    def strong(self) -> bool:
        return self.scope != WEAK


@dataclass(frozen=True, slots=True)
class Graph:
    """Signatures in the order of their ids, the arrows between them, and how many arrows were left out as implied."""

    nodes: tuple[Signature, ...]
    arrows: tuple[Arrow, ...]
    implied: int = 0


def graph(signatures: Iterable[Signature], *, every: bool = False) -> Graph:
    """All signatures but rows of tables, which would hide them. Without `every`, an arrow that follows from others is
    left out.

    (a to b to c implies a to c.)
    """
    nodes = tuple(
        sorted((signature for signature in signatures if not signature.table), key=lambda signature: signature.id)
    )
    arrows = _arrows(nodes)
    if every:
        return Graph(nodes, arrows)
    kept = _thinned(nodes, arrows)
    return Graph(nodes, kept, len(arrows) - len(kept))


def neighbourhood(signatures: Iterable[Signature], identifier: str) -> Graph:
    """The signature, what explains it and what it explains, with the arrows that touch it. KeyError if it is not there."""
    known = {signature.id: signature for signature in signatures}
    touching = tuple(arrow for arrow in _arrows(tuple(known.values())) if identifier in (arrow.cause, arrow.effect))
    near = {identifier, *(arrow.cause for arrow in touching), *(arrow.effect for arrow in touching)}
    return Graph(tuple(known[name] for name in sorted(near)), touching)


def explained_by(signatures: Iterable[Signature]) -> dict[str, list[Arrow]]:
    """Id to the arrows that end there, in the order of their causes."""
    found: dict[str, list[Arrow]] = {}
    for arrow in _arrows(tuple(sorted(signatures, key=lambda signature: signature.id))):
        found.setdefault(arrow.effect, []).append(arrow)
    return found


def uncaused(signatures: Sequence[Signature]) -> list[str]:
    """Symptoms to which nothing leads, though a symptom is what follows from something; deprecated ones do not count."""
    reached = explained_by(signatures)
    living = (signature for signature in signatures if signature.status != "deprecated")
    return sorted(signature.id for signature in living if signature.role == "symptom" and signature.id not in reached)


def order(names: Iterable[str], arrows: Iterable[Arrow]) -> tuple[list[str], set[Arrow]]:
    """The names, causes first, and the arrows that run against the order because they close a circle (weak ones, if
    that is enough).
    """
    ordered = sorted(names)
    all_of_them = sorted(arrows, key=lambda arrow: (arrow.cause, arrow.effect))
    ways = _reach(ordered, all_of_them)
    against = {arrow for arrow in all_of_them if not arrow.strong and arrow.cause in ways[arrow.effect]}
    forward = [arrow for arrow in all_of_them if arrow not in against]
    sequence = _depth_first(ordered, forward)
    place = {name: number for number, name in enumerate(sequence)}
    return sequence, against | {arrow for arrow in forward if place[arrow.cause] >= place[arrow.effect]}


def _arrows(nodes: Sequence[Signature]) -> tuple[Arrow, ...]:
    known = {node.id for node in nodes}
    found = {
        (node.id, edge.signature): Arrow(node.id, edge.signature, edge.scope, edge.window)
        for node in nodes
        for edge in node.leads_to
    }
    return tuple(arrow for arrow in found.values() if arrow.effect in known and arrow.effect != arrow.cause)


def _thinned(nodes: Sequence[Signature], arrows: Sequence[Arrow]) -> tuple[Arrow, ...]:
    """The transitive reduction of what runs forward, and what runs against it."""
    names = [node.id for node in nodes]
    _, against = order(names, arrows)
    forward = [arrow for arrow in arrows if arrow not in against]
    ways = _reach(names, forward)
    effects: dict[str, set[str]] = {name: set() for name in names}
    for arrow in forward:
        effects[arrow.cause].add(arrow.effect)
    implied = {(name, far) for name in names for near in effects[name] for far in ways[near]}
    return tuple(arrow for arrow in arrows if arrow in against or (arrow.cause, arrow.effect) not in implied)


def _reach(names: Sequence[str], arrows: Iterable[Arrow]) -> Mapping[str, set[str]]:
    """Name to all that can be reached from it (itself only through a circle)."""
    effects: dict[str, list[str]] = {name: [] for name in names}
    for arrow in arrows:
        effects[arrow.cause].append(arrow.effect)
    reached = {}
    for name in names:
        seen: set[str] = set()
        pending = list(effects[name])
        while pending:
            current = pending.pop()
            if current not in seen:
                seen.add(current)
                pending += effects[current]
        reached[name] = seen
    return reached


def _depth_first(names: Sequence[str], arrows: Iterable[Arrow]) -> list[str]:
    """A topological order where there is one; a circle is cut where it is met."""
    effects: dict[str, list[str]] = {name: [] for name in names}
    for arrow in arrows:
        effects[arrow.cause].append(arrow.effect)
    done: list[str] = []
    seen: set[str] = set()
    for start in reversed(names):
        if start in seen:
            continue
        seen.add(start)
        pending = [(start, iter(effects[start]))]
        while pending:
            name, rest = pending[-1]
            following = next((effect for effect in rest if effect not in seen), None)
            if following is None:
                done.append(name)
                pending.pop()
            else:
                seen.add(following)
                pending.append((following, iter(effects[following])))
    return done[::-1]
