"""triage.ranks.places"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.places import UNKNOWN_HOST_OF, host_keys, is_address, place_each, short_host

NUMBERS = st.none() | st.integers(0, 2)
ORIGINS = st.builds(
    Origin,
    rank=NUMBERS,
    local_rank=NUMBERS,
    host=st.sampled_from((None, "node1", "10.0.0.1")),
    pid=NUMBERS,
    stream=st.sampled_from((None, "stderr")),
    time=st.none() | st.integers(0, 3).map(float),
    attempt=st.integers(0, 1),
)
STATED = st.lists(st.tuples(st.sampled_from(("rank1.log", "node1/0/stdout.log", "console.log")), ORIGINS))


@pytest.mark.parametrize(
    ("host", "short", "address"),
    [
        ("node1.cluster.local", "node1", False),
        ("node1", "node1", False),
        ("10.0.0.7", "10.0.0.7", True),
        ("fe80::1", "fe80::1", True),
        ("7", "7", False),
        ("n.7", "n", False),
        ("", "", False),
    ],
)
def test_a_host_is_short_without_its_domain(host: str, short: str, address: bool) -> None:
    """An IP address has no domain."""
    assert (short_host(host), is_address(host)) == (short, address)


@pytest.mark.parametrize(
    ("source", "host", "keys"),
    [
        ("a.log", "node1.cluster", ("node1",)),
        ("a.log", None, (UNKNOWN_HOST_OF + "a.log",)),
        ("logs/none_k2j/attempt_0/1/stderr.log", None, ("logs/none_k2j/",)),
        ("logs/none_k2j/attempt_0/1/stderr.log", "node1", ("node1", "logs/none_k2j/")),
    ],
)
def test_what_stands_for_a_host(source: str, host: str | None, keys: tuple[str, ...]) -> None:
    """Its name and its run directory; the file only if neither is known."""
    assert host_keys(source, host) == keys


@given(learned=STATED, stated=STATED)
def test_each_line_is_placed_as_if_it_were_the_only_one(
    learned: list[tuple[str, Origin]], stated: list[tuple[str, Origin]]
) -> None:
    """Lines that state the same at other times get the same place, each with its own time."""
    job = JobMap()
    for source, origin in learned:
        job.learn(source, origin)
    for source, _ in stated:
        job.learn(source, Origin())
    job.resolve()
    assert list(place_each(job.place, stated)) == [job.place(source, origin) for source, origin in stated]


def test_a_line_that_needs_no_place_stays_the_same_object() -> None:
    """Who compares by identity sees which lines changed."""
    origins = [Origin(rank=1, time=1.0), Origin(rank=1, time=2.0)]
    placed = [origin for origin, _ in place_each(JobMap().place, [("console.log", origin) for origin in origins])]
    assert all(one is other for one, other in zip(placed, origins, strict=True))
