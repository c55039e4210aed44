"""What the rules across ranks look at: the facts of one attempt, what signatures say about them, and the ranks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, TypeVar

from triage.base.lazy_dataclass import dataclass
from triage.diagnose.time_order import Clocks
from triage.model.evidence import Evidence
from triage.ranks.separate_groups import Stated
from triage.scan.interface import SPAN_KINDS

T = TypeVar("T")
# Where only some lines that report failures were read, each rank of a job of this size still has room for 32 of them.
_MOST_RANKS_WITH_GAPS = SPAN_KINDS // 32
SANE_WORLD = 1 << 20  # a larger size was misread
LONG_SILENCE = 10.0  # seconds: a log that stopped so long before those of the others


@dataclass(frozen=True)
class RuleContext:
    """One attempt, as rules see it. Times of different ranks can be compared as `clocks` says.

    matched: by what signatures indicate (their `tells`), the indices of the facts that they match
    ranks: those that left a trace; `failed`: with a failure of their own; `complaining`: that show any failure;
      `finished`: that said that they were done; `finish_offsets`: source to the offset of its last such line
    last_step, last_time, doing: of the last line of each rank; `doing` is a name of `records.activity`,
      `step_times` has the times of its last steps, and `unplaced` those names in last lines without a rank, with the
      number of these lines
    hosts: rank to its hosts; `devices`: GPU (host and PCI address, as text) to its ranks
    handled: facts that did not end the job; `files`: host to the sources that are named after it
    addresses: IP address to hosts; `local`: host and local rank to ranks; `pids`: process id to ranks
    writes: path to the ranks that say that they write it; `writers`: to who says so, as `list_writers` has them
    memberships: which rank of how many processes say that they are; `host_names`: name of a host to its one name
    has_gaps: so many lines report failures that only some were read
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
    unplaced: Mapping[str, int] = field(default_factory=dict)
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
    memberships: Sequence[Stated] = ()
    writers: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    host_names: Mapping[str, str] = field(default_factory=dict)
    has_gaps: bool = False
    finish_offsets: Mapping[str, int] = field(default_factory=dict)
    step_times: Mapping[int, Sequence[float]] = field(default_factory=dict)

    def evidence_of(self, *indicates: str) -> Sequence[Evidence]:
        """Return the facts whose signatures indicate one of these."""
        if indicates not in self._evidence_of:
            indices = sorted({index for name in indicates for index in self.matched.get(name, ())})
            self._evidence_of[indicates] = [self.facts[index] for index in indices]
        return self._evidence_of[indicates]

    def ranks_with(self, *indicates: str) -> frozenset[int]:
        """Return the ranks of this evidence."""
        if indicates not in self._ranks_with:
            self._ranks_with[indicates] = frozenset(ranks_of(self.evidence_of(*indicates)))
        return self._ranks_with[indicates]

    @cached_property
    def all_ranks(self) -> frozenset[int]:
        """Those that left a trace, and those that must be there by the size of the world."""
        if self.world_size is None or self.world_size > SANE_WORLD:
            return self.ranks
        return self.ranks.union(range(self.world_size))

    @cached_property
    def may_lack_lines(self) -> bool:
        """Whether lines of ranks may not have been read, so that a rank without a failure may have reported one."""
        return self.has_gaps and len(self.all_ranks) > _MOST_RANKS_WITH_GAPS

    @cached_property
    def exits(self) -> Sequence[Evidence]:
        """How processes ended."""
        return [fact for fact in self.facts if fact.kind == "exit"]

    def facts_with(self, literal: str) -> Sequence[Evidence]:
        """Return the facts with this literal in their text; mostly none, which one search of all texts shows."""
        return [fact for fact in self.facts if literal in fact.text] if literal in self._texts else ()

    @cached_property
    def _texts(self) -> str:
        return "\0".join(fact.text for fact in self.facts)

    def once(self, read: Callable[[RuleContext], T]) -> T:
        """Return what `read` gives for this context, computed once: many rules need the same."""
        if read not in self._results:
            self._results[read] = read(self)
        result: T = self._results[read]
        return result

    @cached_property
    def _evidence_of(self) -> dict[tuple[str, ...], Sequence[Evidence]]:
        return {}

    @cached_property
    def _ranks_with(self) -> dict[tuple[str, ...], frozenset[int]]:
        return {}

    @cached_property
    def _results(self) -> dict[object, Any]:
        return {}


def ranks_of(facts: Iterable[Evidence]) -> set[int]:
    """Return the ranks of the facts."""
    return {fact.origin.rank for fact in facts if fact.origin.rank is not None}
