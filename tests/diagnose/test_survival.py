"""Failures that their writer survives: quoted ones, and errors that are older than the steps of their rank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import triage
from tests.diagnose.factories import candidate, decide, fact
from triage.diagnose.confidence import UNCERTAIN
from triage.diagnose.survival import (
    FEWEST_STEPS,
    WENT_ON,
    Progress,
    find_progress,
    is_cut,
    is_outlived,
    is_quoted,
    is_uncertain,
    may_be_time_zone,
    why_survived,
    why_uncertain,
)
from triage.model import ExceptionDetail, Origin
from triage.records.activity import Activity

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
        ('["CUDA error: out of memory", 3]', False),
        ('[launcher] on "Fatal Python error: Segmentation fault" a traceback is written to stderr', True),
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


@pytest.mark.parametrize(
    ("stdout", "local", "is_over"),
    [("1/stdout.log", 1, True), ("2/stdout.log", 1, False), ("1/stdout.log", None, False)],
)
def test_without_a_rank_the_two_streams_of_a_process_tell(stdout: str, local: int | None, is_over: bool) -> None:
    """Where the files' names show that one process wrote both, and it is one local rank's."""
    error = replace(
        fact("ValueError: x", kind="exception", source="1/stderr.log"), origin=Origin(local_rank=local, time=1000.0)
    )
    steps = [
        (stdout, Activity(Origin(local_rank=local, time=1000.0 + seconds), seconds, "", seconds, False))
        for seconds in (10, 20)
    ]
    assert bool(why_survived(error, find_progress(steps))) is is_over


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
    times = {3: tuple((1000.5 + step, "job.log") for step in range(steps))}
    assert not is_outlived(first, [first, last], Progress(times=times))  # in one file the order of lines tells
    handled = replace(first, detail=ExceptionDetail(continued=True))
    assert is_outlived(handled, [last], Progress())
    assert not is_outlived(handled, [], Progress())
    elsewhere = fact("KeyError: y", 3, kind="exception", source="rank3.err", time=2000.0)
    assert not is_outlived(handled, [elsewhere], Progress())
    timed = fact("KeyError: y", 3, kind="exception", offset=500, time=1000.4)
    assert not is_outlived(first, [first, timed], Progress(times=times))


@pytest.mark.parametrize(
    ("text", "uncertain"),
    [
        ("read of shard 4 failed: [Errno 5] Input/output error (attempt 1/5), retrying", True),
        ("read of shard 4 failed: [Errno 5] Input/output error (attempt 5/5), giving up", False),
        ("pip cache: [Errno 28] No space left on device - entry skipped", True),
        ("[Errno 28] No space left on device", False),
        ("If you see [Errno 24] Too many open files, raise the limit", True),
        ("it prints 'BUG: soft lockup - CPU#12 stuck for 26s!' when it hangs", True),
        ("max retries exceeded, skipping the file", False),
        ("maximum recursion depth exceeded, falling back to a loop", True),
        ("attempt 2; previous attempt ended with: job 17 cancelled, it reached its time limit", True),
        ("the last run failed with the same error, giving up", False),
        ("a.py:46: UserWarning: [Errno 28] No space left on device.  joblib will operate in serial mode", True),
        ("WARN cache: [Errno 28] No space left on device, the cache will be disabled", True),
        ("W0101 io.cc:7] Warning: [Errno 5] Input/output error, reverting to buffered reads", True),
        ("WARN cache: [Errno 28] No space left on device", False),
        ("[Errno 28] No space left on device: the next step will use 3 GB", False),
        ("yesterday's run died with [Errno 5] Input/output error", True),
        ("yesterday [Errno 5] Input/output error was met", False),
        ("open of shard 4: [Errno 5] Input/output error, ignored", True),
        ("the last run of the suite had 17 tests", False),
        ("The docs list BUG: soft lockup. Is that something one sees often on H100?", True),
        ("Has anyone met [Errno 5] Input/output error on Lustre?", True),
        ("[Errno 111] Connection refused: did you start the server?", False),
        ("Why do I get [Errno 5] Input/output error? It ended the job", False),
    ],
)
def test_a_line_may_say_that_its_program_goes_on(text: str, uncertain: bool) -> None:
    """Then it is no sure cause; an exception that left its program did not go on, whatever its text."""
    assert is_uncertain(fact(text)) is is_uncertain(fact(text, kind="scheduler")) is uncertain
    assert not is_uncertain(fact(text, kind="exception"))


@pytest.mark.parametrize(("behind", "is_sure"), [("", True), (", retrying", False)])
def test_a_cause_that_may_not_have_ended_anything_is_not_sure(behind: str, is_sure: bool) -> None:
    """One line that does not say so is enough."""
    one = candidate(f"the disk is full{behind}", "cause", [0])
    assert (decide([one]).confidence > UNCERTAIN) is is_sure


@pytest.mark.parametrize(
    ("behind", "is_sure"),
    [
        ("step 12 loss 1.0\n", False),
        ("", True),
        ("step 12 loss 1.0\nRuntimeError: CUDA error: unspecified launch failure\n", True),
    ],
)
def test_a_line_after_which_nothing_failed_is_no_sure_cause(behind: str, is_sure: bool, tmp_path: Path) -> None:
    """Where another line shows a failure, the first may have caused it."""
    (tmp_path / "job.log").write_text(f"step 11 loss 1.1\neval: CUDA out of memory. Tried to allocate 2 GiB\n{behind}")
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert (root.confidence > UNCERTAIN) is is_sure
    assert any("no other line shows a failure" in line for line in root.why) is not is_sure


def test_a_traceback_without_its_exception_is_uncertain() -> None:
    """It shows where its rank was, not that this rank failed; with its exception it is sure."""
    whole = ExceptionDetail(type="KeyError")
    cut = ExceptionDetail(truncated=True)
    assert [is_cut(fact("x", 3, kind="exception", detail=detail)) for detail in (whole, cut)] == [False, True]
    assert "cut before the exception" in why_uncertain(fact("x", 3, kind="exception", detail=cut))
    assert why_uncertain(fact("x", 3, kind="exception", detail=whole)) == ""
