"""triage.compare.observed_values"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from triage.base.forks import LocalProcesses, SharedWork, WorkSharer
from triage.compare.observed_values import _WORTH_FORKING, ObservedValues
from triage.evidence.extracted import ExtractedJob
from triage.model.evidence import Source
from triage.ranks.identity import JobMap
from triage.scan.edges import HeldEdges
from triage.scan.interface import ScanResult

T = TypeVar("T")


class CountingSharer:
    """Does the work here, and remembers how much it was asked for."""

    def __init__(self, *, is_remote: bool = False) -> None:
        self.is_remote = is_remote
        self.counts: list[int] = []

    def map(self, work: SharedWork[T]) -> Iterator[T]:
        self.counts.append(work.count)
        return map(work.do, range(work.count))


def observe(ranks: int, sharer: WorkSharer, last_line: str = "step 90 loss {rank}.25") -> ObservedValues:
    """Return the values of ranks with a file each."""
    texts: dict[str, bytes] = {}
    for rank in range(ranks):
        end = last_line.format(rank=rank)
        texts[f"rank{rank}.log"] = f"2026-03-01 10:00:00,000 [rank{rank}]: step 10 loss 7.125\nbeat\n{end}\n".encode()
    scanned = [(Source(name, "text"), ScanResult((), len(text), HeldEdges(text, text))) for name, text in texts.items()]

    def read_of(source: Source, scan: ScanResult) -> Callable[[int, int], bytes]:
        return lambda offset, length: texts[source.name][offset : offset + length]

    extracted = ExtractedJob(year=2026, job=JobMap())
    return ObservedValues(scanned, read_of, extracted, memory=False, sharer=sharer)


@pytest.mark.parametrize("last_line", ["step 90 loss {rank}.25", "[rank{rank}]: step 90 loss nan", "grad norm=inf"])
def test_several_processes_read_the_same_values(last_line: str) -> None:
    """The values at the ends and the starts of many texts do not depend on who reads them."""
    several = observe(_WORTH_FORKING, LocalProcesses(2), last_line)
    alone = observe(_WORTH_FORKING, LocalProcesses(1), last_line)
    assert len(several.ends) > _WORTH_FORKING
    assert list(map(repr, several.ends)) == list(map(repr, alone.ends))
    assert list(map(repr, several.read_starts(_WORTH_FORKING))) == list(map(repr, alone.read_starts(_WORTH_FORKING)))


def test_only_many_texts_are_shared() -> None:
    """One text fewer is read here; so are the starts that are read already."""
    sharer = CountingSharer()
    observe(_WORTH_FORKING - 1, sharer)
    assert sharer.counts == []
    values = observe(_WORTH_FORKING, sharer)
    assert sharer.counts == [_WORTH_FORKING]
    values.read_starts(8)
    values.read_starts(_WORTH_FORKING)
    assert sharer.counts == [_WORTH_FORKING]


def test_other_machines_read_no_values() -> None:
    """What would have to travel to another machine takes longer than to read it here."""
    sharer = CountingSharer(is_remote=True)
    observe(_WORTH_FORKING, sharer)
    assert sharer.counts == []
