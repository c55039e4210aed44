"""Rules about who did not speak, beyond those of test_rules.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnose.making import GLOO, TIMEOUT, raised
from triage.diagnose.rules import infer, silence
from triage.diagnose.scene import Scene

WAITS = [raised(TIMEOUT, rank) for rank in (0, 1, 3)]
WAITING = Scene(WAITS, {"waiting": [0, 1, 2]}, frozenset(range(4)), 4, frozenset())
LOSING = Scene([raised(GLOO, rank) for rank in (0, 1)], {"peer-lost": [0, 1]}, frozenset(range(4)), 4, frozenset())


def told(scene: Scene) -> tuple[set[str], set[int | None]]:
    found = infer(scene).inferences
    return {one.fields["rule"] for one in found}, {one.origin.rank for one in found}


@pytest.mark.parametrize(
    ("doing", "rule"),
    [("compiling", "compile-skew"), ("epoch-over", "uneven-steps"), ("saving", "never-joined"), ("", "never-joined")],
)
def test_what_the_silent_rank_was_about_says_why_it_did_not_come(doing: str, rule: str) -> None:
    """Its last line is about compiling, or the end of its epoch: that is said instead of only that it did not come."""
    assert told(replace(WAITING, doing={2: doing})) == ({rule}, {2})


def test_rank_zero_has_more_to_do_than_others() -> None:
    """When only rank 0 evaluates at the end of an epoch, batches are not uneven."""
    waits = Scene(
        [raised(TIMEOUT, rank) for rank in (1, 2, 3)], {"waiting": [0, 1, 2]}, frozenset(range(4)), 4, frozenset()
    )
    assert told(replace(waits, doing={0: "epoch-over"})) == ({"never-joined"}, {0})


def test_when_all_end_their_epoch_batches_are_even() -> None:
    """Who waits is at the end of the epoch as well."""
    assert told(replace(WAITING, doing={2: "epoch-over", 0: "epoch-over"})) == ({"never-joined"}, {2})


def test_a_rank_that_caught_an_error_and_did_not_come_diverged() -> None:
    """The error that it caught is what is told."""
    caught = raised("ValueError: loss is nan", 2)
    (found,) = infer(replace(WAITING, handled=[caught])).inferences
    assert (found.fields["rule"], found.origin.rank) == ("one-rank-diverged", 2)
    assert "loss is nan" in found.text
    assert told(replace(WAITING, handled=[raised("ValueError: x", 0)])) == ({"never-joined"}, {2})


def test_the_last_step_of_the_silent_rank_is_told_where_it_is_behind() -> None:
    """Rank 2 stopped at step 40, the others at 45."""
    (found,) = infer(replace(WAITING, last_step={0: 45, 1: 45, 2: 40, 3: 46})).inferences
    assert "its last step is 40, that of the others 45-46" in found.text
    (found,) = infer(replace(WAITING, last_step={0: 45, 1: 45, 2: 45, 3: 46})).inferences
    assert "last step" not in found.text


def test_the_log_that_stops_first_is_suspect() -> None:
    """Of two ranks that do not complain, the one that stopped at an earlier step."""
    steps = {0: 45, 1: 45, 2: 40, 3: 45}
    assert [one.origin.rank for one in silence.log_stopped(replace(LOSING, last_step=steps))] == [2]
    assert silence.log_stopped(replace(LOSING, last_step={**steps, 2: 45})) == []
    assert silence.log_stopped(replace(LOSING, last_step=steps, finished=frozenset({2}))) == []


def test_a_log_that_goes_on_as_long_has_not_stopped() -> None:
    """Its clock says that it wrote as late as the others; on clocks that cannot be compared, the steps decide."""
    steps = {0: 45, 1: 45, 2: 40, 3: 45}
    late = {0: ("", 100.0), 1: ("", 100.0), 2: ("", 99.0)}
    assert silence.log_stopped(replace(LOSING, last_step=steps, last_time=late)) == []
    assert silence.log_stopped(replace(LOSING, last_step=steps, last_time={**late, 2: ("host b", 99.0)}))
    assert silence.log_stopped(replace(LOSING, last_step=steps, last_time={**late, 2: ("", 10.0)}))


def test_who_did_not_say_that_it_reached_the_barrier() -> None:
    """Rank 0 waits in a monitored barrier for those that the others do not hear of; when most say nothing, nothing is
    concluded.
    """
    said = "Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0."
    scene = Scene([raised(said.format(rank), rank) for rank in (1, 2, 4)], {}, frozenset(range(5)), 5, frozenset())
    assert [(one.fields["rule"], one.origin.rank) for one in silence.missed_barrier(scene)] == [("missed-barrier", 3)]
    assert silence.missed_barrier(replace(scene, world_size=9)) == []
    assert silence.missed_barrier(replace(scene, finished=frozenset({3}))) == []


@pytest.mark.parametrize(("seen", "rule"), [((0, 1, 3), "never-joined"), ((0, 1, 2), "rank-absent")])
def test_a_client_that_is_missing(seen: tuple[int, ...], rule: str) -> None:
    """The last rank may never have been meant to be; one between others was, and did not come."""
    scene = Scene(
        [raised("RuntimeError: 3/4 clients joined.", rank) for rank in seen], {}, frozenset(seen), 4, frozenset()
    )
    (found,) = silence.rank_absent(scene)
    assert (found.fields["rule"], found.origin.rank) == (rule, 6 - sum(seen))
