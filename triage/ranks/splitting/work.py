"""Who reads which stretch: in this process, or (where it is worth it) in several, for picking lines apart holds the
interpreter.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import BinaryIO

from triage.base import forks
from triage.ranks import cuts
from triage.ranks.envelopes import CRI
from triage.ranks.identity import JobMap
from triage.ranks.splitting.layout import Layout
from triage.ranks.splitting.opened import Kind
from triage.ranks.splitting.parts import Parts
from triage.ranks.splitting.route import Key
from triage.ranks.splitting.stretch import LONGEST_LINE, Plan, Tally, split

Advance = Callable[[int], None]
_HEARD = 1 << 16
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
    return [
        Task(source, path, start, stop - start, layout, whole)
        for start, stop in zip(cuts, [*cuts[1:], size], strict=True)
    ]


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
    mine, *others = _shares(numbered, forks.possible(workers))
    told: dict[int, Tally] = {}
    with forks.copies(partial(_tell, share, job) for share in others) as pipes:
        copies = [_Copy(pipe, told) for pipe in pipes]
        for number, task in mine:
            told[number] = _one_file(number, task, job, lambda count: advance(count + _heard(copies, 0)))
        while not all(copy.over for copy in copies):
            advance(_heard(copies, None))
    for number, task in numbered:
        yield task, told[number] if number in told else _again(number, task, job)


def _shares(numbered: list[tuple[int, Task]], workers: int) -> list[list[tuple[int, Task]]]:
    """About as many bytes for each worker, neighbours together; the first share is never empty."""
    total = sum(task.size for _, task in numbered)
    shares: list[list[tuple[int, Task]]] = [[] for _ in range(max(1, workers))]
    before = 0
    for number, task in numbered:
        shares[min(len(shares) - 1, before * len(shares) // max(1, total))].append((number, task))
        before += task.size
    return [shares[0], *(share for share in shares[1:] if share)]


def _tell(share: list[tuple[int, Task]], job: Job, pipe: BufferedWriter) -> None:
    """In a copy of this process: does a share, and tells in lines of JSON how many bytes are done, and each stretch's
    number and tally.
    """

    def say(what: object) -> None:
        pipe.write(json.dumps(what).encode() + b"\n")
        pipe.flush()

    for number, task in share:
        say([number, _one_file(number, task, job, say).to_json()])


@dataclass
class _Copy:
    """A copy of this process, as it is heard in this one."""

    pipe: BufferedReader
    told: dict[int, Tally]
    over: bool = False
    _rest: bytes = b""

    def hear(self) -> int:
        """Takes what it says, once there is something; gives how many bytes are done since the last time."""
        data = self.pipe.read1(_HEARD)
        self.over = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        done = 0
        for said in map(json.loads, lines):
            if isinstance(said, int):
                done += said
            else:
                self.told[said[0]] = Tally.from_json(said[1])
        return done


def _heard(copies: Sequence[_Copy], seconds: float | None) -> int:
    """How many bytes copies say to have done, waiting so long (None: as long as it takes) for the first that says
    something.
    """
    listening = {copy.pipe: copy for copy in copies if not copy.over}
    if not listening:
        return 0
    return sum(listening[pipe].hear() for pipe in select.select(list(listening), [], [], seconds)[0])


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
