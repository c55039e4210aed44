"""triage.store.stats_cache: values are never older than the store while they are cheap."""

from __future__ import annotations

import time

import pytest

from tests.store.conftest import Place
from triage.store import Store, stats_cache
from triage.store.stats_cache import StatsCache


@pytest.fixture
def cache(store: Store) -> StatsCache:
    return StatsCache(store.connections)


def changed(store: Store) -> None:
    with store.connections.write() as db:
        db.execute("UPDATE generation SET number = number + 1")


def test_cheap_values_are_current(store: Store, cache: StatsCache) -> None:
    """A cheap value is computed once, and again after any change."""
    made: list[int] = []
    for _ in range(3):
        cache.get("a", lambda: made.append(1))
    assert len(made) == 1
    changed(store)
    cache.get("a", lambda: made.append(1))
    cache.get("b", lambda: made.append(1))
    assert len(made) == 3


def test_expensive_values_may_be_old(store: Store, cache: StatsCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change an expensive value is reused until its time is over."""
    made: list[int] = []
    monkeypatch.setattr(stats_cache, "CHEAP", 0.0)
    monkeypatch.setattr(stats_cache, "TIMES", 1e9)
    monkeypatch.setattr(stats_cache, "OLDEST", 0.2)

    def make() -> None:
        made.append(1)
        end = time.thread_time() + 0.001
        while time.thread_time() < end:
            pass

    cache.get("a", make)
    changed(store)
    cache.get("a", make)
    assert len(made) == 1
    time.sleep(0.25)
    cache.get("a", make)
    assert len(made) == 2


def test_a_late_value_says_since_when(store: Store, cache: StatsCache) -> None:
    """A value lacks changes from when it was computed on, as soon as there is one; an unknown value lacks nothing."""
    before = time.time()
    cache.get("a", lambda: 1)
    assert cache.late_since("a") is None
    changed(store)
    late_since = cache.late_since("a")
    assert late_since is not None
    assert before - 0.1 <= late_since <= time.time()
    assert cache.late_since("b") is None
    cache.get("a", lambda: 1)
    assert cache.late_since("a") is None


def test_the_cache_is_bounded(cache: StatsCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently used value is dropped."""
    monkeypatch.setattr(stats_cache, "MOST", 3)
    for number in range(10):
        cache.get(number, lambda: None)
    assert len(cache._values) == 3


def test_waiting_for_a_server_is_a_cost(place: Place) -> None:
    """What a query waits for its server counts as much as processor time; a file has no server."""
    with Store.open(place("triage")) as store:
        connections = store.connections
        before = connections.spent_seconds()
        if connections.dialect.is_remote:
            connections.read("SELECT pg_sleep(0.2)")
            assert connections.spent_seconds() - before >= 0.2
        else:
            time.sleep(0.2)
            assert connections.spent_seconds() - before < 0.2
