from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.catalog import graph
from triage.catalog.lint import find_cycles
from triage.catalog.model import Catalog, CausalEdge, Signature


def signature(identifier: str, *effects: str, role: str = "cause", scope: str = "any-rank") -> Signature:
    edges = tuple(CausalEdge(effect, scope) for effect in effects)
    return Signature(identifier, 1, identifier, "stable", role, "error", None, causal_edges=edges)  # type: ignore[arg-type]


CHAIN = [signature("a.a", "b.b", "c.c"), signature("b.b", "c.c"), signature("c.c", role="symptom"), signature("d.d")]


def pairs(result: graph.Graph) -> list[tuple[str, str]]:
    return [(arrow.cause, arrow.effect) for arrow in result.edges]


def test_implied_edges_are_left_out() -> None:
    """a to b to c implies a to c; the graph counts what it left out, unless `with_implied`."""
    result = graph.build_graph(CHAIN)
    assert pairs(result) == [("a.a", "b.b"), ("b.b", "c.c")]
    assert result.implied_count == 1
    assert pairs(graph.build_graph(CHAIN, with_implied=True)) == [("a.a", "b.b"), ("a.a", "c.c"), ("b.b", "c.c")]


def test_edges_to_unknown_ids_and_itself_are_ignored() -> None:
    """An edge needs two different signatures of the catalog."""
    assert graph.build_graph([signature("a.a", "a.a", "x.x")]).edges == ()


def test_a_neighbourhood_has_only_direct_edges() -> None:
    """It has the signature, its causes and effects, and no edge between others."""
    result = graph.build_neighbourhood(CHAIN, "b.b")
    assert [node.id for node in result.nodes] == ["a.a", "b.b", "c.c"]
    assert pairs(result) == [("a.a", "b.b"), ("b.b", "c.c")]
    with pytest.raises(KeyError):
        graph.build_neighbourhood(CHAIN, "x.x")


def test_weak_edges_run_backward_in_a_cycle() -> None:
    """Of two ranks that complain about each other, only the edge to other ranks runs against the order."""
    nodes = [signature("a.a", "b.b"), signature("b.b", "a.a", scope="other-ranks")]
    sequence, against = graph.order_causes_first(["a.a", "b.b"], graph.build_graph(nodes).edges)
    assert sequence == ["a.a", "b.b"]
    assert [(arrow.cause, arrow.effect) for arrow in against] == [("b.b", "a.a")]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_left_out_edges_change_no_reachability(edges: list[tuple[int, int]]) -> None:
    """In any graph, also with cycles, the same signatures can be reached as before."""
    nodes = [signature(f"n.n{start}", *(f"n.n{end}" for first, end in edges if first == start)) for start in range(10)]
    names = [node.id for node in nodes]
    whole, thin = graph.build_graph(nodes, with_implied=True), graph.build_graph(nodes)
    assert graph._find_reachable(names, whole.edges) == graph._find_reachable(names, thin.edges)
    sequence, against = graph.order_causes_first(names, whole.edges)
    place = {name: number for number, name in enumerate(sequence)}
    assert all((place[arrow.cause] >= place[arrow.effect]) == (arrow in against) for arrow in whole.edges)


def test_edges_are_grouped_by_effect() -> None:
    """Every edge is listed once at its effect."""
    assert {name: [arrow.cause for arrow in arrows] for name, arrows in graph.group_edges_by_effect(CHAIN).items()} == {
        "b.b": ["a.a"],
        "c.c": ["a.a", "b.b"],
    }


def test_shipped_strong_edges_close_no_cycle(catalog: Catalog) -> None:
    """No shipped signature explains itself on one rank; only edges to other ranks run backward."""
    assert find_cycles({signature.id: signature for signature in catalog.signatures}) == {}
    result = graph.build_graph(catalog.signatures)
    _, against = graph.order_causes_first([node.id for node in result.nodes], result.edges)
    assert {arrow for arrow in against if arrow.is_strong} == set()


def test_every_shipped_symptom_has_a_cause(catalog: Catalog) -> None:
    """Some other signature leads to each symptom."""
    symptoms = {one.id for one in catalog.signatures if one.role == "symptom" and one.status != "deprecated"}
    assert symptoms - set(graph.group_edges_by_effect(catalog.signatures)) == set()


def test_shipped_edges_lead_to_signatures_that_match(catalog: Catalog) -> None:
    """No edge ends at an unknown id or at a guide, which never matches."""
    roles = {signature.id: signature.role for signature in catalog.signatures}
    ends = {edge.signature for signature in catalog.signatures for edge in signature.causal_edges}
    assert {end for end in ends if roles.get(end) in (None, "guide")} == set()
