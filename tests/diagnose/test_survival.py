"""Failures that their writer survives: quoted ones, and errors that are older than the steps of their rank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import triage
from tests.diagnose.factories import fact
from triage.diagnose.survival import (
    FEWEST_STEPS,
    WENT_ON,
    Progress,
    is_outlived,
    is_quoted,
    may_be_time_zone,
    why_survived,
)
from triage.model import ExceptionDetail

QUOTING = "prediction | 'BUG: soft lockup - CPU#12 stuck for 26s!' -> kernel (0.98)"


@pytest.mark.parametrize(
    ("text", "is_quote"),
    [
        (QUOTING, True),
        ('sample 3: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."', True),
        ("> slurmstepd: error: Detected 1 oom-kill event(s) in StepId=5.0.", True),
        ("BUG: soft lockup - CPU#12 stuck for 26s! [python3:4711]", False),
        ("RuntimeError: 'the feeder has died, see its log'", False),
        ("ERROR loader: 'shard 7 is corrupt and cannot be read'", False),
        ('{"msg": "CUDA error: out of memory", "rank": 3}', False),
    ],
)
def test_a_quote_has_no_failure_outside_its_marks(text: str, is_quote: bool) -> None:
    """A message that itself states the failure quotes only a part of it."""
    assert is_quoted(text) is is_quote


@pytest.mark.parametrize(("steps", "is_over"), [(FEWEST_STEPS, True), (FEWEST_STEPS - 1, False)])
def test_a_quote_is_survived_when_steps_follow(steps: int, is_over: bool) -> None:
    """Of the same writer, behind the line."""
    offsets = tuple(range(100, 100 + steps))
    quote = fact(QUOTING, offset=50)
    assert bool(why_survived(quote, Progress({("job.log", None): (1, 2, *offsets)}))) is is_over
    assert not why_survived(quote, Progress({("job.log", 3): offsets}))


@pytest.mark.parametrize(
    ("seconds", "is_over"), [(WENT_ON, True), (WENT_ON - 1, False), (1800.0, False), (2400.0, True)]
)
def test_an_error_is_survived_when_later_steps_stand_in_another_file(seconds: float, is_over: bool) -> None:
    """By the timestamps of the same rank, unless the clocks may be in two time zones."""
    error = fact("ValueError: x", 3, kind="exception", source="rank3.err", time=1000.0)
    times = {3: ((900.0, "rank3.out"), (1000.0 + seconds / 2, "rank3.out"), (1000.0 + seconds, "rank3.out"))}
    assert bool(why_survived(error, Progress(times=times))) is is_over
    assert not why_survived(error, Progress(times={4: times[3]}))
    inherited = fact("ValueError: x", 3, kind="exception", source="rank3.err", time=1000.0, inherits_time=True)
    assert not why_survived(inherited, Progress(times=times))


@pytest.mark.parametrize(("seconds", "may_be"), [(1099.0, False), (1100.0, True), (1860.0, True), (1861.0, False)])
def test_half_hours_may_be_time_zones(seconds: float, may_be: bool) -> None:
    """Less the time that a rank may wait between its last step and its error."""
    assert may_be_time_zone(seconds) is may_be


@pytest.mark.parametrize(("last_step", "verdict"), [(40, "unknown"), (160, "inconclusive")])
def test_an_old_error_on_standard_error_is_no_ending(last_step: int, verdict: str, tmp_path: Path) -> None:
    """The error of 04:00:41 ended a rank whose last step is of 04:00:40, and not one that trains at 04:02:40."""
    for rank in (0, 1):
        steps = "".join(
            f"2026-03-02 04:{second // 60:02}:{second % 60:02},000 INFO train: step={second} loss=2.1\n"
            for second in range(1, last_step + 1)
        )
        (tmp_path / f"rank{rank}.out").write_text(steps, encoding="utf-8")
    error = "2026-03-02 04:00:41,000 ERROR feed: the ring buffer was closed while slot 5 was read\n"
    (tmp_path / "rank1.err").write_text(error, encoding="utf-8")
    assert triage.ingest(tmp_path).verdict == verdict


@pytest.mark.parametrize(("steps", "is_over"), [(FEWEST_STEPS, True), (FEWEST_STEPS - 1, False)])
def test_an_error_is_outlived_by_steps_and_another_error(steps: int, is_over: bool) -> None:
    """Between the two errors of one rank in one file, or after the first by the timestamps of another file."""
    first = fact("ValueError: x", 3, kind="exception", offset=50, time=1000.0)
    last = fact("KeyError: y", 3, kind="exception", offset=500, time=1000.0, inherits_time=True)
    between = tuple(range(100, 100 + steps))
    assert is_outlived(first, [first, last], Progress({("job.log", 3): between})) is is_over
    assert not is_outlived(first, [first, last], Progress({("job.log", 3): (10, 20, 600, 700)}))
    assert not is_outlived(first, [first], Progress({("job.log", 3): between}))
    assert not is_outlived(
        first, [fact("KeyError: y", 4, kind="exception", offset=500)], Progress({("job.log", 3): between})
    )
    times = {3: tuple((1000.5 + step, "rank3.out") for step in range(steps))}
    assert is_outlived(first, [first, last], Progress(times=times)) is is_over
    assert is_outlived(first, [fact("KeyError: y", 3, kind="exception", offset=500)], Progress(times=times)) is is_over
    handled = replace(first, detail=ExceptionDetail(continued=True))
    assert is_outlived(handled, [last], Progress())
    assert not is_outlived(handled, [], Progress())
    timed = fact("KeyError: y", 3, kind="exception", offset=500, time=1000.4)
    assert not is_outlived(first, [first, timed], Progress(times=times))
