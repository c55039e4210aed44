"""triage.ranks.clocks"""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, strategies as st

from triage.ranks.clocks import RESOLUTION, HostClocks, compute_median


def clocks_of(ahead: dict[str, float], events: int = 8, delays: tuple[float, ...] = (0.0,)) -> HostClocks:
    """Return the clocks of hosts that are so far ahead, and log the same events with some delay."""
    clocks = HostClocks()
    for number in range(events):
        for index, (host, seconds) in enumerate(sorted(ahead.items())):
            clocks.add_event(
                f"step {number}", host, 1000.0 + 10 * number + seconds + delays[(number + index) % len(delays)]
            )
    clocks.estimate()
    return clocks


def test_equal_clocks_have_no_skew() -> None:
    """Delays of less than a second are not a skew."""
    clocks = clocks_of({"node1": 0.0, "node2": 0.0}, delays=(0.0, 0.4, 0.9))
    assert clocks.seconds_ahead("node1") == clocks.seconds_ahead("node2") == 0.0


@given(st.floats(-40_000, 40_000), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_skew_is_estimated(seconds: float, delays: list[float]) -> None:
    """The estimate is exact within the uncertainty, whatever the delays."""
    clocks = clocks_of({"node1": 0.0, "node2": seconds}, delays=tuple(delays))
    difference = clocks.by_host["node2"].ahead - clocks.by_host["node1"].ahead
    assert difference == pytest.approx(seconds, abs=2)
    assert clocks.seconds_ahead("node2") == 0.0 or abs(seconds) > RESOLUTION


def test_hosts_are_compared_through_others() -> None:
    """Two hosts without a common event are compared through a third, and their uncertainties add up."""
    clocks = HostClocks()
    for number in range(4):
        clocks.add_event(f"a {number}", "node1", 100.0 + number)
        clocks.add_event(f"a {number}", "node2", 200.0 + number)
        clocks.add_event(f"b {number}", "node2", 300.0 + number)
        clocks.add_event(f"b {number}", "node3", 500.0 + number)
    clocks.estimate()
    assert clocks.seconds_ahead("node3") - clocks.seconds_ahead("node1") == pytest.approx(300.0)
    assert clocks.by_host["node1"].uncertainty + clocks.by_host["node3"].uncertainty == 2.0


@given(st.lists(st.floats(-1e12, 1e12), min_size=1))
def test_the_median_is_that_of_the_standard_library(numbers: list[float]) -> None:
    """Any numbers, even or odd in count, have the median that `statistics` computes."""
    assert compute_median(iter(numbers)) == statistics.median(numbers)


def test_a_host_without_common_events_has_no_clock() -> None:
    """No correction is made for it."""
    clocks = clocks_of({"node1": 0.0})
    assert clocks.seconds_ahead("node9") == 0.0


def test_a_repeated_step_number_is_ignored() -> None:
    """The same event at two distant times on one host is two events."""
    clocks = HostClocks()
    for time in (100.0, 900.0):
        clocks.add_event("step 1", "node1", time)
        clocks.add_event("step 1", "node2", time + 50)
    clocks.estimate()
    assert clocks.by_host == {}


def test_the_order_of_events_does_not_matter() -> None:
    """The estimate is the same whichever file is read first."""
    events = [
        (f"step {n}", host, 100.0 + n + skew) for n in range(5) for host, skew in (("b", 9.0), ("a", 0.0), ("c", -7.0))
    ]
    estimates = []
    for order in (events, events[::-1], sorted(events, key=lambda event: event[1])):
        clocks = HostClocks()
        for event in order:
            clocks.add_event(*event)
        clocks.estimate()
        estimates.append((clocks.reference, clocks.by_host))
    assert estimates[0] == estimates[1] == estimates[2]


def test_thousands_of_hosts_are_compared_with_the_reference_only() -> None:
    """3,000 hosts with ten common events take no noticeable time; comparing all pairs would."""
    ahead = {f"node{number:04}": float(number % 7) for number in range(3000)}
    clocks = clocks_of(ahead, events=10)
    assert clocks.reference == "node0000"
    assert {host: clock.ahead for host, clock in clocks.by_host.items()} == ahead


@pytest.mark.parametrize(
    ("differences", "uncertainty"),
    [([5.0], 2.0), ([5.0, 9.0], 4.0), ([5.0, 5.0, 9.0], 1.0), ([3.0, 5.0, 9.0], 6.0)],
)
def test_the_uncertainty_is_the_scatter(differences: list[float], uncertainty: float) -> None:
    """Of fewer than three events their whole range, at least two seconds; else three times the median deviation."""
    clocks = HostClocks()
    for number, difference in enumerate(differences):
        clocks.add_event(f"step {number}", "node1", 100.0)
        clocks.add_event(f"step {number}", "node2", 100.0 + difference)
    clocks.estimate()
    assert clocks.by_host["node2"].uncertainty == uncertainty
    assert clocks.by_host["node2"].events == len(differences)


@pytest.mark.parametrize(("ahead", "seconds"), [(3.0, 0.0), (3.1, 3.0), (-3.0, 0.0), (-3.6, -4.0)])
def test_a_clock_is_wrong_beyond_its_uncertainty(ahead: float, seconds: float) -> None:
    """And beyond the two seconds that whole seconds may differ by."""
    assert clocks_of({"node1": 0.0, "node2": ahead}).seconds_ahead("node2") == seconds
    assert clocks_of({"node1": 0.0, "node2": ahead}).seconds_ahead(None) == 0.0


@pytest.mark.parametrize(("later", "is_one"), [(30.0, True), (30.5, False)])
def test_two_times_within_half_a_minute_are_one_event(later: float, is_one: bool) -> None:
    """Several ranks of a host log a step; a step number that comes again much later is another event."""
    clocks = HostClocks()
    for time in (100.0, 100.0 + later):
        clocks.add_event("step 1", "node1", time)
    clocks.add_event("step 1", "node2", 110.0)
    clocks.estimate()
    assert bool(clocks.by_host) is is_one


def test_the_reference_shares_most_events() -> None:
    """An event of three hosts counts more than one of two."""
    clocks = HostClocks()
    for event, hosts in (("a", "pq"), ("b", "pq"), ("c", "qrz"), ("d", "rz"), ("e", "rz"), ("f", "rz")):
        for host in hosts:
            clocks.add_event(event, host, 100.0)
    clocks.estimate()
    assert clocks.reference == "r"
    assert clocks.by_host["r"].events == 10


def test_an_event_without_a_host_or_a_time_is_ignored() -> None:
    """It can be compared with nothing."""
    clocks = HostClocks()
    for host, time in (("node1", 100.0), (None, 100.0), ("node2", None)):
        clocks.add_event("a", host, time)
    clocks.estimate()
    assert (clocks.reference, clocks.by_host) == (None, {})
