"""Which endings are failures of their own: last lines that nothing else explains.

A strong form counts unless its rank, or the lines around it, show a known or an unknown failure. A weak form counts
only where the job shows nothing better. What a launcher reports of the end of a process says nothing of why.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.diagnose.graph import is_status_ending
from triage.diagnose.launcher_reports import is_end_report
from triage.model import EndingDetail, Evidence, StackDetail


@dataclass(frozen=True, slots=True)
class MatchedFacts:
    """What signatures match, by the indices of facts: all but noise; causes; bare signals of a process; ranks that lost
    a peer; noise.
    """

    known: frozenset[int] = frozenset()
    causing: frozenset[int] = frozenset()
    bare_signals: frozenset[int] = frozenset()
    lost_peers: frozenset[int] = frozenset()
    noise: frozenset[int] = frozenset()


def select_endings(facts: Sequence[Evidence], matched: MatchedFacts, failures: Collection[Evidence]) -> list[Evidence]:
    """Return the endings that are failures of their own. `failures` are the other failures that nobody knows."""
    endings = [fact for fact in facts if is_stated_ending(fact)]
    if not endings:
        return []
    silent = {index for index in matched.known - matched.causing if is_end_report(facts[index])}
    telling = [facts[index] for index in matched.known - matched.bare_signals - silent]
    causing = [facts[index] for index in matched.causing - matched.bare_signals]
    messages = [fact for fact in failures if fact.kind != "exit"]
    lines = {(facts[index].source, facts[index].offset) for index in matched.known | matched.noise}
    endings = [one for one in endings if (one.source, one.offset) not in lines]
    victims = [facts[index] for index in matched.lost_peers]
    strong = [one for one in endings if _is_strong(one) and not _is_covered(one, [*telling, *messages], victims)]
    strong = [one for one in strong if one.origin.rank is not None or not (causing or messages)]
    if strong:
        return strong
    if messages or [facts[index] for index in matched.causing]:
        return []
    others = [facts[index] for index in matched.known - silent]
    stacks = [fact for fact in facts if isinstance(fact.detail, StackDetail)]  # `Timeout (0:05:00)!` stands above one
    weak = [one for one in endings if not _is_strong(one) and not _is_covered(one, others)]
    weak = [one for one in weak if not any(is_among(stack, one) for stack in stacks)]
    stating = [one for one in weak if not is_status_ending(one)]
    exits = [fact for fact in failures if fact.kind == "exit"]
    return stating or ([] if exits else weak)


def _is_strong(fact: Evidence) -> bool:
    return isinstance(fact.detail, EndingDetail) and fact.detail.strength == "strong"


def is_stated_ending(fact: Evidence) -> bool:
    """Whether a fact is an ending with a form or a term of failing."""
    return isinstance(fact.detail, EndingDetail) and fact.detail.strength != "unlike"


def is_among(fact: Evidence, ending: Evidence) -> bool:
    """Whether a fact stands among the lines of an ending."""
    first = ending.detail.first if isinstance(ending.detail, EndingDetail) else ending.offset
    return fact.source == ending.source and first <= fact.offset <= ending.end


def _is_covered(ending: Evidence, others: Collection[Evidence], victims: Collection[Evidence] = ()) -> bool:
    """Whether one of the others is of the same rank, or stands among the same last lines.

    Not the `victims` of another rank, or of none, that stand behind the ending: they lost the process that ended.
    """
    rank = ending.origin.rank
    for other in others:
        if rank is not None and other.origin.rank == rank and other.kind != "exit":
            return True
        if other in victims and ending.offset < other.offset:
            continue
        if is_among(other, ending) and (rank is None or other.origin.rank in (rank, None)):
            return True
    return False
