"""Long work in Python by several processes, forked so that they have all that this one has; only what they find is sent back, as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

T = TypeVar("T")


def each(work: Callable[[int], T], count: int, processes: int, pack: Callable[[T], Any], unpack: Callable[[Any], T]) -> Iterator[T]:
    """`work(0)`, `work(1)` … `work(count - 1)`, in this order; `pack` makes of a result what JSON can carry, `unpack` the result again.

    One process does it alone where others cannot be forked, or not safely beside threads. It does itself what one leaves undone that dies
    or meets an error, which so is raised here.
    """
    if processes < 2 or count < 2 or sys.platform != "linux" or threading.active_count() > 1:
        yield from map(work, range(count))
        return
    children: list[_Child] = []
    try:
        with _uninterrupted():  # else an interrupt could come before a child is known
            for first in range(min(processes, count)):
                children.append(_fork(lambda number: pack(work(number)), range(first, count, min(processes, count))))
        for number in range(count):
            line = children[number % len(children)].pipe.readline()
            yield unpack(json.loads(line)) if line.endswith("\n") else work(number)
    finally:
        for child in children:
            child.end()


@dataclass
class _Child:
    """A copy of this process. The pipe holds what it has found and nobody asked for yet; where that is much, it waits."""

    pid: int
    pipe: TextIO

    def end(self) -> None:
        """All is told, or nobody listens any more."""
        self.pipe.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fork(work: Callable[[int], Any], numbers: range) -> _Child:
    """A child that does these. Ctrl-C, which all processes of a terminal get, is for this one alone."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        _be_child(work, numbers, reading, writing)
    os.close(writing)
    return _Child(pid, os.fdopen(reading, encoding="ascii"))


def _be_child(work: Callable[[int], Any], numbers: range, reading: int, writing: int) -> None:
    """Never returns, and leaves what this process would do at its end undone. After an error the parent, which waits, does the rest."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.close(reading)
        with os.fdopen(writing, "w", encoding="ascii") as pipe:
            for number in numbers:
                pipe.write(json.dumps(work(number)) + "\n")
                pipe.flush()
    finally:
        os._exit(0)
