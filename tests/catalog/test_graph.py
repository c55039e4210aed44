from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.catalog import graph
from triage.catalog.lint import cycles
from triage.catalog.model import Catalog, Edge, Signature


def signature(identifier: str, *effects: str, role: str = "cause", scope: str = "any-rank") -> Signature:
    edges = tuple(Edge(effect, scope) for effect in effects)
    return Signature(identifier, 1, identifier, "stable", role, "error", None, leads_to=edges)  # type: ignore[arg-type]


CHAIN = [signature("a.a", "b.b", "c.c"), signature("b.b", "c.c"), signature("c.c", role="symptom"), signature("d.d")]


def pairs(found: graph.Graph) -> list[tuple[str, str]]:
    return [(arrow.cause, arrow.effect) for arrow in found.arrows]


def test_implied_arrows_are_left_out() -> None:
    """a to b to c implies a to c, and the graph says how many were left out; with `every` it is there."""
    found = graph.graph(CHAIN)
    assert pairs(found) == [("a.a", "b.b"), ("b.b", "c.c")]
    assert found.implied == 1
    assert pairs(graph.graph(CHAIN, every=True)) == [("a.a", "b.b"), ("a.a", "c.c"), ("b.b", "c.c")]


def test_edges_to_nothing_and_to_oneself_are_no_arrows() -> None:
    """What is not in the catalog cannot be drawn."""
    assert graph.graph([signature("a.a", "a.a", "x.x")]).arrows == ()


def test_neighbourhood_holds_only_what_touches() -> None:
    """The signature, its causes, its effects, and no arrow between others."""
    found = graph.neighbourhood(CHAIN, "b.b")
    assert [node.id for node in found.nodes] == ["a.a", "b.b", "c.c"]
    assert pairs(found) == [("a.a", "b.b"), ("b.b", "c.c")]
    with pytest.raises(KeyError):
        graph.neighbourhood(CHAIN, "x.x")


def test_weak_edges_give_way_in_a_circle() -> None:
    """Two ranks that complain about each other: the edge to other ranks runs against the order, the strong one does
    not.
    """
    nodes = [signature("a.a", "b.b"), signature("b.b", "a.a", scope="other-ranks")]
    sequence, against = graph.order(["a.a", "b.b"], graph.graph(nodes).arrows)
    assert sequence == ["a.a", "b.b"]
    assert [(arrow.cause, arrow.effect) for arrow in against] == [("b.b", "a.a")]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_thinning_keeps_what_can_be_reached(edges: list[tuple[int, int]]) -> None:
    """Whatever the graph, also with circles: from each signature the same ones can be reached as before."""
    nodes = [signature(f"n.n{start}", *(f"n.n{end}" for first, end in edges if first == start)) for start in range(10)]
    names = [node.id for node in nodes]
    whole, thin = graph.graph(nodes, every=True), graph.graph(nodes)
    assert graph._reach(names, whole.arrows) == graph._reach(names, thin.arrows)
    sequence, against = graph.order(names, whole.arrows)
    place = {name: number for number, name in enumerate(sequence)}
    assert all((place[arrow.cause] >= place[arrow.effect]) == (arrow in against) for arrow in whole.arrows)


def test_explained_by_is_leads_to_seen_from_the_other_end() -> None:
    """Every arrow stands once at its effect."""
    assert {name: [arrow.cause for arrow in arrows] for name, arrows in graph.explained_by(CHAIN).items()} == {
        "b.b": ["a.a"],
        "c.c": ["a.a", "b.b"],
    }


def test_a_symptom_that_nothing_causes_is_found() -> None:
    """Only symptoms, and only living ones."""
    lonely = signature("s.s", role="symptom")
    assert graph.uncaused([*CHAIN, lonely]) == ["s.s"]
    assert graph.uncaused([dataclasses.replace(lonely, status="deprecated")]) == []


def test_shipped_strong_edges_close_no_circle(catalog: Catalog) -> None:
    """No shipped signature explains itself on one rank; after thinning, only edges to other ranks run back."""
    assert cycles({signature.id: signature for signature in catalog.signatures}) == {}
    found = graph.graph(catalog.signatures)
    _, against = graph.order([node.id for node in found.nodes], found.arrows)
    assert {arrow for arrow in against if arrow.strong} == set()


def test_every_shipped_symptom_can_be_caused(catalog: Catalog) -> None:
    """To each symptom some other signature leads."""
    assert graph.uncaused(catalog.signatures) == []


def test_shipped_edges_lead_to_what_exists(catalog: Catalog) -> None:
    """No edge ends at an id that the catalog has not, nor at a guide, which never matches."""
    roles = {signature.id: signature.role for signature in catalog.signatures}
    ends = {edge.signature for signature in catalog.signatures for edge in signature.leads_to}
    assert {end for end in ends if roles.get(end) in (None, "guide")} == set()
