"""Options of a diagnosis, and reports of its progress."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from triage.base.addresses import READERS, is_address
from triage.base.errors import OptionError
from triage.base.forks import LocalProcesses, WorkSharer
from triage.base.lazy_dataclass import dataclass

ENGINES = ("auto", "hyperscan", "re2")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a diagnosis.

    `workers` (default: the number of cores), `chunk_bytes` and `engine` of the scan do not change the answer.
    `fork` allows forked processes; the program must have no other threads. `settings` is a file with rules for the
    environment, which override the shipped ones (triage/compare/settings.txt). `addresses` allows paths that are
    addresses of object stores and servers; the caller has checked them.
    `labels` are facts of the job that the user gave: name to values.
    `changed_since`: local files that did not change since this time (seconds since the epoch) are not read.
    `reuse`: read only what is new in files that an earlier run has read, see pipeline/earlier_readings.py.
    `cluster` does the long work on other machines, such as the workers of Dask; they open the same paths and addresses.
    """

    catalogs: tuple[Path, ...] = ()
    workers: int | None = None
    chunk_bytes: int = 1 << 18
    engine: str = "auto"
    settings: Path | None = None
    fork: bool = False
    addresses: bool = False
    changed_since: float = 0.0
    reuse: bool = False
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cluster: WorkSharer | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise OptionError(f"there is no scan engine {self.engine!r}", hint="choose one of " + ", ".join(ENGINES))

    @property
    def cores(self) -> int:
        """Return how many threads or processes may work at a time."""
        return max(1, self.workers or os.cpu_count() or 1)

    def for_paths(self, paths: Sequence[str]) -> Options:
        """Return the options to read these paths: for addresses with more threads, beside which nothing may fork."""
        return replace(self, fork=False, workers=max(self.cores, READERS)) if any(map(is_address, paths)) else self

    @property
    def processes(self) -> int:
        """Return how many processes may share long work."""
        return self.cores if self.fork else 1

    @property
    def sharer(self) -> WorkSharer:
        """Return who shares long work."""
        return self.cluster or LocalProcesses(self.processes)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of one stage: `done` of `total` bytes; None where the total is not known."""

    stage: str
    done: int
    total: int | None


Report = Callable[[Progress], None]


def advance(progress: Report | None, total: int, stage: str = "scan") -> Callable[[int], None]:
    """Return a function that counts bytes of a stage, from any thread, and reports the progress."""
    done = 0
    lock = threading.Lock()

    def add(count: int) -> None:
        nonlocal done
        with lock:
            done += count
            if progress is not None:
                progress(Progress(stage, done, total))

    return add
