"""Who waits for whom: roots, what follows from them, and rings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triage.artifacts.flight.waits import Knot, resolve


def knot(waiting: str, absent: str = "") -> Knot:
    return Knot(frozenset(map(int, waiting)), frozenset(map(int, absent)))


def test_a_chain() -> None:
    """0 waits for 1, 1 waits for 2, 2 waits nowhere."""
    found = resolve([knot("0", "1"), knot("1", "2")])
    assert found.depends == ((1,), ())
    assert found.rings == ()
    assert found.idle == (frozenset(), frozenset({2}))


def test_a_ring() -> None:
    """0 waits for 1 and 1 for 0; a third looks at them from outside."""
    found = resolve([knot("0", "1"), knot("1", "0"), knot("5", "1")])
    assert found.rings == ((0, 1),)
    assert found.depends[2] == (1,)


def test_a_knot_that_explains_itself_depends_on_nothing() -> None:
    """Ranks that wait for one that stands in a mismatch wait because of the mismatch."""
    assert resolve([knot("012"), knot("3", "1")]).depends == ((), (0,))


@given(
    st.lists(
        st.tuples(st.frozensets(st.integers(0, 12), max_size=4), st.frozensets(st.integers(0, 12), max_size=4)),
        max_size=30,
    )
)
def test_rings_are_closed_and_do_not_overlap(parts: list[tuple[frozenset[int], frozenset[int]]]) -> None:
    """From every knot of a ring every other one of it can be reached, and no two rings share one."""
    found = resolve([Knot(waiting, absent) for waiting, absent in parts])
    assert len({knot for ring in found.rings for knot in ring}) == sum(map(len, found.rings))
    for ring in found.rings:
        for start in ring:
            reached, todo = set(), [start]
            while todo:
                for after in found.depends[todo.pop()]:
                    if after not in reached:
                        reached.add(after)
                        todo.append(after)
            assert set(ring) <= reached
