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


def test_pauses_may_overlap() -> None:
    """The collector runs again after the last of two, whichever ends first."""
    first, second = paused_collection(), paused_collection()
    for early, late in ((first, second), (paused_collection(), paused_collection())):
        early.__enter__()
        late.__enter__()
        (early if early is first else late).__exit__(None, None, None)
        (late if early is first else early).__exit__(None, None, None)
        assert gc.isenabled()
