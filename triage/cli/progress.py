"""A bar on standard error while bytes are read: only for a person, only when it takes long enough to wonder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from triage.cli.streams import is_terminal, to_stderr

if TYPE_CHECKING:
    from triage.pipeline import Progress

QUIET_SECONDS = 0.5
STEP_SECONDS = 0.1
CELLS = 24


class Bar:
    """Takes the pipeline's progress and draws at most ten times a second, from half a second on."""

    def __init__(self, write: Callable[[str], None] = to_stderr, clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._started = clock()
        self._drawn = self._started + QUIET_SECONDS - STEP_SECONDS
        self._visible = False

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now - self._drawn < STEP_SECONDS:
            return
        self._drawn = now
        self._visible = True
        self._write("\r" + line(progress.stage, progress.done, progress.total, now - self._started) + "\x1b[K")

    def close(self) -> None:
        """Leave the line as if it had never been there."""
        if self._visible:
            self._write("\r\x1b[K")
            self._visible = False


def line(stage: str, done: int, total: int | None, seconds: float) -> str:
    """`scan [######......] 1.2 GB of 4.8 GB, 25%, 410.0 MB/s`; without a total, only what is done and the rate."""
    from triage.render.words import size

    rate = f"{size(round(done / seconds))}/s" if seconds > 0 else ""
    if not total:
        return ", ".join(part for part in (f"{stage} {size(done)}", rate) if part)
    share = min(max(done / total, 0.0), 1.0)
    filled = int(share * CELLS)
    bar = "#" * filled + "." * (CELLS - filled)
    return ", ".join(part for part in (f"{stage} [{bar}] {size(done)} of {size(total)}", f"{share:.0%}", rate) if part)


@contextmanager
def shown(quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """The callback for the pipeline; None when nobody looks or quiet was asked for."""
    if quiet or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def status(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line on standard error that is written over again and again, for a person only; it is gone when something else
    is printed.
    """
    if quiet or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    try:
        yield lambda text: to_stderr(f"\r{text}\x1b[K\r")
    finally:
        to_stderr("\r\x1b[K")


def counted(stage: str, callback: Callable[[Progress], None] | None) -> Callable[[int, int], None] | None:
    """The callback as one that takes the bytes done and the bytes in all."""
    if callback is None:
        return None

    def report(done: int, total: int) -> None:
        from triage.pipeline import Progress

        callback(Progress(stage, done, total))

    return report
