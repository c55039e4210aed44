"""Who is at fault where ranks wait in collectives, by the numbers, operations and sizes that their watchdogs print.

The numbers of a group show who never came to a call, who called something else at the same number, and who waits in
another group. Where they allow more than one story, the inference says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_range, format_ranks
from triage.diagnose.context import RuleContext
from triage.diagnose.open_calls import (
    Call,
    CallKey,
    describe_stacks,
    find_calls,
    find_job_calls,
    read_job_progress,
)
from triage.diagnose.phrases import agree
from triage.diagnose.progress import Group, GroupProgress, Progress
from triage.diagnose.rules.calls import compare_partners, compare_transfers
from triage.evidence.inference import DIFFERS, Conclusion, make_inferences, may_end_early
from triage.model.details import InferenceDetail, LaunchesDetail
from triage.model.evidence import Evidence

# Numbers so many times apart are rather those of two groups, where the lines do not name the group.
_OTHER_GROUP_FACTOR = 3
_EITHER = "the lines do not show which of them is right"
_UNNAMED = "the lines do not name the group, and these may be calls of several groups"
_OTHER_GROUP = "a collective of a group whose counters no line shows may hang"
_TIMEOUT = lazy_re(r"(?i)\btim(?:ed|ing)[ -]?out\b|\boperation timeout\b")
_STOPPED = "nothing shows that the job hung: if it was stopped while it ran, ranks are some calls apart"
_MAY_WAIT = "NCCL does not log when a call ends: a rank that waits for its device or in a transfer enqueues no more"
# Conclusions from how many calls a rank enqueued.
_OF_COUNTS = ("lagging-rank", "extra-collective", "group-order")
_MOST_SHOWN = 3
_PAIR = 2


def open_calls(context: RuleContext) -> list[Evidence]:
    """The watchdogs print in which call each rank waits, and how far it came: the chain of waits ends at a rank that
    did not come, at a call that ranks made differently, or in a ring.
    """
    progress = context.once(read_job_progress)
    calls = context.once(find_job_calls)
    return _infer(context, _conclude(context, progress, calls))


def same_call(context: RuleContext) -> list[Evidence]:
    """All ranks wait in the same call, or in none: a few enqueued more or less than most, or the transfer hangs, or all
    hang outside of collectives; else nothing shows who is at fault. Where files show one rank, others must exist.
    """
    progress = context.once(read_job_progress)
    calls = context.once(find_job_calls)
    if len(calls) > 1 or len(context.all_ranks) < _PAIR:
        return []
    conclusion = _find_compared(progress, calls) or _compare_enqueued(context, progress)
    return _infer(context, conclusion or _find_stuck(context, calls, progress))


def launched_calls(context: RuleContext) -> list[Evidence]:
    """NCCL logs each call that a rank enqueues in a communicator: at some number a rank called something else."""
    conclusion = context.once(_conclude_launches)
    if conclusion is None or conclusion.rule in _OF_COUNTS:
        return []
    return _infer_launches(conclusion, conclusion.uncertainty)


def launched_counts(context: RuleContext) -> list[Evidence]:
    """Something timed out, and by NCCL's log of calls a rank enqueued fewer than others of its communicator, unless the
    watchdogs name a rank for certain.
    """
    conclusion = context.once(_conclude_launches)
    if conclusion is None or conclusion.rule not in _OF_COUNTS or not _has_timeout(context):
        return []
    if any(isinstance(one.detail, InferenceDetail) and not one.detail.uncertainty for one in open_calls(context)):
        return []
    return _infer_launches(conclusion, conclusion.uncertainty or _MAY_WAIT)


def _infer_launches(conclusion: Conclusion, uncertainty: str) -> list[Evidence]:
    return make_inferences(conclusion.rule, conclusion.ranks, conclusion.text, conclusion.fact, uncertainty=uncertainty)


def describe_differences(context: RuleContext) -> list[Evidence]:
    """Say how far apart ranks are where no line says that something timed out: a running job looks like this, too."""
    conclusion = context.once(_conclude_launches)
    if conclusion is None:
        return []
    return make_inferences(DIFFERS, (), f"{conclusion.text}; {_STOPPED}", conclusion.fact, basis="absence")


def _conclude_launches(context: RuleContext) -> Conclusion | None:
    if not any(isinstance(fact.detail, LaunchesDetail) for fact in context.facts):
        return None
    from triage.diagnose.launches import read_launches

    progress = context.once(read_launches)
    calls = list(find_calls(progress, context.all_ranks).values()) if progress.entries else []
    if not calls or (context.finished and context.finished >= context.ranks):
        return None
    conclusion = _conclude(context, progress, calls)
    if conclusion is not None and (set(conclusion.ranks) - progress.first_open.keys()) & context.failed:
        return None  # what a rank that waits in nothing failed with says more
    return conclusion


def _has_timeout(context: RuleContext) -> bool:
    return any(
        not isinstance(fact.detail, LaunchesDetail) and fact.kind != "inference" and _TIMEOUT.search(fact.text)
        for fact in context.facts
    )


def _infer(context: RuleContext, conclusion: Conclusion | None) -> list[Evidence]:
    waiting = context.once(read_job_progress).first_open.keys()
    if conclusion is None or (set(conclusion.ranks) - waiting) & context.failed:
        return []  # what a rank that waits in nothing failed with says more
    return make_inferences(
        conclusion.rule, conclusion.ranks, conclusion.text, conclusion.fact, uncertainty=conclusion.uncertainty
    )


def _conclude(context: RuleContext, progress: Progress, calls: Sequence[Call]) -> Conclusion | None:
    collectives = [call for call in calls if not call.is_transfer]
    if conclusion := _find_difference(context, collectives):
        return conclusion
    if conclusion := _compare_numbers(collectives) or _find_behind(collectives):
        return conclusion
    transfers = [call for call in calls if call.is_transfer]
    if conclusion := compare_partners(transfers):
        return conclusion
    if context.all_ranks - progress.first_open.keys():
        return None  # the rules about silent ranks know more
    if _has_dump(context):
        return None
    if progress.members:
        return _find_ring(progress, calls)
    if transfers:
        return compare_transfers(transfers)
    return _find_ring(progress, collectives) or _find_overlap(collectives)


def calls_differ(context: RuleContext) -> bool:
    """Whether ranks wait in calls of one number that cannot match, and it is clear which are odd."""
    conclusion = _find_difference(context, [call for call in context.once(find_job_calls) if not call.is_transfer])
    return conclusion is not None and not conclusion.uncertainty


def _find_difference(context: RuleContext, collectives: Iterable[Call]) -> Conclusion | None:
    compared = (_compare_calls(context, call) for call in collectives)
    return next((conclusion for conclusion in compared if conclusion), None)


def _compare_calls(context: RuleContext, call: Call) -> Conclusion | None:
    """At one number of a group, ranks wait in different operations, or in one of different sizes or data types."""
    rule, values = next(((name, one) for name, one in _list_values(call) if len(set(one.values())) > 1), ("", {}))
    if not rule:
        return None
    odd, is_clear = _find_odd(context, values)
    at = f"at #{call.seq} of {call.group.label}" if call.seq is not None else f"in {call.group.label}"
    parts = _describe_values(values, odd, call, rule)
    uncertainty = "" if is_clear else _EITHER
    if call.seq is None or (call.silent and len(odd) > 1):
        uncertainty = uncertainty or "not all ranks show their call"
    if not call.group.key and call.waiting.keys() != context.all_ranks:
        uncertainty = uncertainty or _UNNAMED
    text = f"{at}, {parts}"
    if odd == {rank for rank in odd if context.doing.get(rank) == "epoch-over"} and len(values) == 2 and is_clear:
        text += f"; only {format_ranks(odd)} had finished the epoch"
    fact = call.waiting[min(odd)].fact
    return Conclusion(rule, odd, text, fact, uncertainty)


def _list_values(call: Call) -> Iterator[tuple[str, Mapping[int, object]]]:
    """Yield what ranks must agree on, by rank, with the rule that says that they do not."""
    calls = {rank: entry.call for rank, entry in call.waiting.items() if entry.call}
    yield "divergent-call", {rank: one.op for rank, one in calls.items() if one.op}
    yield "shape-mismatch", {rank: one.comparable_sizes for rank, one in calls.items() if one.sizes}
    yield "dtype-mismatch", {rank: one.data_type for rank, one in calls.items() if one.data_type}


def _find_odd(context: RuleContext, values: Mapping[int, object]) -> tuple[set[int], bool]:
    """Return the ranks whose value is not that of most, and whether there is a clear majority; without one, all ranks,
    or of two the one that alone had ended its epoch.
    """
    (usual, most), *_ = Counter(values.values()).most_common()
    if most * 2 > len(values):
        return {rank for rank, value in values.items() if value != usual}, True
    ended = {rank for rank in values if context.doing.get(rank) == "epoch-over"}
    if len(values) == 2 and len(ended) == 1:
        return ended, True
    return set(values), False


def _describe_values(values: Mapping[int, object], odd: Set[int], call: Call, rule: str) -> str:
    """`rank 2 waits in BROADCAST, ranks 0, 1 and 3 in ALLREDUCE`, the odd ones first."""
    ranks: dict[object, list[int]] = defaultdict(list)
    for rank, value in sorted(values.items()):
        ranks[value].append(rank)
    parts: list[str] = []
    for value, same in sorted(ranks.items(), key=lambda item: (not set(item[1]) <= odd, item[1]))[:_MOST_SHOWN]:
        name = str(value)
        if rule != "divergent-call":
            unit = " elements" if rule == "shape-mismatch" else ""
            name = f"{call.waiting[same[0]].op} of {_sizes(value)}{unit}"
        verb = "" if parts else f" {agree(same, 'waits', 'wait')}"
        parts.append(f"{format_ranks(same)}{verb} in {name}")
    return ", ".join(parts)


def _sizes(value: object) -> str:
    sizes = list(dict.fromkeys(value)) if isinstance(value, tuple) else [value]
    return " to ".join(map(str, sizes))


def _compare_numbers(calls: Sequence[Call]) -> Conclusion | None:
    """In one group, ranks wait at different numbers, and none of its ranks is missing at the lowest."""
    groups: dict[Group, list[Call]] = defaultdict(list)
    for call in calls:
        if call.seq is not None:
            groups[call.group].append(call)
    for group, same in groups.items():
        lowest = min(same, key=lambda call: call.seq or 0)
        is_explained = lowest.elsewhere or lowest.behind or (lowest.silent and _is_one_sided(lowest))
        if len(same) > 1 and not is_explained:
            return _conclude_numbers(group, same)
    return None


def _is_one_sided(call: Call) -> bool:
    return all(not (op := entry.op) or may_end_early(op) for entry in call.waiting.values())


def _conclude_numbers(group: Group, calls: Sequence[Call]) -> Conclusion:
    waiting = {rank: call for call in calls for rank in call.waiting}
    ordered = sorted(calls, key=lambda call: (len(call.waiting), call.seq or 0))
    usual = ordered[-1]
    others = [call for call in ordered if call is not usual]
    is_clear = len(usual.waiting) * 2 > len(waiting)
    lower = [call for call in others if (call.seq or 0) < (usual.seq or 0)]
    odd = list(lower or others) if is_clear else ordered
    ranks = {rank for call in odd for rank in call.waiting}
    parts = [f"{_who_waits(call)} in {call.first.call}" for call in sorted(odd, key=lambda call: call.seq or 0)]
    text = "; ".join(parts[:_MOST_SHOWN])
    if is_clear:
        text += f" of {group.label}, {_describe_order(odd, usual)}"
    else:
        text += f" of {group.label}: the lower number waits for ranks that are past it, so their calls do not match"
    is_far = not group.key and any(_are_far_apart(call, usual) for call in odd)
    has_other_op = odd[0].first.op != usual.first.op if is_clear else len({call.first.op for call in odd}) > 1
    rule = (
        "divergent-call" if has_other_op or is_far else "lagging-rank" if lower or not is_clear else "extra-collective"
    )
    may_have_ended = has_other_op or not lower
    uncertainty = (
        _EITHER if not is_clear else "the transfer may have ended on some ranks only" if may_have_ended else ""
    )
    if is_far or not group.key:
        uncertainty = _UNNAMED
    return Conclusion(rule, ranks, text, odd[0].first.fact, uncertainty)


def _describe_order(odd: Sequence[Call], usual: Call) -> str:
    count = len(usual.waiting)
    if (odd[0].seq or 0) < (usual.seq or 0):
        return f"which {count} ranks have passed: they wait in {usual.first.call}"
    return f"while {count} ranks came only to {usual.first.call}"


def _are_far_apart(one: Call, other: Call) -> bool:
    low, high = sorted((one.seq or 0, other.seq or 0))
    return high >= _OTHER_GROUP_FACTOR * low


def _who_waits(call: Call) -> str:
    return f"{format_ranks(call.waiting)} {agree(call.waiting, 'waits', 'wait')}"


def _find_behind(calls: Sequence[Call]) -> Conclusion | None:
    """Ranks had enqueued less than the call in which others wait, and wait in nothing themselves."""
    late = [call for call in calls if call.behind]
    if not late:
        return None
    call = max(late, key=lambda one: (len(one.waiting), -min(one.waiting)))
    behind: dict[int, int] = {rank: last for one in late for rank, last in (one.behind or {}).items()}
    waiting = {rank for one in late for rank in one.waiting}
    last = f"work {format_range(min(behind.values()), max(behind.values()))}"
    last = "nothing" if max(behind.values()) < 0 else last
    if len(behind) > len(waiting):
        text = f"only {_who_waits(call)} in {call}; {format_ranks(behind)} enqueued {last} and"
        text += f" {agree(behind, 'waits', 'wait')} in no collective"
        return Conclusion(
            "extra-collective", waiting, text, call.first.fact, "the others may all hang outside of collectives"
        )
    text = f"{format_ranks(behind)} enqueued only {last} and {agree(behind, 'waits', 'wait')} in no collective;"
    text += f" {_who_waits(call)} in {call}"
    uncertainty = "" if len(behind) < len(waiting) else "the call of the others may be one too many"
    if call.silent:
        silent = format_ranks(call.silent)
        uncertainty = uncertainty or f"no line shows whether {silent} came"
    return Conclusion("lagging-rank", behind, text, call.first.fact, uncertainty)


def _compare_enqueued(context: RuleContext, progress: Progress) -> Conclusion | None:
    """All ranks wait in the same call, or in none, but a few enqueued more or less than most; or all ended all work."""
    for group, entries in progress.by_group.items():
        counts = {rank: one.enqueued for rank, one in entries.items() if one.enqueued is not None}
        if len(counts) < 2 or not context.all_ranks <= counts.keys():
            continue
        (usual, most), *others = Counter(counts.values()).most_common()
        if others and most * 2 > len(counts):
            return _conclude_enqueued(group, entries, counts, usual)
    is_idle = not progress.first_open and context.all_ranks <= progress.by_rank.keys()
    groups = [entries for entries in progress.by_group.values() if context.all_ranks <= entries.keys()]
    if is_idle and groups:
        first = groups[0][min(groups[0])]
        text = (
            f"{format_ranks(context.all_ranks)} completed all work enqueued in {first.group.label} ({first.enqueued})"
        )
        text += ", so they hang outside of collectives"
        return Conclusion("outside-collectives", context.all_ranks, text, first.fact, _OTHER_GROUP)
    return None


def _conclude_enqueued(
    group: Group, entries: Mapping[int, GroupProgress], counts: Mapping[int, int], usual: int
) -> Conclusion:
    behind = {rank for rank, count in counts.items() if count < usual}
    odd = behind or {rank for rank, count in counts.items() if count > usual}
    numbers = format_range(min(counts[rank] for rank in odd), max(counts[rank] for rank in odd))
    only = "only " if behind else ""
    text = f"{format_ranks(odd)} enqueued {only}work {numbers} of {group.label}; the others {usual}"
    uncertainty = "a rank may enqueue more or less before it waits, without a fault"
    rule = "lagging-rank" if behind else "extra-collective"
    return Conclusion(rule, odd, text, entries[min(odd)].fact, uncertainty)


def _has_dump(context: RuleContext) -> bool:
    """Whether a flight dump shows who is at fault: it has what each rank waits for, also the partners of transfers."""
    return any(
        isinstance(one.detail, InferenceDetail) and one.detail.evidence_kind == "flight" for one in context.facts
    )


def _find_ring(progress: Progress, calls: Sequence[Call]) -> Conclusion | None:
    """Each call waits for a rank that waits in another one."""
    by_key = {call.key: call for call in calls}
    if len(calls) < 2 or any(_next_calls(call, by_key) == [] for call in calls if not call.is_transfer):
        return None
    path: list[Call] = []
    call = min(calls, key=lambda one: (not one.is_whole, min(one.waiting)))
    while call not in path:
        path.append(call)
        following = _next_calls(call, by_key)
        if not following:
            return None
        call = by_key[following[0]]
    ring = path[path.index(call) :]
    return None if all(one.is_transfer for one in ring) else _conclude_ring(progress, ring)


def _next_calls(call: Call, by_key: Mapping[CallKey, Call]) -> list[CallKey]:
    """Return the calls for which a call waits; of a group with unknown members, that may be any other."""
    if call.elsewhere:
        return sorted({key for keys in call.elsewhere.values() for key in keys} & by_key.keys())
    return [] if call.is_whole else sorted(by_key.keys() - {call.key})


def _conclude_ring(progress: Progress, ring: Sequence[Call]) -> Conclusion | None:
    """Of the largest group with known members, the few that wait in it, or that do not, are odd."""
    known = [call for call in ring if call.elsewhere]
    if not known:
        return None
    usual = max(known, key=lambda one: (_count_members(one), len(one.waiting), -min(one.waiting)))
    others = [call for call in ring if call is not usual]
    away = {rank for call in others for rank in call.waiting}
    is_tied = len(usual.waiting) * 2 == _count_members(usual)
    is_odd = len(usual.waiting) * 2 < _count_members(usual)
    ranks = usual.waiting.keys() | away if is_tied else usual.waiting.keys() if is_odd else away
    if all(call.elsewhere for call in ring):
        ranks = ranks & {rank for call in ring for rank in call.elsewhere or ()}
    ordered = sorted(ring, key=lambda call: (not ranks >= call.waiting.keys(), len(call.waiting), call.key))
    text = ", ".join(f"{_who_waits(call)} in {call}" for call in ordered[:_MOST_SHOWN])
    if not progress.members and not _are_members_of_both(progress, usual, others):
        uncertainty = "the lines do not show all members of these groups"
        return Conclusion("wrong-group", ranks, text, ordered[0].first.fact, uncertainty)
    text += ": each waits for ranks that wait in another of these calls"
    is_clear = not is_tied and len(ring) == _PAIR and all(_never_came(progress, call) for call in ring)
    uncertainty = "" if is_clear else "any of them may use the wrong order or group"
    return Conclusion("group-order", ranks, text, ordered[0].first.fact, uncertainty)


def _never_came(progress: Progress, call: Call) -> bool:
    """Whether the numbers show that the members that wait elsewhere had not even enqueued the call."""
    entries = progress.by_group[call.group]
    counts = [entries[rank].enqueued if rank in entries else None for rank in call.elsewhere or ()]
    return bool(counts) and all(count is not None and count < (call.seq or 0) for count in counts)


def _find_overlap(calls: Sequence[Call]) -> Conclusion | None:
    """Nobody is missing in two calls, and the same ranks wait in both: they may have entered them in another order."""
    complete = sorted((call for call in calls if not call.elsewhere), key=lambda call: (len(call.waiting), call.key))
    for number, call in enumerate(complete):
        for other in complete[number + 1 :]:
            both = call.waiting.keys() & other.waiting.keys()
            if len(both) >= _PAIR:
                text = f"{format_ranks(both)} wait in {call} and in {other}, and no rank is missing in either"
                uncertainty = "the lines do not show in which order each rank entered them"
                return Conclusion("group-order", both, text, call.first.fact, uncertainty)
    return None


def _count_members(call: Call) -> int:
    return len(call.waiting) + len(call.passed) + len(call.elsewhere or ()) + len(call.silent)


def _are_members_of_both(progress: Progress, usual: Call, others: Sequence[Call]) -> bool:
    """Whether lines show that in each call wait ranks that belong to the group of the other."""
    return all(
        usual.elsewhere is not None
        and one.waiting.keys() <= usual.elsewhere.keys()
        and usual.waiting.keys() & progress.by_group[one.group].keys()
        for one in others
    )


def _find_compared(progress: Progress, calls: Sequence[Call]) -> Conclusion | None:
    """All wait in one call, and torch's own comparison says that a few had not started it."""
    if not calls or calls[0].seq is None:
        return None
    call, seq = calls[0], calls[0].seq
    late = {rank for rank in call.waiting if rank in progress.compared and progress.compared[rank][0] < seq}
    if not late or len(late) * 2 >= len(call.waiting):
        return None
    text = f"{format_ranks(call.waiting)} wait in {call}; torch's own comparison says that {format_ranks(late)} never"
    uncertainty = "such a rank may wait for another one on its device"
    return Conclusion("lagging-rank", late, f"{text} started it", progress.compared[min(late)][1], uncertainty)


def _find_stuck(context: RuleContext, calls: Sequence[Call], progress: Progress) -> Conclusion | None:
    """All ranks wait in one call, and nothing differs: the transfer hangs, if they had completed the one before.

    Ranks are numbered without gaps, and those of a group from 0: a number that is missing is a rank of which nothing
    was read. A rank never waits alone.
    """
    if len(calls) != 1 or calls[0].waiting.keys() != context.all_ranks or len(calls[0].waiting) < _PAIR:
        return None
    call = calls[0]
    if any((entry.local_rank or 0) >= len(call.waiting) for entry in call.waiting.values()):
        return None
    lowest = 0 if call.group.is_default else min(context.all_ranks)
    if max(context.all_ranks) - lowest >= len(context.all_ranks):
        return None
    if call.seq is None or any(entry.completed is None for entry in call.waiting.values()):
        text = f"{format_ranks(call.waiting)} timed out in {call}; no line says which rank did not come"
        return Conclusion("same-wait", (), text, call.first.fact) if call.group in progress.members else None
    text = f"{format_ranks(call.waiting)} all wait in {call} with the same sizes, and no rank is missing:"
    contradiction = describe_stacks(context, call.waiting.keys()).replace("; ", "; but ", 1)
    return Conclusion(
        "stuck-in-collective",
        call.waiting,
        f"{text} the transfer itself hangs{contradiction}",
        call.first.fact,
        "the lines show neither data types nor whether the transfer had started",
    )
