"""Choose the root cause among the candidates that nothing explains. Every loser gets a sentence that says why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import LONG_SILENCE, RuleContext
from triage.diagnose.graph import EMPTY_CONTEXT, is_known_rival, root_tier, sort_tier
from triage.diagnose.headline import has_no_message
from triage.diagnose.survival import is_uncertain
from triage.model.details import ExceptionDetail, ExitDetail

_TOGETHER = 1.0  # seconds
# `Inner Error!`, `CUDNN_STATUS_INTERNAL_ERROR`, `unknown error`: something failed, and not what.
_WITHOUT_REASON = lazy_re(
    r"(?i)(?:\b|_)(?:inner|internal|unknown|unspecified|unexpected|unhandled)[ _](?:\w{1,20}[ _])?error\b"
)
_LONGEST_MESSAGE = 500
_BEHIND_POSSIBLE = 1.5  # from the tier of a stated cause to behind that of a possible one


@dataclass(frozen=True, slots=True)
class Verdict:
    """The chosen root, the other unexplained candidates, and the confidence in the choice.

    `root` is None where nothing failed, or only symptoms were found. Of the others, those `alongside` began at the
    same time on other ranks, with evidence as strong.
    """

    root: Candidate | None
    others: tuple[Candidate, ...]
    confidence: float
    alongside: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class RootContest:
    """What the rules of the choice look at. `failed_exits` are the ranks whose processes ended with an exit code."""

    candidates: Sequence[Candidate]
    context: RuleContext
    failed_exits: frozenset[int] = frozenset()


def stated_first(contest: RootContest, one: Candidate) -> float:
    """A line that states a cause comes before a possible cause, then an inference, then a stop from outside. A failure
    that no signature knows comes behind a known possible cause that other ranks show before it, and what lines only
    speak of behind a possible cause.
    """
    follows_known = any(is_known_rival(other, one) and other.comes_first(one) for other in contest.candidates)
    is_behind = follows_known or all(map(is_uncertain, one.facts))
    return (root_tier(one) or 0) + _BEHIND_POSSIBLE * is_behind


def uncaught_first(contest: RootContest, one: Candidate) -> bool:
    """An exception that the job's own code caught and printed may have ended nothing: it comes after others, unless the
    launcher saw its process fail.
    """
    return _is_caught(one) and not contest.failed_exits & set(one.ranks)


def _is_caught(one: Candidate) -> bool:
    return all(isinstance(fact.detail, ExceptionDetail) and fact.detail.caught for fact in one.facts)


def earlier_first(contest: RootContest, one: Candidate) -> float:
    """What began later for sure than another of the same strength is not the root. Where lines have no time: ranks that
    report steps long after the others had raised are not where it began.
    """
    rivals = [other for other in contest.candidates if root_tier(other) == root_tier(one)]
    is_later = any(other.clearly_before(one) for other in rivals)
    return 2 * is_later + any(_stopped_before(contest.context, other, one) for other in rivals)


def _stopped_before(context: RuleContext, one: Candidate, other: Candidate) -> bool:
    """Whether all ranks of the first wrote their last line long before those of the other, and not in a collective."""
    mine, theirs = set(one.ranks), set(other.ranks)
    reporting = context.last_step.keys() & context.last_time.keys()
    if not mine or not theirs or mine & theirs or not mine | theirs <= reporting:
        return False
    if any(fact.fields.get("op") for fact in one.facts):
        return False
    clock, first = min(context.last_time[rank] for rank in theirs)
    return all(
        own_clock == clock and when < first - LONG_SILENCE
        for own_clock, when in (context.last_time[rank] for rank in mine)
    )


def more_telling_first(contest: RootContest, one: Candidate) -> float:
    """Of unknown failures that nothing else orders, one with a message comes before one without; one with a reason
    before `internal error`; one that a line of the job's own code raised before others.
    """
    if one.signature is not None:
        return 0
    is_in_library = not any(fact.fields.get("function") and not fact.fields.get("op") for fact in one.facts)
    return 2 * _vagueness(one) + is_in_library


def _vagueness(one: Candidate) -> int:
    """Return 0 for a failure with a reason, 1 for `internal error` and its like, 2 or more for one without message."""
    is_silent = all(map(has_no_message, one.facts))
    is_vague = all(_WITHOUT_REASON.search(fact.text[:_LONGEST_MESSAGE]) for fact in one.facts)
    return 2 * is_silent + is_vague


CHOOSING: tuple[Callable[[RootContest, Candidate], object], ...] = (
    stated_first,
    uncaught_first,
    earlier_first,
    more_telling_first,
)


def choose_root(
    candidates: Sequence[Candidate], without: frozenset[str] = frozenset(), context: RuleContext = EMPTY_CONTEXT
) -> tuple[Candidate | None, tuple[Candidate, ...]]:
    """Return the root among the unexplained candidates and the others, best first; each loser's `why` says why."""
    unexplained = [one for one in candidates if not one.explained_by and root_tier(one) is not None]
    contest = RootContest(_earliest_of_many(unexplained), context, _failed_exits(context))
    rules = [rule for rule in CHOOSING if rule.__name__.replace("_", "-") not in without]
    keys = {candidate.id: tuple(rule(contest, candidate) for rule in rules) for candidate in unexplained}
    ordered = sorted(unexplained, key=lambda candidate: (*keys[candidate.id], *_place_order(candidate)))
    if not ordered:
        return None, ()
    root, *others = ordered
    for other in others:
        other.why.append(_why_lost(root, other, context))
    return root, tuple(others)


def _place_order(one: Candidate) -> tuple[object, ...]:
    """Order what no rule orders: what the launcher says it saw first, then signatures by their ids, then unknown
    failures by the places of their lines.
    """
    is_seen_late = not any(isinstance(fact.detail, ExitDetail) and fact.detail.first_observed for fact in one.facts)
    time = one.first_time
    where = min(((fact.source, fact.offset) for fact in one.facts), default=("", 0))
    by_place = (time is None, time or 0.0, *where)
    return (is_seen_late, one.signature is None, one.id if one.signature else "", *by_place, one.id)


def began_together(root: Candidate, others: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the independent failures that began on other ranks within a second of the root, with as strong evidence.

    Where no timestamps can be compared, nothing shows that one came first, so they count too.
    """
    return tuple(
        other for other in others if _is_independent(root, other) and _seconds_between(root, other) <= _TOGETHER
    )


def _is_independent(one: Candidate, other: Candidate) -> bool:
    """Whether both are stated failures of known, different ranks, none of them a lost peer, a stop or an ending, and
    the second says as much of its reason as the first.
    """
    both = (one, other)
    return (
        root_tier(one) == root_tier(other)
        and _vagueness(other) <= _vagueness(one)
        and _is_caught(other) <= _is_caught(one)
        and not any(each.indicates or each.is_inferred or each.is_exit_only or not each.ranks for each in both)
        and not set(one.ranks) & set(other.ranks)
    )


def _seconds_between(one: Candidate, other: Candidate) -> float:
    mine, theirs = one.start.first, other.start.first
    without_clock = math.inf if one.stands_before(other) else 0.0
    return min((abs(mine[clock] - theirs[clock]) for clock in mine.keys() & theirs.keys()), default=without_clock)


def _failed_exits(context: RuleContext) -> frozenset[int]:
    """Return the ranks whose processes failed by an exit code: neither stopped by the launcher nor by a signal."""
    return frozenset(
        fact.origin.rank
        for fact in context.exits
        if fact.origin.rank is not None
        and isinstance(fact.detail, ExitDetail)
        and fact.detail.is_own_failure
        and not fact.detail.signal
    )


def _earliest_of_many(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Of thousands of unknown failures, only the first of each tier and clock need to be compared in time."""
    if len(candidates) <= 64:
        return candidates
    earliest: dict[tuple[int | None, str], Candidate] = {}
    for one in candidates:
        for clock, when in one.start.latest.items():
            key = (root_tier(one), clock)
            if key not in earliest or when < earliest[key].start.latest[clock]:
                earliest[key] = one
    return list({one.id: one for one in earliest.values()}.values())


def _why_lost(root: Candidate, other: Candidate, context: RuleContext) -> str:
    if sort_tier(other) > sort_tier(root):
        return f"Also unexplained; {root.id} is the more likely start"
    if root.clearly_before(other):
        mine, theirs = root.start.first, other.start.first
        delays = [theirs[clock] - mine[clock] for clock in mine.keys() & theirs.keys()]
        if delays:
            return f"Began {min(delays):.0f} s after {root.id}"
        return f"Stands below {root.id} in the same file, and its time is later"
    if _stopped_before(context, root, other):
        ranks = format_ranks(other.ranks)
        return f"{ranks} went on for more than {LONG_SILENCE:.0f} s after the last line of {format_ranks(root.ranks)}"
    return f"Also unexplained; nothing in the files shows whether this or {root.id} came first"
