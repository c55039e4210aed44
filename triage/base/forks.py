"""Share long Python work among forked processes: they inherit all data, and send results back as JSON through pipes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader, BufferedWriter
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[BufferedWriter], None]


def map_forked(
    work: Callable[[int], T], count: int, processes: int, pack: Callable[[T], Any], unpack: Callable[[Any], T]
) -> Iterator[T]:
    """Yield `work(0)`, `work(1)` … `work(count - 1)` in this order.

    `pack` turns a result into what JSON can carry, `unpack` turns it back. The parent does what a child leaves undone
    because it died or met an error, so the parent raises the error.
    """
    children = min(usable_processes(processes), count)
    if children < 2:
        yield from map(work, range(count))
        return
    works = [
        partial(_write_results, lambda number: pack(work(number)), range(n, count, children)) for n in range(children)
    ]
    with forked(works) as pipes:
        for number in range(count):
            line = pipes[number % children].readline()
            yield unpack(_load(line)) if line.endswith(b"\n") else work(number)


def _load(line: bytes) -> Any:
    """Return what a line of JSON holds. Equal strings are one object: facts of a file repeat their texts and names."""
    shared: dict[str, str] = {}

    def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: shared.setdefault(value, value) if type(value) is str else value for key, value in pairs}

    return json.loads(line, object_pairs_hook=make_object)


def usable_processes(processes: int) -> int:
    """Return the number of processes, or 1 where forking is impossible, or unsafe because of other threads."""
    return processes if sys.platform == "linux" and threading.active_count() == 1 else 1


@contextmanager
def forked(works: Iterable[Work]) -> Iterator[list[BufferedReader]]:
    """Fork one child for each work and give the pipes that they write to; no child is left at the end.

    A pipe that ends too soon means that its child died, met an error or could not be forked.
    """
    children: list[tuple[int | None, BufferedReader]] = []
    try:
        with _interrupts_blocked():  # else an interrupt could come before a child is known
            for work in works:
                children.append(_fork(work))
        yield [pipe for _, pipe in children]
    finally:
        for pid, pipe in children:
            pipe.close()
            # Where nobody waits for children (SIGCHLD is ignored), the child may be gone.
            with suppress(ProcessLookupError, ChildProcessError):
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fork(work: Work) -> tuple[int | None, BufferedReader]:
    read_end, write_end = os.pipe()
    try:
        pid = os.fork()
    except OSError:  # no memory or no process ids left: as if the child had died
        pid = None
    if pid == 0:
        _run_child(work, read_end, write_end)
    os.close(write_end)
    return pid, os.fdopen(read_end, "rb")


def _run_child(work: Work, read_end: int, write_end: int) -> None:
    """Do the work and exit without the parent's clean-up, with Ctrl-C still blocked."""
    try:
        os.close(read_end)
        with os.fdopen(write_end, "wb") as pipe:
            work(pipe)
    finally:
        os._exit(0)


def _write_results(work: Callable[[int], Any], numbers: range, pipe: BufferedWriter) -> None:
    for number in numbers:
        pipe.write(json.dumps(work(number)).encode() + b"\n")
        pipe.flush()
