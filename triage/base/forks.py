"""Share long work among forked processes, threads, or other machines (executor_work.py).

Processes inherit all data, and send results back through pipes (packed_results.py), each behind its length.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader, BufferedWriter
from typing import Any, Generic, Protocol, TypeVar

from triage.base import compiled_patterns
from triage.base.lazy_dataclass import dataclass

T = TypeVar("T")
Work = Callable[[BufferedWriter], None]
_LENGTH = struct.Struct("<Q")


def _unchanged(result: Any) -> Any:
    return result


@dataclass(frozen=True, slots=True)
class RemoteUnits:
    """How another machine does the units of some work: `function(shared, units[n])` returns what `pack` would.

    `function` is at the top of a module of triage; what it gets and returns can be carried by JSON. `sizes` are the
    bytes that each unit reads: small units travel together.
    """

    function: Callable[[Any, Any], Any]
    shared: Any
    units: Sequence[Any]
    sizes: Sequence[int]


@dataclass(frozen=True, slots=True)
class SharedWork(Generic[T]):
    """Work in `count` units that do not depend on each other: `do(number)` does one.

    `pack` turns a result into what `pack_result` takes, `unpack` turns it back. `describe` tells how another machine
    does the units. Threads need none of them.
    """

    do: Callable[[int], T]
    count: int
    pack: Callable[[T], Any] = _unchanged
    unpack: Callable[[Any], T] = _unchanged
    describe: Callable[[], RemoteUnits] | None = None


class WorkSharer(Protocol):
    """Who does the units of work: `LocalProcesses`, `LocalThreads`, or `ExecutorWorkers` of executor_work.py."""

    @property
    def is_remote(self) -> bool:
        """Whether other machines may do the units: then each is described, and a small amount of work counts too."""

    def map(self, work: SharedWork[T]) -> Iterator[T]:
        """Yield the results of all units in their order, whoever did them."""


@dataclass(frozen=True, slots=True)
class LocalProcesses:
    """Forked processes of this machine; they inherit all data. One process is this one."""

    processes: int = 1
    is_remote = False

    def map(self, work: SharedWork[T]) -> Iterator[T]:
        """Yield the results in order; this process does what a child leaves undone."""
        return map_forked(work.do, work.count, self.processes, work.pack, work.unpack)


class LocalThreads:
    """Threads of this process, one of which is the caller's. What they do must allow it."""

    is_remote = False

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def map(self, work: SharedWork[T]) -> Iterator[T]:
        """Yield the results in order, once all are there. Raises the first error."""
        numbers = iter(range(work.count))
        results: dict[int, T] = {}
        errors: list[BaseException] = []
        lock = threading.Lock()

        def run() -> None:
            try:
                while not errors:
                    with lock:
                        number = next(numbers, None)
                    if number is None:
                        break
                    results[number] = work.do(number)
            except BaseException as error:  # an error of a thread must not be lost; it is raised again below
                errors.append(error)

        others = [threading.Thread(target=run, daemon=True) for _ in range(self._threads - 1)]
        for thread in others:
            thread.start()
        run()
        for thread in others:
            thread.join()
        if errors:
            raise errors[0]
        for number in range(work.count):
            yield results.pop(number)


def map_forked(
    work: Callable[[int], T], count: int, processes: int, pack: Callable[[T], Any], unpack: Callable[[Any], T]
) -> Iterator[T]:
    """Yield `work(0)`, `work(1)` … `work(count - 1)` in this order.

    `pack` turns a result into what `pack_result` takes, `unpack` turns it back. The parent does what a child leaves
    undone because it died or met an error, so the parent raises the error.
    """
    children = min(usable_processes(processes), count)
    if children < 2:
        yield from map(work, range(count))
        return
    from triage.base.packed_results import unpack_result

    works = [
        partial(_write_results, lambda number: pack(work(number)), range(n, count, children)) for n in range(children)
    ]
    with forked(works) as pipes:
        for number in range(count):
            packed = _read_result(pipes[number % children])
            yield work(number) if packed is None else unpack(unpack_result(packed))
        for pipe in pipes:
            compiled = _read_result(pipe)
            compiled_patterns.add_missing(unpack_result(compiled) if compiled is not None else ())


def _read_result(pipe: BufferedReader) -> bytes | None:
    """Return the next result of a child; None if the child ended before it was complete."""
    length = pipe.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return None
    packed = pipe.read(_LENGTH.unpack(length)[0])
    return packed if len(packed) == _LENGTH.unpack(length)[0] else None


def usable_processes(processes: int) -> int:
    """Return the number of processes, or 1 where forking is impossible, or unsafe because of other threads."""
    return processes if sys.platform == "linux" and threading.active_count() == 1 else 1


@contextmanager
def forked(works: Iterable[Work]) -> Iterator[list[BufferedReader]]:
    """Fork one child for each work and give the pipes that they write to; no child is left at the end.

    A pipe that ends too soon means that its child died, met an error or could not be forked.
    """
    children: list[tuple[int | None, BufferedReader]] = []
    _give_back_freed_memory()
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


def _give_back_freed_memory() -> None:
    """Give freed memory back to the system, else each child holds a part of it. Only the C library of Linux can."""
    import ctypes  # slow to import, and small jobs do not fork

    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


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
    from triage.base.packed_results import pack_result

    for number in numbers:
        _write_result(pack_result(work(number)), pipe)
    _write_result(pack_result(compiled_patterns.list_missing()), pipe)  # the parent stores them


def _write_result(packed: bytes, pipe: BufferedWriter) -> None:
    pipe.write(_LENGTH.pack(len(packed)) + packed)
    pipe.flush()
