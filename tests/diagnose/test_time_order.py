"""Stamps of different clocks."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.diagnose.candidates import Candidate
from triage.diagnose.time_order import find_start, is_zone_apart, stands_before, tie_clocks
from triage.model.evidence import Evidence, Origin
from triage.records.activity import Activity

from .factories import exited, fact


def make_steps(*steps: tuple[Origin, int]) -> list[tuple[str, Activity]]:
    """Return lines of one source with these steps, one byte behind the other."""
    return [("job.log", Activity(origin, offset, "", step, False)) for offset, (origin, step) in enumerate(steps)]


def steps(shift: float = 0.0) -> list[tuple[str, Activity]]:
    """Ranks 0 and 1 on hosts a and b do the same steps, the clock of b is `shift` ahead."""
    return make_steps(
        *(
            (Origin(rank=rank, host=host, time=100.0 + 10 * step + rank * shift), step)
            for step in (7, 8, 9)
            for rank, host in enumerate("ab")
        )
    )


@given(st.floats(-1e5, 1e5))
def test_a_shared_step_ties_two_clocks(shift: float) -> None:
    """Whatever clock b shows, a second after step 9 is a second after step 9."""
    clock = tie_clocks(steps(shift), "ab")
    one, two = clock.read(fact("x", host="a", time=191.0)), clock.read(fact("y", host="b", time=192.0 + shift))
    assert one is not None
    assert two is not None
    assert one[0] == two[0]
    assert abs((two[1] - one[1]) - 1.0) < 1e-6


def test_without_a_shared_step_hosts_are_not_compared() -> None:
    """Each has a clock of its own; on one host, or where none is named, there is one clock."""
    clock = tie_clocks([], "ab")
    readings = [
        clock.read(fact("x", rank, host=host, time=1.0)) for rank, host in ((0, "a"), (1, "b"), (2, None), (3, None))
    ]
    assert len({reading[0] for reading in readings if reading}) == 4
    alone = tie_clocks([], "a")
    assert alone.read(fact("x", host="a", time=1.0)) == alone.read(fact("x", time=1.0)) == ("", 1.0)
    assert alone.read(fact("x")) is None


def test_hosts_are_tied_over_others() -> None:
    """a shares a step with b, b with c."""
    chain = [(Origin(rank=0, host="a", time=10.0), 1), (Origin(rank=1, host="b", time=110.0), 1)]
    chain += [(Origin(rank=1, host="b", time=120.0), 2), (Origin(rank=2, host="c", time=20.0), 2)]
    assert tie_clocks(make_steps(*chain), "abc").offsets == {"a": 0.0, "b": 100.0, "c": 0.0}


def test_steps_of_other_attempts_tie_nothing() -> None:
    """Step 7 of attempt 0 and of attempt 1 were done at different times."""
    apart = make_steps((Origin(host="a", time=1.0), 7), (Origin(host="b", time=900.0, attempt=1), 7))
    assert tie_clocks(apart, "ab").offsets == {"a": 0.0}


@pytest.mark.parametrize(
    ("hosts", "is_shared"), [("abab", True), ("aabb", False), ("abba", True), ("aaaa", False), ("ababcc", False)]
)
def test_a_file_orders_hosts_whose_lines_stand_between_each_other(hosts: str, is_shared: bool) -> None:
    """Where the log of one host follows that of another, the places of lines say nothing of their times."""
    clock = tie_clocks(make_steps(*((Origin(host=host), 1) for host in hosts)), "abc")
    assert clock.shared_files == (frozenset({"job.log"}) if is_shared else frozenset())
    above, below = (fact("x", host=host, time=time, offset=int(time)) for host, time in (("a", 10.0), ("b", 90.0)))
    assert stands_before(above, below, clock.shared_files) is is_shared
    assert not stands_before(below, above, clock.shared_files)


def test_the_end_of_a_process_may_have_been_earlier() -> None:
    """A launcher's stamp is the latest time there is."""
    begin = find_start([exited(1, -9, time=100.0)], tie_clocks([], ""))
    assert begin.first == {"": 100.0}
    assert begin.earliest[""] < 90.0
    assert begin.latest[""] == 101.0


def test_what_the_clocks_doubt_is_in_no_order() -> None:
    """Ten seconds order two hosts whose clocks are known to five, and not those known to fifteen; on one host two
    seconds do.
    """
    for unsure, ordered in ((2.5, True), (7.5, False)):
        clock = tie_clocks(steps(), "ab", {"a": unsure, "b": unsure})
        first, second, near = Candidate(None, "u-1", []), Candidate(None, "u-2", []), Candidate(None, "u-3", [])
        first.facts.append(fact("x", 0, host="a", time=200.0))
        second.facts.append(fact("y", 1, host="b", time=210.0))
        near.facts.append(fact("z", 0, host="a", time=203.0))
        for one in (first, second, near):
            one.set_clocks(clock)
        assert first.clearly_before(second) is ordered
        assert first.clearly_before(near)


@pytest.mark.parametrize(
    ("first", "second", "ordered"),
    [
        (100.0, 101.0, False),
        (100.0, 101.5, True),
        (100.25, 100.375, False),
        (100.25, 100.75, True),
    ],
)
def test_stamps_of_one_host_order_as_far_as_they_are_fine(first: float, second: float, ordered: bool) -> None:
    """A whole second is anything within it; fractions order what is a fifth of a second apart."""
    one, other = Candidate(None, "u-1", [fact("x", 0, time=first)]), Candidate(None, "u-2", [fact("y", 1, time=second)])
    for candidate in (one, other):
        candidate.set_clocks(tie_clocks([], ""))
    assert one.clearly_before(other) is ordered
    assert not other.clearly_before(one)


def test_the_stamp_of_a_line_before_is_no_end() -> None:
    """A traceback without a stamp happened after the line before it, and perhaps long after."""
    one, other = (
        Candidate(None, "u-1", [fact("x", 0, time=100.0, inherits_time=True)]),
        Candidate(None, "u-2", [fact("y", 1, time=200.0)]),
    )
    for candidate in (one, other):
        candidate.set_clocks(tie_clocks([], ""))
    assert not one.clearly_before(other)
    other.facts[0] = fact("y", 1, time=50.0)
    other.set_clocks(tie_clocks([], ""))
    assert other.clearly_before(one)


@pytest.mark.parametrize(
    ("delay", "apart"),
    [
        (-7200.0 + 120.0, True),
        (-7200.0 + 121.0, False),
        (19800.0 - 2.0, True),
        (19800.0 - 3.0, False),
        (30.0, False),
        (-27 * 3600.0, False),
    ],
)
def test_only_whole_half_hours_and_a_short_delay_are_a_zone(delay: float, apart: bool) -> None:
    """An effect two hours before its cause, less a delay of two minutes at most, is of another zone; no more is."""
    assert is_zone_apart(1e9, 1e9 + delay) == apart


@pytest.mark.parametrize(
    ("other", "ordered"),
    [
        (fact("y", 1, offset=500, time=102.5), True),
        (fact("y", 1, offset=500, time=102.0), False),
        (fact("y", 1, offset=50, time=102.5), False),
        (fact("y", 1, offset=500), False),
        (fact("y", 1, offset=500, time=102.5, host="b"), False),
        (fact("y", 1, offset=500, time=102.5, source="other.log"), False),
    ],
)
def test_lines_of_a_file_are_in_order_where_their_times_agree(other: Evidence, ordered: bool) -> None:
    """More than two seconds apart and in that order, also if no clock has both; not between two known hosts."""
    one, later = (
        Candidate(None, "u-1", [fact("x", 0, offset=100, time=100.0, host="a")]),
        Candidate(None, "u-2", [other]),
    )
    for candidate in (one, later):
        candidate.set_clocks(tie_clocks([], "ab"))
    assert one.clearly_before(later) is ordered
    assert not later.clearly_before(one)
