"""Draw progress on standard error: only on a terminal, and only for work that takes noticeable time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from triage.cli.streams import shows_progress, write_stderr

if TYPE_CHECKING:
    from triage.pipeline import Progress

QUIET_SECONDS = 0.5
STEP_SECONDS = 0.1
CELLS = 24


class Bar:
    """A progress bar for the pipeline: drawn at most ten times a second, after half a second."""

    def __init__(
        self, write: Callable[[str], None] = write_stderr, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._started_at = clock()
        self._drawn_at = self._started_at + QUIET_SECONDS - STEP_SECONDS
        self._is_visible = False

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now - self._drawn_at < STEP_SECONDS:
            return
        self._drawn_at = now
        self._is_visible = True
        text = format_progress(progress.stage, progress.done, progress.total, now - self._started_at)
        self._write(f"\r{text}\x1b[K")

    def close(self) -> None:
        """Erase the bar."""
        if self._is_visible:
            self._write("\r\x1b[K")
            self._is_visible = False


class CopyProgress:
    """The progress of a copy of a store: one line, drawn only on a terminal."""

    def __init__(
        self, write: Callable[[str], None] = write_stderr, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._is_shown = shows_progress(quiet=False)
        self._drawn_at = 0.0

    def __call__(self, table: str, done: int, total: int) -> None:
        """Draw the line, at most ten times a second."""
        now = self._clock()
        if self._is_shown and now - self._drawn_at >= STEP_SECONDS:
            self._drawn_at = now
            self._write(f"\r{table}: {done} of {total} rows\x1b[K")

    def close(self) -> None:
        """Erase the line."""
        if self._drawn_at:
            self._write("\r\x1b[K")


def format_progress(stage: str, done: int, total: int | None, seconds: float) -> str:
    """Return `scan [######......] 1.2 GB of 4.8 GB, 25%, 410.0 MB/s`; without a total, bytes and rate."""
    from triage.render.phrases import format_bytes

    rate = f", {format_bytes(round(done / seconds))}/s" if seconds > 0 else ""
    if not total:
        return f"{stage} {format_bytes(done)}{rate}"
    share = min(max(done / total, 0.0), 1.0)
    filled = int(share * CELLS)
    bar = "#" * filled + "." * (CELLS - filled)
    return f"{stage} [{bar}] {format_bytes(done)} of {format_bytes(total)}, {share:.0%}{rate}"


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a progress callback for the pipeline, or None without a terminal or with --quiet."""
    if not shows_progress(quiet):
        yield None
        return
    bar = Bar()
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def status_line(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that overwrites one line on standard error; it does nothing without a terminal."""
    if not shows_progress(quiet):
        yield lambda _: None
        return
    try:
        yield lambda text: write_stderr(f"\r{text}\x1b[K\r")
    finally:
        write_stderr("\r\x1b[K")


@contextmanager
def counter(quiet: bool, noun: str, *, every: int = 1) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback (done, total) that shows `job 3 of 50`, or None without a terminal or with --quiet."""
    if not shows_progress(quiet):
        yield None
        return

    def show(done: int, total: int) -> None:
        if done % every == 0:
            write_stderr(f"\r{noun} {done + 1} of {total}\x1b[K")

    try:
        yield show
    finally:
        write_stderr("\r\x1b[K")


def as_byte_callback(stage: str, callback: Callable[[Progress], None] | None) -> Callable[[int, int], None] | None:
    """Return a progress callback as a function of (bytes done, bytes in total)."""
    if callback is None:
        return None

    def report(done: int, total: int) -> None:
        from triage.pipeline import Progress

        callback(Progress(stage, done, total))

    return report


def ignore(done: int, total: int) -> None:
    """Take progress that nobody watches."""
