"""Who reads which stretch: in this process, or (where it is worth it) in several, for picking lines apart holds the interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from triage.ranks import cuts
from triage.ranks.envelopes import CRI
from triage.ranks.identity import JobMap
from triage.ranks.splitting.layout import Layout
from triage.ranks.splitting.opened import Kind
from triage.ranks.splitting.parts import Parts
from triage.ranks.splitting.route import Key
from triage.ranks.splitting.stretch import LONGEST_LINE, Plan, Tally, split

Advance = Callable[[int], None]
_POLL_SECONDS = 0.1
_COUNT = 8
_MOST_MOVES = 64


@dataclass(frozen=True, slots=True)
class Task:
    """A stretch of a source: `size` bytes at `offset` of `path`, whole lines."""

    source: str
    path: str
    offset: int
    size_or_none: int | None
    layout: Layout
    whole: Key | None = None
    opened: Kind = ""

    @property
    def size(self) -> int:
        return self.size_or_none or 0


@dataclass(frozen=True, slots=True)
class Job:
    """What all stretches share."""

    parts: Path
    map: JobMap
    keep_prefix: bool
    ranks: frozenset[int] | None

    def wanted(self, key: Key) -> bool:
        """Is the writer wanted, as far as is known before all is read?"""
        if self.ranks is None:
            return True
        return key.rank in self.ranks if key.rank is not None else key.local_rank is not None or key.pid is not None


def stretches(source: str, path: str, size: int, count: int, layout: Layout, whole: Key | None) -> list[Task]:
    """The source in at most `count` stretches of whole lines."""
    cuts = [0]
    with open(path, "rb") as file:
        for number in range(1, count):
            at = max(cuts[-1], size * number // count)
            file.seek(at)
            data = file.readline(LONGEST_LINE)
            while (piece := CRI.match(data[data.rfind(b"\n", 0, -1) + 1 :])) is not None and piece[2] == b"P":
                data += file.readline(LONGEST_LINE)  # a line in pieces is not parted
            data += _unparted(file, at + len(data), layout) if layout.cut else b""
            if data.endswith(b"\n") and at + len(data) < size:
                cuts.append(at + len(data))
    return [Task(source, path, start, stop - start, layout, whole) for start, stop in zip(cuts, [*cuts[1:], size], strict=True)]


def _unparted(file: BinaryIO, at: int, layout: Layout) -> bytes:
    """What else belongs before a cut at `at`, so that no line is parted that a launcher cut. Few lines are that long."""
    data = b""
    for _ in range(_MOST_MOVES):
        place = at + len(data)
        start = max(0, place - cuts.REACH)
        file.seek(start)
        more = start + cuts.quiet_from(file.read(place - start), layout.table) - place
        file.seek(place)
        if more <= 0:
            break
        data += file.read(more) + file.readline(LONGEST_LINE)
    return data


def run(tasks: Sequence[Task], job: Job, workers: int, advance: Advance) -> Iterator[tuple[Task, Tally]]:
    """All stretches, in the order given: shared out between this process and copies of it, where copies can be made."""
    numbered = list(enumerate(tasks))
    shares = _shares(numbered, workers if hasattr(os, "fork") and threading.active_count() == 1 else 1)
    children = [_Child(share, job) for share in shares[1:]]
    try:
        told: dict[int, Tally] = {}
        for number, task in shares[0]:
            told[number] = _one_file(number, task, job, lambda count: advance(count + sum(child.progress() for child in children)))
        for child in children:
            while not child.over():
                advance(child.progress())
            found = child.result()
            for number, task in child.share:
                told[number] = found[number] if found is not None else _again(number, task, job)
            advance(child.progress())
    finally:
        for child in children:
            child.close()
    for number, task in numbered:
        yield task, told[number]


def _shares(numbered: list[tuple[int, Task]], workers: int) -> list[list[tuple[int, Task]]]:
    """About as many bytes for each worker, neighbours together; the first share is never empty."""
    total = sum(task.size for _, task in numbered)
    shares: list[list[tuple[int, Task]]] = [[] for _ in range(max(1, workers))]
    before = 0
    for number, task in numbered:
        shares[min(len(shares) - 1, before * len(shares) // max(1, total))].append((number, task))
        before += task.size
    return [shares[0], *(share for share in shares[1:] if share)]


class _Child:
    """A copy of this process that does a share, tells how far it is through a pipe, and leaves the result in a file."""

    def __init__(self, share: list[tuple[int, Task]], job: Job) -> None:
        self.share = share
        self._file = job.parts / f"tally{share[0][0]}.json"
        self._status: int | None = None
        self._read, write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._work(job, write)
        os.close(write)
        os.set_blocking(self._read, False)

    def _work(self, job: Job, write: int) -> NoReturn:
        status = 1
        try:
            os.set_blocking(write, False)

            def advance(count: int) -> None:
                with contextlib.suppress(OSError):  # a full pipe: it will hear of the next
                    os.write(write, count.to_bytes(_COUNT, "little"))

            tallies = {number: _one_file(number, task, job, advance).to_json() for number, task in self.share}
            self._file.write_text(json.dumps(tallies), "utf-8")
            status = 0
        finally:
            os._exit(status)

    def progress(self) -> int:
        """Bytes done since the last question."""
        try:
            data = os.read(self._read, 1 << 14)
        except BlockingIOError:
            return 0
        return sum(int.from_bytes(data[at : at + _COUNT], "little") for at in range(0, len(data) - _COUNT + 1, _COUNT))

    def over(self) -> bool:
        """Waits for a moment."""
        if self._status is None:
            select.select([self._read], [], [], _POLL_SECONDS)
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def result(self) -> dict[int, Tally] | None:
        """None when it died."""
        if self._status != 0:
            return None
        told = json.loads(self._file.read_text("utf-8"))
        return {int(number): Tally.from_json(tally) for number, tally in told.items()}

    def close(self) -> None:
        os.close(self._read)
        if self._status is None:
            os.kill(self._pid, signal.SIGTERM)
            os.waitpid(self._pid, 0)


def _again(number: int, task: Task, job: Job) -> Tally:
    """A stretch whose worker died (for want of memory, mostly)."""
    for part in job.parts.glob(f"s{number}.*"):
        part.unlink()
    return _one_file(number, task, job, lambda count: None)


def one(task: Task, stream: BinaryIO, job: Job, number: int, advance: Advance) -> Tally:
    """A stretch whose bytes come from `stream`."""
    parts = Parts(job.parts, f"s{number}")
    try:
        return split(
            task.source,
            stream,
            task.size_or_none,
            Plan(task.layout, job.map, parts, job.keep_prefix, job.wanted, task.whole, task.opened),
            advance,
        )
    finally:
        parts.close()


def _one_file(number: int, task: Task, job: Job, advance: Advance) -> Tally:
    with open(task.path, "rb", buffering=0) as file:
        os.lseek(file.fileno(), task.offset, os.SEEK_SET)
        return one(task, file, job, number, advance)
