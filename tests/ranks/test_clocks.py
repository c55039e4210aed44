"""triage.ranks.clocks"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.ranks.clocks import RESOLUTION, Clocks


def clocks_of(ahead: dict[str, float], events: int = 8, delays: tuple[float, ...] = (0.0,)) -> Clocks:
    """Hosts whose clocks are so far ahead, and that all saw the same events, a bit later each."""
    clocks = Clocks()
    for number in range(events):
        for index, (host, seconds) in enumerate(sorted(ahead.items())):
            clocks.see(f"step {number}", host, 1000.0 + 10 * number + seconds + delays[(number + index) % len(delays)])
    clocks.settle()
    return clocks


def test_clocks_that_agree_are_left_alone() -> None:
    """Delays of less than a second are no skew."""
    clocks = clocks_of({"node1": 0.0, "node2": 0.0}, delays=(0.0, 0.4, 0.9))
    assert clocks.ahead("node1") == clocks.ahead("node2") == 0.0
    assert clocks.doubt("node1", "node2") >= RESOLUTION


@given(st.floats(-40_000, 40_000), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_skew_comes_back(seconds: float, delays: list[float]) -> None:
    """The difference is found up to the doubt that is said, whatever delays there were."""
    clocks = clocks_of({"node1": 0.0, "node2": seconds}, delays=tuple(delays))
    found = clocks.by_host["node2"].ahead - clocks.by_host["node1"].ahead
    assert found == pytest.approx(seconds, abs=2)
    assert clocks.ahead("node2") == 0.0 or abs(seconds) > RESOLUTION


def test_hosts_are_compared_through_others() -> None:
    """Two hosts that share no event are compared through a third, and the doubts add up."""
    clocks = Clocks()
    for number in range(4):
        clocks.see(f"a {number}", "node1", 100.0 + number)
        clocks.see(f"a {number}", "node2", 200.0 + number)
        clocks.see(f"b {number}", "node2", 300.0 + number)
        clocks.see(f"b {number}", "node3", 500.0 + number)
    clocks.settle()
    assert clocks.ahead("node3") - clocks.ahead("node1") == pytest.approx(300.0)
    assert clocks.by_host["node1"].doubt + clocks.by_host["node3"].doubt == clocks.doubt("node1", "node3")


def test_what_is_not_known_is_not_ordered() -> None:
    """Without events in common nothing is said; on one host the resolution of stamps holds."""
    clocks = clocks_of({"node1": 0.0})
    assert clocks.doubt("node1", "node2") is None
    assert clocks.doubt("node1", "node1") == RESOLUTION
    assert clocks.doubt(None, None) == RESOLUTION
    assert clocks.ahead("node9") == 0.0


def test_a_step_number_used_again_says_nothing() -> None:
    """The same event at times far apart on one host is two events."""
    clocks = Clocks()
    for time in (100.0, 900.0):
        clocks.see("step 1", "node1", time)
        clocks.see("step 1", "node2", time + 50)
    clocks.settle()
    assert clocks.by_host == {}


def test_the_order_of_events_does_not_matter() -> None:
    """Clocks are what they are, whichever file is read first."""
    seen = [
        (f"step {n}", host, 100.0 + n + skew) for n in range(5) for host, skew in (("b", 9.0), ("a", 0.0), ("c", -7.0))
    ]
    answers = []
    for order in (seen, seen[::-1], sorted(seen, key=lambda event: event[1])):
        clocks = Clocks()
        for event in order:
            clocks.see(*event)
        clocks.settle()
        answers.append((clocks.reference, clocks.by_host))
    assert answers[0] == answers[1] == answers[2]


def test_thousands_of_hosts_are_compared_with_one_only() -> None:
    """The clocks of 3,000 hosts that share ten events are known at once; comparing all with all would never end."""
    ahead = {f"node{number:04}": float(number % 7) for number in range(3000)}
    clocks = clocks_of(ahead, events=10)
    assert clocks.reference == "node0000"
    assert {host: clock.ahead for host, clock in clocks.by_host.items()} == ahead
