"""triage.base.executor_work and triage.base.dask_cluster"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import triage
from triage.base import executor_work
from triage.base.errors import OptionError
from triage.base.executor_work import ExecutorWorkers, SharedData, divide
from triage.base.forks import LocalProcesses, LocalThreads, RemoteUnits, SharedWork, WorkSharer
from triage.base.request_totals import RequestTotals, add_cost, total_cost


def double(shared: SharedData, unit: int) -> int:
    """Return a number times what all units share; 13 cannot be done."""
    if unit == 13:
        raise OSError(2, "there is no such file here")
    return unit * int(shared.value)


def doubling(count: int) -> SharedWork[int]:
    """Work whose units are doubled."""
    return SharedWork(
        lambda number: number * 2, count, describe=lambda: RemoteUnits(double, 2, range(count), [1] * count)
    )


SLOW: list[str] = []


def double_slowly(shared: SharedData, unit: int) -> int:
    """Return a number times what all units share; the thread that does the first unit needs 0.6 s for each."""
    if unit == 0 and not SLOW:
        SLOW.append(threading.current_thread().name)
    time.sleep(0.6 if threading.current_thread().name in SLOW else 0.01)
    return unit * int(shared.value)


def request(shared: SharedData, unit: int) -> int:
    """Count a request of ten bytes, as reading an object does."""
    add_cost(RequestTotals(requests=1, bytes=10))
    return unit


class LosingExecutor(Executor):
    """Loses every call: some when they are given, the others later."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        self.calls += 1
        if self.calls % 2:
            raise RuntimeError("the cluster is gone")
        future: Future[Any] = Future()
        if self.calls % 4:
            future.cancel()
        else:
            future.set_exception(ConnectionError("the worker died"))
        return future


class SilentExecutor(Executor):
    """Takes calls and never does one."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


class OldWorkers(Executor):
    """Workers with an older triage."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with mock.patch.object(triage, "__version__", "0.0.9"):
            try:
                future.set_result(function(*args))
            except Exception as error:
                future.set_exception(error)
        return future


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


@pytest.mark.parametrize("count", [0, 1, 64, 65, 200])
def test_all_who_share_work_return_the_same(threads: ThreadPoolExecutor, count: int) -> None:
    """Processes, threads and the workers of an executor give the results in order, also of units that fail there."""
    sharers: list[WorkSharer] = [LocalProcesses(), LocalThreads(3), ExecutorWorkers(threads)]
    assert [list(sharer.map(doubling(count))) for sharer in sharers] == [[2 * n for n in range(count)]] * 3


def test_a_unit_that_fails_is_done_here(threads: ThreadPoolExecutor) -> None:
    """Only this unit, and it is counted."""
    workers = ExecutorWorkers(threads)
    list(workers.map(doubling(20)))
    assert (workers.done, workers.redone, workers.reason) == (20, 1, "there is no such file here")


def test_lost_workers_cost_their_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an executor does with a call, its units are done here."""
    monkeypatch.setattr(executor_work, "_BATCH_UNITS", (1, 1))
    workers = ExecutorWorkers(LosingExecutor())
    assert list(workers.map(doubling(12))) == [2 * n for n in range(12)]
    assert workers.redone == 12


def test_without_progress_work_is_done_here() -> None:
    """Where no worker is left, nothing waits for ever; what was given away is cancelled."""
    silent = SilentExecutor()
    began = time.monotonic()
    assert list(ExecutorWorkers(silent, patience=0.2).map(doubling(70))) == [2 * n for n in range(70)]
    assert [future.cancelled() for future in silent.futures] == [True] * 18
    assert time.monotonic() - began < 1.0


def test_a_slow_worker_is_stolen_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a slow worker has not begun goes to another one; nothing waits for it, and nothing is done here."""
    monkeypatch.setattr(executor_work, "_LATE_SECONDS", 0.2)
    SLOW.clear()
    count = 40
    work = SharedWork(
        lambda number: -1, count, describe=lambda: RemoteUnits(double_slowly, 2, range(count), [1 << 21] * count)
    )
    with ThreadPoolExecutor(2) as pool:
        workers = ExecutorWorkers(pool)
        began = time.monotonic()
        assert list(workers.map(work)) == [2 * n for n in range(count)]
        took = time.monotonic() - began
    assert took < 2.0 < 4 * 0.6
    assert (workers.stolen, workers.redone) == (4, 0)


def test_stolen_units_wait_for_work_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come after what was given before; as long as that goes on, nothing is done here."""
    monkeypatch.setattr(executor_work, "_LATE_SECONDS", 0.1)
    SLOW.clear()
    count = 160
    work = SharedWork(
        lambda number: -1, count, describe=lambda: RemoteUnits(double_slowly, 2, range(count), [1] * count)
    )
    with ThreadPoolExecutor(2) as pool:
        workers = ExecutorWorkers(pool)
        assert list(workers.map(work)) == [2 * n for n in range(count)]
    assert (workers.stolen > 0, workers.redone) == (True, 0)


def test_a_worker_that_is_not_slow_keeps_its_units(threads: ThreadPoolExecutor) -> None:
    """Where all need about the same time, nothing is done twice."""
    SLOW[:] = ["another thread"]
    count = 40
    work = SharedWork(
        lambda number: -1, count, describe=lambda: RemoteUnits(double_slowly, 2, range(count), [1] * count)
    )
    workers = ExecutorWorkers(threads)
    assert list(workers.map(work)) == [2 * n for n in range(count)]
    assert (workers.stolen, workers.redone) == (0, 0)


def test_units_that_are_late_twice_are_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """If nobody does the units of a slow worker either, this process does, and the batches that follow wait no more."""
    monkeypatch.setattr(executor_work, "_LATE_AT_FIRST", 0.01)
    silent = SilentExecutor()
    workers = ExecutorWorkers(silent, patience=0.2)
    began = time.monotonic()
    assert list(workers.map(doubling(400))) == [2 * n for n in range(400)]
    assert time.monotonic() - began < 1.0
    assert workers.redone == 400
    assert all(future.cancelled() for future in silent.futures)


def test_requests_of_workers_are_counted(threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, over several works; those of threads are requests of this process, which counts them itself."""
    monkeypatch.setattr(executor_work, "_LATE_SECONDS", 60.0)  # nothing is done twice
    monkeypatch.setattr(executor_work, "_LATE_AT_FIRST", 60.0)
    work = SharedWork(lambda number: -1, 20, describe=lambda: RemoteUnits(request, None, range(20), [1] * 20))
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as pool:
        workers = ExecutorWorkers(pool)
        for count in (20, 40):
            assert list(workers.map(work)) == list(range(20))
            assert workers.cost == RequestTotals(requests=count, bytes=10 * count)
    before = total_cost()
    own = ExecutorWorkers(threads)
    assert list(own.map(work)) == list(range(20))
    assert own.cost == RequestTotals()
    assert total_cost().since(before) == RequestTotals(requests=20, bytes=200)


def test_an_error_of_the_work_is_raised_here(threads: ThreadPoolExecutor) -> None:
    """What fails on a worker and here is the error of here."""

    def fail(number: int) -> int:
        raise ValueError("unit 13 is wrong")

    work = SharedWork(fail, 1, describe=lambda: RemoteUnits(double, 2, [13], [1]))
    with pytest.raises(ValueError, match="unit 13"):
        list(ExecutorWorkers(threads).map(work))


def test_another_version_is_an_error() -> None:
    """A worker with another version would give other answers: the command ends and says so."""
    executor_work._load_shared.cache_clear()
    with pytest.raises(OptionError, match=r"runs triage 0\.0\.9, this is triage") as caught:
        list(ExecutorWorkers(OldWorkers()).map(doubling(3)))
    assert "same version" in caught.value.hint


def test_results_are_not_gathered_ahead_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many calls are given away that workers have something to do, not all of a terabyte at once."""
    monkeypatch.setattr(executor_work, "_AHEAD", 5)
    silent = SilentExecutor()
    answers = ExecutorWorkers(silent, patience=0.01).call_in_order(lambda: b"" for _ in range(100))
    assert isinstance(next(answers), TimeoutError)
    assert len(silent.futures) == 5
    answers.close()  # type: ignore[attr-defined]
    assert all(future.cancelled() for future in silent.futures)


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ([], []),
        ([1 << 26, 1], [[0], [1]]),
        ([(1 << 24) - 1, 1, 1], [[0, 1], [2]]),
        ([1] * 9, [[0, 1, 2, 3], [4, 5, 6, 7], [8]]),
        ([1] * 5 * 64, [list(range(first, first + 5)) for first in range(0, 320, 5)]),
        ([1 << 23] * 600, [list(range(first, min(600, first + 8))) for first in range(0, 600, 8)]),
    ],
)
def test_small_units_travel_together(sizes: list[int], batches: list[list[int]]) -> None:
    """Neighbours, up to 64 MiB or 64 units, less where there would be fewer than 64 batches."""
    assert list(divide(sizes)) == batches


def test_a_scheduler_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the address and what to give."""
    dask_cluster = pytest.importorskip("triage.base.dask_cluster")
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "_CONNECT_SECONDS", 1)
    with pytest.raises(OptionError, match="cannot connect") as caught, dask_cluster.dask_workers("tcp://127.0.0.1:9"):
        pass
    assert caught.value.path == "tcp://127.0.0.1:9"
    assert "8786" in caught.value.hint
