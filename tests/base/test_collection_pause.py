"""triage.base.collection_pause"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from triage.base.collection_pause import paused_collection


class Cycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leave the collector as it was."""
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


def test_nothing_is_collected_meanwhile() -> None:
    """A cycle outlives any number of new objects, and goes with the next collection."""
    with paused_collection():
        cycle = weakref.ref(Cycle())
        _ = [[number] for number in range(100_000)]
        assert cycle() is not None
    gc.collect()
    assert cycle() is None


def test_the_collector_is_as_before_after_an_error() -> None:
    """It runs again if it ran before, and only then."""
    with pytest.raises(ValueError, match="wrong"), paused_collection():
        raise ValueError("wrong")
    assert gc.isenabled()
    gc.disable()
    with paused_collection():
        pass
    assert not gc.isenabled()


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_pauses_may_overlap(first_to_end: int) -> None:
    """The collector runs again after both of two pauses, whichever ends first."""
    pauses = [paused_collection(), paused_collection()]
    for pause in pauses:
        pause.__enter__()
    for number in (first_to_end, 1 - first_to_end):
        pauses[number].__exit__(None, None, None)
    assert gc.isenabled()
