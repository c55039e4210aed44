"""Sums that are kept: never older than the store while they are cheap."""

from __future__ import annotations

import time

import pytest

from triage.store import Store, sparing
from triage.store.sparing import Sparing


@pytest.fixture
def sums(store: Store) -> Sparing:
    return Sparing(store.connections)


def changed(store: Store) -> None:
    with store.connections.write() as db:
        db.execute("UPDATE generation SET number = number + 1")


def test_what_is_cheap_is_as_new_as_the_store(store: Store, sums: Sparing) -> None:
    """The same answer is made once, and again after any change."""
    made: list[int] = []
    for _ in range(3):
        sums.of("a", lambda: made.append(1))
    assert len(made) == 1
    changed(store)
    sums.of("a", lambda: made.append(1))
    sums.of("b", lambda: made.append(1))
    assert len(made) == 3


def test_what_costs_much_may_be_old_for_a_while(store: Store, sums: Sparing, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change an answer that took long is told again, until its time is over."""
    made: list[int] = []
    monkeypatch.setattr(sparing, "CHEAP", 0.0)
    monkeypatch.setattr(sparing, "TIMES", 1e9)
    monkeypatch.setattr(sparing, "OLDEST", 0.2)

    def make() -> None:
        made.append(1)
        end = time.thread_time() + 0.001
        while time.thread_time() < end:
            pass

    sums.of("a", make)
    changed(store)
    sums.of("a", make)
    assert len(made) == 1
    time.sleep(0.25)
    sums.of("a", make)
    assert len(made) == 2


def test_few_sums_are_kept(sums: Sparing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked, memory is bounded: what was asked longest ago is forgotten."""
    monkeypatch.setattr(sparing, "MOST", 3)
    for number in range(10):
        sums.of(number, lambda: None)
    assert len(sums._told) == 3
