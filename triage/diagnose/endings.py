"""Which endings are failures of their own: last lines that nothing else explains.

A strong form counts unless its rank, or the lines around it, show a known or an unknown failure. A weak form counts
only where the job shows nothing better. What a launcher reports of the end of a process says nothing of why.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter

from triage.base.lazy_dataclass import dataclass
from triage.diagnose.context import ranks_of
from triage.diagnose.graph import is_status_ending
from triage.diagnose.launcher_reports import is_end_report, is_launcher_report, lists_worker_errors
from triage.model import EndingDetail, Evidence, ExitDetail, StackDetail

_STOPPED = "Terminated"
"""What a shell says of a process that got SIGTERM: launchers stop processes so, and another ended first."""


@dataclass(frozen=True, slots=True)
class MatchedFacts:
    """What signatures match, by the indices of facts: all but noise; causes; bare signals of a process; ranks that lost
    a peer or waited in vain; processes that a launcher stopped; noise; stops from outside of the job.
    """

    known: frozenset[int] = frozenset()
    causing: frozenset[int] = frozenset()
    bare_signals: frozenset[int] = frozenset()
    lost_peers: frozenset[int] = frozenset()
    stops: frozenset[int] = frozenset()
    noise: frozenset[int] = frozenset()
    outside: frozenset[int] = frozenset()


def select_endings(facts: Sequence[Evidence], matched: MatchedFacts, failures: Collection[Evidence]) -> list[Evidence]:
    """Return the endings that are failures of their own. `failures` are the other failures that nobody knows."""
    endings = [fact for fact in facts if is_stated_ending(fact)]
    if not endings:
        return []
    silent = {
        index
        for index in matched.known - matched.causing
        if index in matched.bare_signals or is_end_report(facts[index])
    }
    stops = [facts[index] for index in matched.stops]
    # DeepSpeed's launcher stops all its processes, also those that ended: this does not show who still ran.
    stops_all = ranks_of(stops) >= ranks_of(facts)
    silent |= matched.stops if stops_all else set()
    telling = [facts[index] for index in matched.known - matched.bare_signals - silent]
    messages = [fact for fact in failures if fact.kind != "exit"]
    lines = {(facts[index].source, facts[index].offset) for index in matched.known | matched.noise}
    signals = {(facts[index].source, facts[index].offset) for index in matched.bare_signals}
    endings = [one for one in endings if _place(one) not in lines or (_has_condition(one) and _place(one) in signals)]
    victims = [facts[index] for index in matched.lost_peers]
    coverage = _Coverage([*telling, *messages], victims, stops, stops_all=stops_all)
    strong = [one for one in endings if _is_strong(one) and not coverage.covers(one)]
    own_ends = _list_own_ends(facts, matched)
    outside = matched.outside if own_ends else frozenset[int]()
    has_cause = bool(messages or matched.causing - matched.bare_signals - outside)
    stopped = {facts[index].source: facts[index].offset for index in sorted(outside, reverse=True)}
    strong = [
        one
        for one in strong
        if one.origin.rank is not None or not (has_cause or one.offset > stopped.get(one.source, one.offset))
    ]
    strong = [one for one in strong if not (matched.known and lists_worker_errors(one))]
    if own := [one for one in strong if not is_launcher_report(one)]:
        return own
    if messages or (matched.causing and not (own_ends and matched.causing <= matched.outside)):
        return strong
    victims += [facts[index] for index in matched.outside]
    coverage = _Coverage([facts[index] for index in matched.known - silent], victims, stops, stops_all=stops_all)
    stacks = _Places(fact for fact in facts if isinstance(fact.detail, StackDetail))  # below `Timeout (0:05:00)!`
    weak = [one for one in endings if not _is_strong(one) and not coverage.covers(one)]
    weak = [one for one in weak if not any(stacks.list_among(one))]
    stating = [one for one in weak if not is_status_ending(one)]
    if matched.causing:
        return [one for one in stating if one.origin.rank in own_ends] or strong
    exits = [fact for fact in failures if fact.kind == "exit"]
    own = [one for one in weak if one.text.split("\n", 1)[0] != _STOPPED] or weak
    return stating or strong or ([] if exits else own)


def _list_own_ends(facts: Sequence[Evidence], matched: MatchedFacts) -> set[int | None]:
    """Return the ranks that ended by themselves with an exit code: nobody outside stopped these."""
    return {
        fact.origin.rank
        for index, fact in enumerate(facts)
        if index not in matched.known
        and isinstance(fact.detail, ExitDetail)
        and fact.detail.is_own_failure
        and not fact.detail.signal
    } - {None}


def _place(fact: Evidence) -> tuple[str, int]:
    return fact.source, fact.offset


def _has_condition(ending: Evidence) -> bool:
    """Whether the line says which condition failed: more than the signal that a signature knows it by."""
    return isinstance(ending.detail, EndingDetail) and ending.detail.form == "failed assertion"


def split_endings(facts: Sequence[Evidence]) -> tuple[list[Evidence], list[Evidence]]:
    """Return the facts that signatures match, and the endings, which they do not: their lines are facts of their own.

    An exception without its traceback is matched too where no other fact stands among the last lines; so is a status
    that stands for a signal, unless a launcher says how its processes ended.
    """
    stated, endings = list[Evidence](), list[Evidence]()
    has_exits = any(fact.kind == "exit" for fact in facts)
    for fact in facts:
        may_match = _is_exception(fact) or ("signal" in fact.fields and not has_exits)
        is_last = isinstance(fact.detail, EndingDetail) and not (may_match and fact.detail.alone)
        (endings if is_last else stated).append(fact)
    return stated, endings


def read_exceptions(stated: Sequence[Evidence], endings: Iterable[Evidence]) -> list[Evidence]:
    """Return the facts as signatures match them: an exception that ends a writer is one without its traceback too, with
    its type.
    """
    lines = {(fact.source, fact.offset) for fact in endings if _is_exception(fact)}
    return [
        dataclasses.replace(fact, kind="exception", fields={"type": _read_type(fact.text), **fact.fields})
        if _is_exception(fact) or (fact.kind == "message" and (fact.source, fact.offset) in lines)
        else fact
        for fact in stated
    ]


def _read_type(text: str) -> str:
    """Return the last part of the type in front of a message."""
    return text.partition("\n")[0].partition(":")[0].strip().rpartition(".")[2]


def _is_exception(fact: Evidence) -> bool:
    return isinstance(fact.detail, EndingDetail) and fact.detail.form == "exception"


def _is_strong(fact: Evidence) -> bool:
    return isinstance(fact.detail, EndingDetail) and fact.detail.strength == "strong"


def is_stated_ending(fact: Evidence) -> bool:
    """Whether a fact is an ending with a form or a term of failing."""
    return isinstance(fact.detail, EndingDetail) and fact.detail.strength != "unlike"


def is_among(fact: Evidence, ending: Evidence) -> bool:
    """Whether a fact stands among the lines of an ending."""
    return fact.source == ending.source and _first_line(ending) <= fact.offset <= ending.end


def _first_line(ending: Evidence) -> int:
    return ending.detail.first if isinstance(ending.detail, EndingDetail) else ending.offset


class _Places:
    """Facts by where they stand, so that those among the lines of an ending are found without reading all of them."""

    def __init__(self, facts: Iterable[Evidence]) -> None:
        self._by_source: dict[str, list[Evidence]] = defaultdict(list)
        for fact in facts:
            self._by_source[fact.source].append(fact)
        for same in self._by_source.values():
            same.sort(key=attrgetter("offset"))

    def list_among(self, ending: Evidence) -> Iterator[Evidence]:
        """Yield the facts among the lines of an ending, first to last."""
        facts = self._by_source.get(ending.source, [])
        for number in range(bisect_left(facts, _first_line(ending), key=attrgetter("offset")), len(facts)):
            if facts[number].offset > ending.end:
                return
            yield facts[number]


class _Coverage:
    """Facts beside which an ending is no failure of its own: one of the same rank, or among the same last lines.

    Not the `victims` of another rank, or of none, that stand behind the ending: they lost the process that ended, or
    waited for it. Nor `stops` behind it: a launcher stops what is left.
    """

    def __init__(
        self, facts: Collection[Evidence], victims: Iterable[Evidence], stops: Collection[Evidence], *, stops_all: bool
    ) -> None:
        self._stops_all = stops_all
        self._stops = [(fact.source, fact.offset, fact.origin.rank) for fact in stops]
        later = {id(fact) for fact in stops}
        self._ranks = {fact.origin.rank for fact in facts if fact.kind != "exit" and id(fact) not in later} - {None}
        self._places = _Places(facts)
        self._later = later.union(map(id, victims))

    def covers(self, ending: Evidence) -> bool:
        """Whether the facts explain an ending."""
        rank = ending.origin.rank
        if rank in self._ranks or (rank is not None and self._was_stopped(ending)):
            return True
        return any(
            (rank is None or fact.origin.rank in (rank, None))
            and not (id(fact) in self._later and ending.offset < fact.offset)
            for fact in self._places.list_among(ending)
        )

    def _was_stopped(self, ending: Evidence) -> bool:
        """Whether a launcher stopped the rank before, as the same source shows; in another source, whether it stopped
        this rank and not all.
        """
        return any(
            rank == ending.origin.rank and (offset <= ending.offset if source == ending.source else not self._stops_all)
            for source, offset, rank in self._stops
        )
