"""The timeline of a job."""

from __future__ import annotations

from pathlib import Path

from triage import pipeline
from triage.diagnose.timeline import cut_timeline
from triage.testing.jobs import JobBuilder


def job(tmp_path: Path) -> str:
    """Write a job with one file per rank, in which rank 1 fails, and return its path."""
    (tmp_path / "job").mkdir()
    for rank in range(4):
        lines = [f"2026-11-21 03:00:{second:02},000 INFO trainer: step {second}" for second in range(10 + rank)]
        if rank == 1:
            lines += [
                "Traceback (most recent call last):",
                '  File "train.py", line 3, in f',
                "    g()",
                "ValueError: no tokens",
            ]
        (tmp_path / "job" / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")
    return str(tmp_path / "job")


def test_failures_and_last_lines_are_in_the_order_of_the_clocks(tmp_path: Path) -> None:
    """Each rank's last line stands at its time, the failure says its signature and that it is the root."""
    timeline = pipeline.timeline([job(tmp_path)])
    assert [(event.ranks, event.last, event.root) for event in timeline.events] == [
        ((0,), True, False),
        ((1,), False, True),
        ((2,), True, False),
        ((3,), True, False),
    ]
    assert timeline.events[2].text.endswith("step 11")
    assert [event.later for event in timeline.events] == [False, True, False, False]  # the traceback has no timestamp
    assert [state.rank for state in timeline.ranks] == [0, 1, 2, 3]


def test_a_window_and_ranks_cut_and_count(tmp_path: Path) -> None:
    """Events outside of the window or of other ranks are left out and counted."""
    whole = pipeline.timeline([job(tmp_path)])
    near = cut_timeline(whole, around=1.0)
    assert [event.ranks for event in near.events] == [(0,), (1,), (2,)]
    assert near.left_out == 1
    some = cut_timeline(whole, ranks=frozenset({2, 3}))
    assert [event.ranks for event in some.events] == [(2,), (3,)]
    assert [state.rank for state in some.ranks] == [2, 3]
    assert cut_timeline(whole) == whole


def test_ranks_with_equal_last_lines_share_an_event(tmp_path: Path) -> None:
    """Within one second, whatever the numbers in it."""
    builder = JobBuilder(tmp_path / "job", world_size=4)
    for rank in range(4):
        builder.rank(rank).line(f"2026-11-21 03:00:05,{rank}00 INFO trainer: step {rank} of 100")
    timeline = pipeline.timeline([str(builder.write())])
    assert [event.ranks for event in timeline.events if event.last] == [(0, 1, 2, 3)]
