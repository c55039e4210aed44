"""The wait graph: roots, dependencies and rings."""

from __future__ import annotations

from hypothesis import given, strategies as st

from triage.artifacts.flight.wait_graph import WaitNode, build_wait_graph


def node(waiting: str, absent: str = "") -> WaitNode:
    return WaitNode(frozenset(map(int, waiting)), frozenset(map(int, absent)))


def test_chain() -> None:
    """In a chain of waits the last rank is idle, and no ring forms."""
    graph = build_wait_graph([node("0", "1"), node("1", "2")])
    assert graph.depends == ((1,), ())
    assert graph.rings == ()
    assert graph.idle == (frozenset(), frozenset({2}))


def test_ring() -> None:
    """Ranks that wait for each other form a ring; a rank that waits for one of them depends on it."""
    graph = build_wait_graph([node("0", "1"), node("1", "0"), node("5", "1")])
    assert graph.rings == ((0, 1),)
    assert graph.depends[2] == (1,)


def test_node_without_missing_ranks_depends_on_nothing() -> None:
    """A rank that waits for ranks in a mismatch depends on the mismatch, which depends on nothing."""
    assert build_wait_graph([node("012"), node("3", "1")]).depends == ((), (0,))


def test_busy_rank_is_not_idle() -> None:
    """A rank that stands in a call which no dump shows is no root; without that it is."""
    assert build_wait_graph([node("0", "1")], busy={1}).idle == (frozenset(),)
    assert build_wait_graph([node("0", "1")]).idle == (frozenset({1}),)


@given(
    st.lists(
        st.tuples(st.frozensets(st.integers(0, 12), max_size=4), st.frozensets(st.integers(0, 12), max_size=4)),
        max_size=30,
    )
)
def test_rings_are_closed_and_do_not_overlap(parts: list[tuple[frozenset[int], frozenset[int]]]) -> None:
    """Each node of a ring reaches all others of it, and no two rings share a node."""
    graph = build_wait_graph([WaitNode(waiting, absent) for waiting, absent in parts])
    assert len({index for ring in graph.rings for index in ring}) == sum(map(len, graph.rings))
    for ring in graph.rings:
        for start in ring:
            reached, todo = set(), [start]
            while todo:
                for after in graph.depends[todo.pop()]:
                    if after not in reached:
                        reached.add(after)
                        todo.append(after)
            assert set(ring) <= reached
