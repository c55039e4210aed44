from __future__ import annotations

import io
import sys

import pytest

from triage.cli import progress
from triage.pipeline import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_short_work_draws_nothing() -> None:
    """Work under half a second writes nothing, also on closing."""
    drawn: list[str] = []
    clock = Clock()
    bar = progress.Bar(drawn.append, clock)
    for step in range(49):
        clock.now = step / 100
        bar(Progress("scan", step, 49))
    bar.close()
    assert drawn == []


def test_long_work_draws_ten_times_a_second_and_cleans_up() -> None:
    """After half a second the bar is drawn every tenth; closing erases it."""
    drawn: list[str] = []
    clock = Clock()
    bar = progress.Bar(drawn.append, clock)
    for step in range(2001):
        clock.now = step / 1000
        bar(Progress("scan", step, 2000))
    bar.close()
    assert 14 <= len(drawn) <= 17
    assert drawn[-1] == "\r\x1b[K"


@pytest.mark.parametrize(
    ("done", "total", "seconds", "expected"),
    [
        (500_000_000, 2_000_000_000, 2.0, "scan [######..................] 500.0 MB of 2.0 GB, 25%, 250.0 MB/s"),
        (500, None, 1.0, "scan 500 bytes, 500 bytes/s"),
        (30, 20, 1.0, "scan [########################] 30 bytes of 20 bytes, 100%, 30 bytes/s"),
        (0, 0, 0.0, "scan 0 bytes"),
    ],
)
def test_the_progress_text(done: int, total: int | None, seconds: float, expected: str) -> None:
    """It has bytes, share and rate, also if more was done than expected."""
    assert progress.format_progress("scan", done, total, seconds) == expected


@pytest.mark.parametrize(
    ("stream", "quiet", "shown"),
    [(Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False), (None, False, False)],
)
def test_the_bar_needs_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None, quiet: bool, shown: bool
) -> None:
    """There is no bar in a pipe or file, with --quiet or without standard error."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress_bar(quiet) as callback:
        assert (callback is not None) is shown
