"""Share work among other machines through an executor of the standard protocol, such as that of a Dask cluster.

What crosses is data: a function by its name, and bytes of JSON in both directions. A unit whose worker was lost, or
that could not be done there, is done here; so the answer is that of one machine, whatever happens to workers.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, wait
from functools import lru_cache, partial
from typing import Any, TypeVar

import triage
from triage.base.errors import OptionError
from triage.base.forks import SharedWork, load_shared_texts

T = TypeVar("T")
_BATCH_BYTES = 1 << 26
_BATCH_UNITS = 64
_AHEAD = 256
"""Batches that are given to the executor before the first of them is done."""
PATIENCE = 60.0
"""Seconds without any progress after which a batch is done here, as where no worker is left."""


_ONLY_HERE = "only here"


class VersionError(Exception):
    """A worker runs another version of triage."""


class SharedData:
    """What all units of some work have in common. Workers keep it, and what they build from it, between batches."""

    def __init__(self, value: Any) -> None:
        self.value = value


class ExecutorWorkers:
    """The workers behind an executor.

    `done` counts units, `redone` those that had to be done here instead, for `reason` the first of them.
    """

    is_remote = True

    def __init__(self, executor: Executor, patience: float | None = PATIENCE) -> None:
        self.executor = executor
        self.patience = patience
        self.done = self.redone = 0
        self.reason = ""

    def map(self, work: SharedWork[T]) -> Iterator[T]:
        """Yield the results in order. Raises OptionError if a worker runs another version of triage."""
        assert work.describe is not None
        described = work.describe()
        shared = zlib.compress(json.dumps([triage.__version__, described.shared]).encode())
        batches = list(divide(described.sizes))
        calls = (
            partial(do_batch, described.function, shared, json.dumps([described.units[number] for number in batch]))
            for batch in batches
        )
        for batch, answer in zip(batches, self.call_in_order(calls), strict=True):
            if isinstance(answer, BaseException):
                results = [type(answer).__name__] * len(batch)
            else:
                results = load_shared_texts(answer)
            for number, result in zip(batch, results, strict=True):
                self.done += 1
                if isinstance(result, str):
                    self._note_failure(result)
                    yield work.do(number)
                else:
                    yield work.unpack(result[0])

    def _note_failure(self, reason: str) -> None:
        if reason != _ONLY_HERE:
            self.redone += 1
            self.reason = self.reason or reason

    def call_in_order(self, calls: Iterable[Callable[[], bytes]]) -> Iterator[bytes | BaseException]:
        """Yield what each call returns, or the error that kept it from being done."""
        pending: deque[Future[bytes] | BaseException] = deque()
        try:
            for call in calls:
                pending.append(self._submit(call))
                if len(pending) >= _AHEAD:
                    yield self._wait_for_first(pending)
            while pending:
                yield self._wait_for_first(pending)
        finally:
            for future in pending:
                if isinstance(future, Future):
                    future.cancel()

    def _submit(self, call: Callable[[], bytes]) -> Future[bytes] | BaseException:
        try:
            return self.executor.submit(call)
        except Exception as error:  # the cluster went away: each kind of executor has its own errors
            return error

    def _wait_for_first(self, pending: deque[Future[bytes] | BaseException]) -> bytes | BaseException:
        """Return the result of the first call, or an error; TimeoutError if none of all goes on."""
        first = pending[0]
        done = -1
        while isinstance(first, Future) and not first.done():
            before, done = done, sum(future.done() for future in pending if isinstance(future, Future))
            if before == done:
                first.cancel()
                pending.popleft()
                return TimeoutError("no worker goes on")
            wait([first], self.patience)
        pending.popleft()
        if not isinstance(first, Future):
            return first
        try:
            return first.result()
        except VersionError as error:
            hint = "install the same version on all workers and here"
            raise OptionError(str(error), hint=hint) from None
        except (Exception, CancelledError) as error:  # lost, or not able to: what is wrong shows when it is done here
            return error


def divide(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers of units that travel together: neighbours, with few bytes to read."""
    batch: list[int] = []
    total = 0
    for number, size in enumerate(sizes):
        if batch and (total + size > _BATCH_BYTES or len(batch) == _BATCH_UNITS):
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += size
    if batch:
        yield batch


def do_batch(function: Callable[[SharedData, Any], Any], shared: bytes, units: str) -> bytes:
    """Do some units on a worker; return JSON: for each unit its result in a list, or why it cannot be done here.

    Raises VersionError.
    """
    data = _load_shared(shared)
    return json.dumps([_try(function, data, unit) for unit in json.loads(units)]).encode()


def _try(function: Callable[[SharedData, Any], Any], data: SharedData, unit: Any) -> list[Any] | str:
    try:
        return _ONLY_HERE if unit is None else [function(data, unit)]
    except OSError as error:  # such as a file that this machine does not have
        return error.strerror or type(error).__name__
    except Exception as error:  # an error of the code shows where it is done again
        return type(error).__name__


@lru_cache(maxsize=4)
def _load_shared(shared: bytes) -> SharedData:
    version, value = json.loads(zlib.decompress(shared))
    check_version(version)
    return SharedData(value)


def check_version(version: str) -> None:
    """Raise VersionError on a worker that has another version of triage than who asked it."""
    if version != triage.__version__:
        raise VersionError(f"a worker runs triage {triage.__version__}, this is triage {version}")
