"""Share the segments of all sources out among processes: splitting lines holds the interpreter lock."""

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

import msgspec

from triage.base import forks
from triage.base.shared_types import share_type
from triage.ranks.identity import JobMap
from triage.ranks.log_wrappers import CRI_PREFIX
from triage.records import line_cuts
from triage.split.launcher_layout import LauncherLayout
from triage.split.part_files import PartFiles
from triage.split.router import WriterKey
from triage.split.segment import LONGEST_LINE, SegmentPlan, Tally, split_segment
from triage.split.unwrapped_stream import Format

Advance = Callable[[int], None]
_PIPE_READ = 1 << 16
_MOST_EXTENSIONS = 64


@dataclass(frozen=True, slots=True)
class Task:
    """One segment of a source: whole lines, `limit` bytes at `offset` of `path`. Without a limit: all of a stream."""

    source: str
    path: str
    offset: int
    limit: int | None
    layout: LauncherLayout
    sole_writer: WriterKey | None = None
    format: Format = ""

    @property
    def size(self) -> int:
        """The bytes of the segment; 0 where they are unknown."""
        return self.limit or 0


@dataclass(frozen=True, slots=True)
class Job:
    """What all segments share: the directory of the parts, the job map, and the options."""

    parts: Path
    map: JobMap
    keep_prefix: bool
    ranks: frozenset[int] | None

    def is_wanted(self, key: WriterKey) -> bool:
        """May the writer be one of the wanted ranks, as far as is known before all is read?"""
        if self.ranks is None:
            return True
        return key.rank in self.ranks if key.rank is not None else key.local_rank is not None or key.pid is not None


def cut_segments(
    source: str, path: str, size: int, count: int, layout: LauncherLayout, sole_writer: WriterKey | None
) -> list[Task]:
    """Cut a source in at most `count` segments of whole lines."""
    starts = [0]
    with open(path, "rb") as file:
        for number in range(1, count):
            at = max(starts[-1], size * number // count)
            file.seek(at)
            data = file.readline(LONGEST_LINE)
            while (piece := CRI_PREFIX.match(data[data.rfind(b"\n", 0, -1) + 1 :])) is not None and piece[2] == b"P":
                data += file.readline(LONGEST_LINE)  # keep the pieces of a line together
            data += _rest_of_cut_line(file, at + len(data), layout) if layout.cuts_lines else b""
            if data.endswith(b"\n") and at + len(data) < size:
                starts.append(at + len(data))
    return [
        Task(source, path, start, stop - start, layout, sole_writer)
        for start, stop in zip(starts, [*starts[1:], size], strict=True)
    ]


def _rest_of_cut_line(file: BinaryIO, at: int, layout: LauncherLayout) -> bytes:
    """Read on from `at` until no line that a launcher cut can continue. Few lines are that long."""
    data = b""
    for _ in range(_MOST_EXTENSIONS):
        place = at + len(data)
        start = max(0, place - line_cuts.REACH)
        file.seek(start)
        more = start + line_cuts.open_until(file.read(place - start), layout.table) - place
        file.seek(place)
        if more <= 0:
            break
        data += file.read(more) + file.readline(LONGEST_LINE)
    return data


def run(tasks: Sequence[Task], job: Job, workers: int, advance: Advance) -> Iterator[tuple[Task, Tally]]:
    """Split all segments, in this process and in forks of it. Yields them in their order."""
    numbered = list(enumerate(tasks))
    own_share, *other_shares = _shares(numbered, forks.usable_processes(workers))
    tallies: dict[int, Tally] = {}
    with forks.forked(partial(_work, share, job) for share in other_shares) as pipes:
        workers_running = [_Worker(pipe, tallies) for pipe in pipes]
        for number, task in own_share:
            tallies[number] = _split_file(
                number, task, job, lambda count: advance(count + _receive_all(workers_running, 0))
            )
        while not all(worker.has_ended for worker in workers_running):
            advance(_receive_all(workers_running, None))
    for number, task in numbered:
        yield task, tallies[number] if number in tallies else _split_again(number, task, job)


def _shares(numbered: list[tuple[int, Task]], workers: int) -> list[list[tuple[int, Task]]]:
    """Divide the tasks in shares of about equal bytes, neighbours together. The first share is never empty."""
    total = sum(task.size for _, task in numbered)
    shares: list[list[tuple[int, Task]]] = [[] for _ in range(max(1, workers))]
    before = 0
    for number, task in numbered:
        shares[min(len(shares) - 1, before * len(shares) // max(1, total))].append((number, task))
        before += task.size
    return [shares[0], *(share for share in shares[1:] if share)]


def _work(share: list[tuple[int, Task]], job: Job, pipe: BufferedWriter) -> None:
    """Do a share in a fork. Send lines of JSON: numbers of bytes done, and [segment number, tally]."""

    def send(message: object) -> None:
        pipe.write(json.dumps(message).encode() + b"\n")
        pipe.flush()

    for number, task in share:
        send([number, msgspec.to_builtins(_split_file(number, task, job, send))])


@dataclass
class _Worker:
    """A fork that does a share, as its parent sees it."""

    pipe: BufferedReader
    tallies: dict[int, Tally]
    has_ended: bool = False
    _rest: bytes = b""

    def receive(self) -> int:
        """Wait for messages, store their tallies, and return the bytes done."""
        data = self.pipe.read1(_PIPE_READ)
        self.has_ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        done = 0
        for message in map(json.loads, lines):
            if isinstance(message, int):
                done += message
            else:
                self.tallies[message[0]] = msgspec.convert(message[1], share_type(Tally))
        return done


def _receive_all(workers: Sequence[_Worker], seconds: float | None) -> int:
    """Return the bytes that workers report as done; wait at most `seconds` (None: no limit) for the first report."""
    by_pipe = {worker.pipe: worker for worker in workers if not worker.has_ended}
    if not by_pipe:
        return 0
    return sum(by_pipe[pipe].receive() for pipe in select.select(list(by_pipe), [], [], seconds)[0])


def _split_again(number: int, task: Task, job: Job) -> Tally:
    """Split a segment whose worker died, mostly for lack of memory."""
    for part in job.parts.glob(f"s{number}.*"):
        part.unlink()
    return _split_file(number, task, job, lambda count: None)


def split_stream(task: Task, stream: BinaryIO, job: Job, number: int, advance: Advance) -> Tally:
    """Split a segment whose bytes come from `stream`."""
    parts = PartFiles(job.parts, f"s{number}")
    plan = SegmentPlan(task.layout, job.map, parts, job.keep_prefix, job.is_wanted, task.sole_writer, task.format)
    try:
        return split_segment(task.source, stream, task.limit, plan, advance)
    finally:
        parts.close()


def _split_file(number: int, task: Task, job: Job, advance: Advance) -> Tally:
    with open(task.path, "rb", buffering=0) as file:
        os.lseek(file.fileno(), task.offset, os.SEEK_SET)
        return split_stream(task, file, job, number, advance)
