"""What the rules across ranks look at: the facts of one attempt, what the catalog saw in them, and who is there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from triage.diagnose.clocks import Clocks
from triage.evidence.inference import Ground, inferred
from triage.model.evidence import Evidence

T = TypeVar("T")
SANE_WORLD = 1 << 20  # a size beyond this was misread
LONG = 10.0  # a log that stopped so many seconds before the others', while they went on


@dataclass(frozen=True)
class Scene:
    """`matched`: by what they tell (`tells` of a signature) the indices of facts; `ranks`: those that left a trace.

    `failed` are the ranks with a failure of their own, `complaining` those that show any, `finished` those that said
    they were done. `hosts`: rank to the hosts on which
    it was seen; `devices`: GPU (host and PCI address, as text) to its ranks. Steps and times are those of each rank's
    last lines,
    `doing` what it was about there (a name of ranks.last.DOING). Times of different ranks are comparable as `clocks`
    says. `handled`
    are facts that did not end the job, `files` host to the sources that are named after it, `addresses` IP address to
    hosts,
    `local` host and local rank to ranks, `pids` process ids to ranks, `writes` path to the ranks that say they write
    it.
    """

    facts: Sequence[Evidence]
    matched: Mapping[str, Sequence[int]]
    ranks: frozenset[int]
    world_size: int | None
    failed: frozenset[int]
    finished: frozenset[int] = frozenset()
    one_host: bool = False
    last_step: Mapping[int, int] = field(default_factory=dict)
    last_time: Mapping[int, tuple[str, float]] = field(default_factory=dict)
    doing: Mapping[int, str] = field(default_factory=dict)
    hosts: Mapping[int, Sequence[str]] = field(default_factory=dict)
    devices: Mapping[str, Sequence[int]] = field(default_factory=dict)
    clocks: Clocks = field(default_factory=Clocks)
    handled: Sequence[Evidence] = ()
    files: Mapping[str, Collection[str]] = field(default_factory=dict)
    addresses: Mapping[str, Collection[str]] = field(default_factory=dict)
    local: Mapping[tuple[str, int], Collection[int]] = field(default_factory=dict)
    pids: Mapping[int, Collection[int]] = field(default_factory=dict)
    writes: Mapping[str, Collection[int]] = field(default_factory=dict)
    complaining: frozenset[int] = frozenset()

    def evidence_of(self, *tells: str) -> Sequence[Evidence]:
        known = self._told.get(tells)
        if known is None:
            indices = sorted({index for told in tells for index in self.matched.get(told, ())})
            known = self._told[tells] = [self.facts[index] for index in indices]
        return known

    def ranks_that(self, *tells: str) -> frozenset[int]:
        """The ranks of this evidence."""
        known = self._telling.get(tells)
        if known is None:
            known = self._telling[tells] = frozenset(ranks_of(self.evidence_of(*tells)))
        return known

    @cached_property
    def everybody(self) -> frozenset[int]:
        """Those that left a trace, and those that must be there by the size of the world."""
        if self.world_size is None or self.world_size > SANE_WORLD:
            return self.ranks
        return self.ranks.union(range(self.world_size))

    @cached_property
    def exits(self) -> Sequence[Evidence]:
        """How processes ended."""
        return [fact for fact in self.facts if fact.kind == "exit"]

    def saying(self, literal: str) -> Sequence[Evidence]:
        """The facts with this literal in their text: mostly none, which one look at all texts tells."""
        return [fact for fact in self.facts if literal in fact.text] if literal in self._texts else ()

    @cached_property
    def _texts(self) -> str:
        return "\0".join(fact.text for fact in self.facts)

    def once(self, read: Callable[[Scene], T]) -> T:
        """What `read` gives for this scene, which does not change: many rules ask for the same."""
        if read not in self._read:
            self._read[read] = read(self)
        found: T = self._read[read]
        return found

    @cached_property
    def _told(self) -> dict[tuple[str, ...], Sequence[Evidence]]:
        return {}

    @cached_property
    def _telling(self) -> dict[tuple[str, ...], frozenset[int]]:
        return {}

    @cached_property
    def _read(self) -> dict[object, Any]:
        return {}


def ranks_of(facts: Iterable[Evidence]) -> set[int]:
    return {fact.origin.rank for fact in facts if fact.origin.rank is not None}


def conclude(rule: str, ranks: Iterable[int], basis: Evidence, text: str, ground: Ground = "silence") -> list[Evidence]:
    """What a rule gives back, see evidence.inference."""
    return inferred(rule, ranks, text, basis, ground=ground)
