"""Long work in Python by several processes, forked so that they have all that this one has; only what they find is sent back."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_TURNS = 16  # pieces of work for each process, so that long ones even out
_work: Callable[[int], Any] = int


def each(work: Callable[[int], T], count: int, processes: int) -> Iterator[T]:
    """`work(0)`, `work(1)` … `work(count - 1)`, in this order. What it gives must be picklable; what it raises is raised here.

    One process does it alone where others cannot be forked, or not safely beside threads; it goes on where one of them dies.
    """
    done = 0
    if processes > 1 and count > 1 and sys.platform == "linux" and threading.active_count() == 1:
        for found in _forked(work, count, min(processes, count)):
            yield found
            done += 1
    yield from map(work, range(done, count))


def _forked(work: Callable[[int], T], count: int, processes: int) -> Iterator[T]:
    """As many of the results as there are until a process dies."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    global _work
    _work = work  # forked with the rest: nothing of it is pickled
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), initializer=_deaf)
    try:
        yield from pool.map(_call, range(count), chunksize=max(1, count // (processes * _TURNS)))
    except (BrokenProcessPool, BlockingIOError):  # killed, such as for want of memory; no more processes allowed
        return
    finally:
        for child in multiprocessing.active_children():  # all is told, or nobody listens any more
            child.kill()
        pool.shutdown(cancel_futures=True)


def _deaf() -> None:
    """Ctrl-C is for the process that forked this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _call(number: int) -> Any:
    return _work(number)
