"""Share work among other machines through an executor of the standard protocol, such as that of a Dask cluster.

What crosses is data: a function by its name, JSON and packed units on the way there, and packed results on the way
back. A unit whose worker was lost, or that could not be done there, is done here; one whose worker is slow is given to
others too. So the answer is that of one machine, whatever happens to workers, and does not wait for the slowest.
"""

from __future__ import annotations

import functools
import json
import math
import statistics
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import triage
from triage.base.collection_pause import paused_collection
from triage.base.errors import OptionError
from triage.base.forks import SharedWork
from triage.base.packed_results import pack_result, unpack_result
from triage.base.request_totals import RequestTotals, process_name, total_cost

T = TypeVar("T")
Call = Callable[[], bytes]
_BATCHES = 64
"""Batches that work is divided into at least, if they do not become too small: each worker gets some."""
_BATCH_BYTES = 1 << 24, 1 << 26
"""The bytes of a batch, at least and at most; a unit may have more."""
_BATCH_UNITS = 4, 64
_AHEAD = 256
"""Batches that are given to the executor before the first of them is done."""
PATIENCE = 60.0
"""Seconds without any progress after which a batch is done here, as where no worker is left."""
_LATE_FACTOR = 3
"""A batch is late after so many times the seconds that half of the others took, and at least _LATE_SECONDS."""
_LATE_SECONDS = 2.0
_LOOK = 0.1
"""Seconds between looks at what goes on elsewhere, while one batch is waited for."""
_LATE_AT_FIRST = 10.0
"""Seconds after which a batch is late while none was done yet."""


_ONLY_HERE = "only here"


class VersionError(Exception):
    """A worker runs another version of triage."""


class SharedData:
    """What all units of some work have in common. Workers keep it, and what they build from it, between batches."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _LateError(Exception):
    """A batch takes far longer than is usual; its worker still has it. `others` are the calls after it."""

    def __init__(self, future: Future[bytes], others: Iterable[Future[bytes] | BaseException]) -> None:
        super().__init__("its worker is slow")
        self.future = future
        self.others = {other for other in others if isinstance(other, Future)}


class ExecutorWorkers:
    """The workers behind an executor.

    `done` counts units, `redone` those that had to be done here instead, for `reason` the first of them. `stolen`
    counts units of slow workers that were given to others too. `cost` is what the workers requested from addresses.
    """

    is_remote = True

    def __init__(self, executor: Executor, patience: float | None = PATIENCE) -> None:
        self.executor = executor
        self.patience = patience
        self.done = self.redone = self.stolen = 0
        self.reason = ""
        self._is_stalled = False
        self._seconds: list[float] = []
        self._costs: dict[str, list[RequestTotals]] = {}

    @property
    def cost(self) -> RequestTotals:
        """Return what the workers requested while they did work of this process."""
        costs = (max(totals).since(min(totals)) for totals in self._costs.values())
        return functools.reduce(RequestTotals.plus, costs, RequestTotals())

    def map(self, work: SharedWork[T]) -> Iterator[T]:
        """Yield the results in order. Raises OptionError if a worker runs another version of triage."""
        assert work.describe is not None
        described = work.describe()
        shared = zlib.compress(json.dumps([triage.__version__, described.shared]).encode())
        self._seconds = []

        def call(numbers: Sequence[int]) -> Call:
            units = pack_result([described.units[number] for number in numbers])
            return partial(do_batch, described.function, shared, units)

        batches = list(divide(described.sizes))
        for batch, answer in zip(batches, self.call_in_order(map(call, batches), steal=True), strict=True):
            if isinstance(answer, _LateError):
                results = self._steal(answer, [call([number]) for number in batch])
            else:
                results = self._results(answer, len(batch))
            for number, result in zip(batch, results, strict=True):
                self.done += 1
                if isinstance(result, str):
                    self._note_failure(result)
                    yield work.do(number)
                else:
                    yield work.unpack(result[0])

    def _results(self, answer: bytes | BaseException, count: int) -> list[Any]:
        """Return for each of `count` units its result in a list, or why it must be done here."""
        if isinstance(answer, BaseException):
            return [type(answer).__name__] * count
        report, results = _split_answer(answer)
        if report.worker != process_name():  # a thread of this process counts as this process
            known = self._costs.setdefault(report.worker, [])
            totals = [*known, RequestTotals(*report.before), RequestTotals(*report.after)]
            known[:] = min(totals), max(totals)
        return list(unpack_result(results))

    def _note_failure(self, reason: str) -> None:
        if reason != _ONLY_HERE:
            self.redone += 1
            self.reason = self.reason or reason

    def _steal(self, late: _LateError, calls: Sequence[Call]) -> list[Any]:
        """Give the units of a slow worker to others, a call for each; return its results or theirs, whoever is first.

        The calls wait behind those that were given before. If nothing at all goes on, this process does what is left.
        """
        self.stolen += len(calls)
        futures = [self._submit(call) for call in calls]
        open_calls = {future for future in futures if isinstance(future, Future)}
        others = set(late.others)
        while open_calls and not late.future.done():
            limit = min(self.patience or math.inf, self._late_after()) if self._seconds else self.patience
            done, _ = wait({late.future, *open_calls, *others}, limit, FIRST_COMPLETED)
            open_calls -= done
            others -= done
            if not done:
                self._is_stalled = not self._seconds
                break
        for future in open_calls:
            future.cancel()
        if late.future.done():
            return self._results(_answer_of(late.future), len(calls))
        late.future.cancel()
        left = "no worker goes on" if self._is_stalled else _ONLY_HERE
        return [left if future in open_calls else self._results(_answer_of(future), 1)[0] for future in futures]

    def call_in_order(self, calls: Iterable[Call], *, steal: bool = False) -> Iterator[bytes | BaseException]:
        """Yield what each call returns, or the error that kept it from being done; with `steal`, _LateError too."""
        pending: deque[Future[bytes] | BaseException] = deque()
        self._is_stalled = False
        try:
            for call in calls:
                pending.append(self._submit_batch(call) if steal else self._submit(call))
                if len(pending) >= _AHEAD:
                    yield self._wait_for_first(pending, steal)
            while pending:
                yield self._wait_for_first(pending, steal)
        finally:
            for future in pending:
                if isinstance(future, Future):
                    future.cancel()

    def _submit(self, call: Call) -> Future[bytes] | BaseException:
        try:
            return self.executor.submit(call)
        except Exception as error:  # the cluster went away: each kind of executor has its own errors
            return error

    def _submit_batch(self, call: Call) -> Future[bytes] | BaseException:
        """Submit the call of a batch; the seconds that it takes are noted as soon as it is done."""
        future = self._submit(call)
        if isinstance(future, Future):
            future.add_done_callback(self._note_seconds)
        return future

    def _note_seconds(self, future: Future[bytes]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._seconds.append(_split_answer(future.result())[0].seconds)

    def _wait_for_first(self, pending: deque[Future[bytes] | BaseException], steal: bool) -> bytes | BaseException:
        """Return the result of the first call, or an error; TimeoutError if none of all goes on."""
        first = pending[0]
        began = progressed = time.monotonic()
        before = -1
        while isinstance(first, Future) and not first.done():
            now, done = time.monotonic(), sum(future.done() for future in pending if isinstance(future, Future))
            if done != before:
                before, progressed = done, now
            self._is_stalled &= not done
            if self.patience is not None and (self._is_stalled or now - progressed >= self.patience):
                self._is_stalled = True
                first.cancel()
                pending.popleft()
                return TimeoutError("no worker goes on")
            if steal and now - began >= self._late_after():
                pending.popleft()
                return _LateError(first, pending)
            wait([first], _LOOK)
        pending.popleft()
        return _answer_of(first)

    def _late_after(self) -> float:
        if not self._seconds:
            return _LATE_AT_FIRST
        return max(_LATE_SECONDS, _LATE_FACTOR * statistics.median(self._seconds[-_AHEAD:]))


def _answer_of(call: Future[bytes] | BaseException) -> bytes | BaseException:
    """Return the result of a call, or why there is none. Raises OptionError if a worker has another version."""
    if not isinstance(call, Future):
        return call
    if not call.done():
        return TimeoutError("no worker goes on")
    try:
        return call.result()
    except VersionError as error:
        raise OptionError(str(error), hint="install the same version on all workers and here") from None
    except (Exception, CancelledError) as error:  # lost, or not able to: what is wrong shows when it is done here
        return error


class BatchReport(NamedTuple):
    """What a worker says of a batch: the seconds, its name, and what all its requests cost before and after."""

    seconds: float
    worker: str
    before: Sequence[int]
    after: Sequence[int]


def _split_answer(answer: bytes) -> tuple[BatchReport, bytes]:
    end = answer.index(b"\n")
    return BatchReport(*json.loads(answer[:end])), answer[end + 1 :]


def divide(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers of units that travel together: neighbours, with few bytes to read."""
    most_bytes = min(_BATCH_BYTES[1], max(_BATCH_BYTES[0], sum(sizes) // _BATCHES))
    most_units = min(_BATCH_UNITS[1], max(_BATCH_UNITS[0], len(sizes) // _BATCHES))
    batch: list[int] = []
    total = 0
    for number, size in enumerate(sizes):
        if batch and (total + size > most_bytes or len(batch) == most_units):
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += size
    if batch:
        yield batch


def do_batch(function: Callable[[SharedData, Any], Any], shared: bytes, units: bytes) -> bytes:
    """Do some units on a worker; return a BatchReport as a line of JSON, and behind it the packed results.

    They are a list for each unit, or why it cannot be done here. Raises VersionError.
    """
    began, before = time.monotonic(), total_cost()
    with paused_collection():
        data = _load_shared(shared)
        results = pack_result([_try(function, data, unit) for unit in unpack_result(units)])
    report = BatchReport(time.monotonic() - began, process_name(), before, total_cost())
    return json.dumps(report).encode() + b"\n" + results


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
