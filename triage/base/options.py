"""What a caller may choose, and how it is told how far the work is."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import OptionError

ENGINES = ("auto", "hyperscan", "re2")


@dataclass(frozen=True, slots=True)
class Options:
    """`workers` defaults to the number of cores; `engine` chooses the scan's automaton. Neither changes the answer.

    `fork`: the program has no other threads, so that processes may be forked for long work.
    `settings` is a file with rules for the environment, laid over the shipped ones (triage/compare/settings.txt).
    """

    catalogs: tuple[Path, ...] = ()
    workers: int | None = None
    chunk_bytes: int = 1 << 18
    engine: str = "auto"
    settings: Path | None = None
    fork: bool = False

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise OptionError(f"no scan engine is called {self.engine!r}", hint="one of " + ", ".join(ENGINES))

    @property
    def cores(self) -> int:
        """How many threads or processes work at a time."""
        return max(1, self.workers or os.cpu_count() or 1)

    @property
    def processes(self) -> int:
        """How many processes may share what takes long."""
        return self.cores if self.fork else 1


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` bytes of a stage."""

    stage: str
    done: int
    total: int | None


Report = Callable[[Progress], None]


def advance(progress: Report | None, total: int, stage: str = "scan") -> Callable[[int], None]:
    """A counter of bytes for the threads of a stage."""
    done = 0
    lock = threading.Lock()

    def add(count: int) -> None:
        nonlocal done
        with lock:
            done += count
            if progress is not None:
                progress(Progress(stage, done, total))

    return add
