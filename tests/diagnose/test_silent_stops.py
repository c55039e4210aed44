"""triage.diagnose.silent_stops"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from diagnose.factories import candidate, fact
from triage.diagnose.candidates import Candidate
from triage.diagnose.silent_stops import describe_silence

STEPS = {0: [100.0, 110.0, 120.0], 1: [100.0, 110.0, 118.0]}


def stop(*times: float | None) -> Candidate:
    """Return a stop from outside, of which lines were written at these times."""
    signature = candidate("launch.interrupted", "cause").signature
    return Candidate(signature, None, [fact("SIGTERM", rank, time=time) for rank, time in enumerate(times)])


@pytest.mark.parametrize(
    ("times", "steps", "ranks", "silent"),
    [
        ([180.0, 190.0], STEPS, {0, 1}, 60),  # the first line of the stop counts
        ([179.0, 190.0], STEPS, {0, 1}, 0),
        ([200.0], {0: [100.0, 120.0, 140.0]}, {0}, 0),  # as long as three steps
        ([240.0], {0: [100.0, 120.0, 140.0]}, {0}, 100),
        ([239.0], {0: [100.0, 120.0, 140.0]}, {0}, 0),
        ([500.0], {0: [100.0, 120.0]}, {0}, 0),  # too few steps to know how long one takes
        ([500.0], STEPS, {0, 1, 2}, 0),  # rank 2 may have made steps
        ([None], STEPS, {0, 1}, 0),
        ([500.0], {}, {0, 1}, 0),
    ],
)
def test_a_long_pause_of_all_ranks_before_a_stop_is_a_hang(
    times: Sequence[float | None], steps: Mapping[int, Sequence[float]], ranks: set[int], silent: int
) -> None:
    """A minute without a step of any rank, and five times the longest pause between two steps, are enough."""
    sentence = describe_silence(stop(*times), steps, {0: 3, 1: 3}, ranks)
    assert sentence == (
        f"No rank made a step in the {silent} s before: it may have hung before it was stopped" if silent else ""
    )


def test_ranks_that_had_fewer_steps_are_named() -> None:
    """Where a few reported fewer steps than most others, they are the first to look at."""
    sentence = describe_silence(stop(500.0), STEPS, {0: 7, 1: 6, 2: 7}, {0, 1})
    assert sentence.endswith("; rank 1 last reported step 6, most others 7")
