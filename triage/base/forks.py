"""Long work in Python by several processes, forked so that they have all that this one has; only what they find is sent
back, through pipes.
"""

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


def each(
    work: Callable[[int], T], count: int, processes: int, pack: Callable[[T], Any], unpack: Callable[[Any], T]
) -> Iterator[T]:
    """`work(0)`, `work(1)` … `work(count - 1)`, in this order; `pack` makes of a result what JSON can carry, `unpack`
    the result again.

    This process does itself what another leaves undone that dies or meets an error, which so is raised here.
    """
    among = min(possible(processes), count)
    if among < 2:
        yield from map(work, range(count))
        return
    with copies(
        partial(_tell, lambda number: pack(work(number)), range(first, count, among)) for first in range(among)
    ) as pipes:
        for number in range(count):
            line = pipes[number % among].readline()
            yield unpack(json.loads(line)) if line.endswith(b"\n") else work(number)


def possible(processes: int) -> int:
    """So many processes, or one where others cannot be forked, or not safely beside threads."""
    return processes if sys.platform == "linux" and threading.active_count() == 1 else 1


@contextmanager
def copies(works: Iterable[Work]) -> Iterator[list[BufferedReader]]:
    """Copies of this process that do one of these each, and write what they find to the pipes whose other ends are
    given here.

    Where a pipe ends too soon its copy died, met an error or could not be made: the work is left to this process. At
    the end none is left.
    """
    children: list[tuple[int | None, BufferedReader]] = []
    try:
        with _uninterrupted():  # else an interrupt could come before a child is known
            for work in works:
                children.append(_fork(work))
        yield [pipe for _, pipe in children]
    finally:
        for pid, pipe in children:
            pipe.close()
            with suppress(
                ProcessLookupError, ChildProcessError
            ):  # where nobody waits for children (SIGCHLD is ignored), it may be gone
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fork(work: Work) -> tuple[int | None, BufferedReader]:
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError:  # for want of memory or of numbers for processes: as if it had died
        pid = None
    if pid == 0:
        _be_copy(work, reading, writing)
    os.close(writing)
    return pid, os.fdopen(reading, "rb")


def _be_copy(work: Work, reading: int, writing: int) -> None:
    """Never returns, and leaves what this process would do at its end undone. Ctrl-C, which all processes of a terminal
    get, stays blocked.
    """
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            work(pipe)
    finally:
        os._exit(0)


def _tell(work: Callable[[int], Any], numbers: range, pipe: BufferedWriter) -> None:
    for number in numbers:
        pipe.write(json.dumps(work(number)).encode() + b"\n")
        pipe.flush()
