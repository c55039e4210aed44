"""Rules about which collective each rank was in: by the line of the program, operation, size, process group, number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext, ranks_of
from triage.diagnose.phrases import agree
from triage.diagnose.sequences import PROGRESS_HINT, GroupProgress, compare_progress, compare_waits, group_of
from triage.evidence.inference import make_inferences
from triage.model.evidence import Evidence

_WORK = lazy_re(
    r"Work[NH]CCL\((?:SeqNum=(?P<seq>\d+), ?)?OpType=(?P<op>\w+)(?:, ?TensorShape=\[[^\]]*\])?"
    r"(?:, ?NumelIn=(?P<numel>\d+))?[^)]*"
    r"Timeout\(ms\)=(?P<timeout>\d+)\)(?: ran for (?P<ran>\d+) milliseconds)?"
)
# Operations in which ranks may give tensors of different sizes, or of which only two take part.
_UNEVEN = lazy_re(r"ALLTOALL|ALL_TO_ALL|SEND|RECV|COALESCED|GATHER$|SCATTER$")
# A watchdog that noticed a timeout so much too late did not run in between.
_LATE_FACTOR, _LATE_MILLISECONDS = 1.2, 10_000


@dataclass(frozen=True, slots=True)
class Wait:
    """The collective in which a rank timed out. `group` is the key of the process group, `label` its name."""

    rank: int
    group: str
    label: str
    seq: int | None
    op: str
    numel: int | None
    timeout: int
    ran: int | None
    fact: Evidence


def find_waits(context: RuleContext) -> list[Wait]:
    """Return the first such collective of each rank and group, in order of the ranks."""
    waits: dict[tuple[int, str], Wait] = {}
    for fact in context.evidence_of("waiting"):
        work = _WORK.search(fact.text)
        rank = fact.origin.rank
        if work is None or rank is None:
            continue
        group, label = group_of(fact.text)
        if (rank, group) not in waits:
            seq, numel, ran = (int(work[name]) if work[name] else None for name in ("seq", "numel", "ran"))
            waits[rank, group] = Wait(rank, group, label, seq, work["op"], numel, int(work["timeout"]), ran, fact)
    named = {rank for rank, group in waits if group}  # the first of a watchdog's lines does not name the group
    return [waits[rank, group] for rank, group in sorted(waits) if group or rank not in named]


def divergent_call(context: RuleContext) -> list[Evidence]:
    """Every rank waits, but not in the same call: the few that wait elsewhere took another way through the program. If
    that is rank 0 alone, a collective stands inside `if rank == 0`.
    """
    stuck = context.evidence_of("waiting", "peer-lost") if context.matched.get("waiting") else []
    by_rank = {fact.origin.rank: fact for fact in reversed(stuck) if fact.origin.rank is not None and _has_line(fact)}
    waiting = [fact for fact in by_rank.values() if fact.fields.get("file")]
    if len(waiting) < 3 or ranks_of(waiting) != context.all_ranks:
        return []
    (usual, most), *others = Counter(map(_call_site, waiting)).most_common()
    if not others or most * 2 <= len(waiting):
        return []
    odd = [fact for fact in waiting if _call_site(fact) != usual]
    strange = ranks_of(odd)
    there = _format_call(next(fact for fact in waiting if fact.origin.rank not in strange))
    text = f"all ranks wait, but {format_ranks(strange)} in {_format_call(odd[0])} and the others in {there}"
    if strange != {0}:
        return make_inferences("divergent-call", strange, text, odd[0], basis="absence")
    text += "; a collective inside `if rank == 0` looks like this"
    return make_inferences("rank-conditional", {0}, text, odd[0], basis="absence")


def odd_operation(context: RuleContext) -> list[Evidence]:
    """At the same number of the same group, most ranks wait in one operation and a few in another, or in one of another
    size.
    """
    for same in _by_group(context.once(find_waits)).values():
        numbers = Counter(wait.seq for wait in same if wait.seq is not None)
        if not numbers:
            continue
        number, _ = numbers.most_common(1)[0]
        here = [wait for wait in same if wait.seq == number]
        if len(here) < 3:
            ended = {wait.rank for wait in here if context.doing.get(wait.rank) == "epoch-over"}
            if {wait.rank for wait in here} == context.all_ranks and (pair := _infer_pair(here, number or 0, ended)):
                return pair
            continue
        odd = _minority({wait.rank: wait.op for wait in here})
        if odd:
            return _infer_odd("divergent-call", odd, here, "in {0.op}", number or 0)
        sizes = {wait.rank: str(wait.numel) for wait in here if wait.numel is not None and not _UNEVEN.search(wait.op)}
        odd = _minority(sizes) if len(sizes) == len(here) else set()
        if odd:
            return _infer_odd("shape-mismatch", odd, here, "in {0.op} of {0.numel} elements", number or 0)
    return []


def _infer_pair(here: Sequence[Wait], number: int, ended: set[int]) -> list[Evidence]:
    """The two ranks of a job wait in different operations, or in one of different sizes: either can be wrong, unless
    only one of them had `ended` its epoch.
    """
    if len(here) != 2:
        return []
    first, second = here
    is_same = first.op == second.op
    if is_same and (None in (first.numel, second.numel) or first.numel == second.numel or _UNEVEN.search(first.op)):
        return []
    form = "in {0.op} of {0.numel} elements" if is_same else "in {0.op}"
    collective = f"collective {number} of {first.label or 'the group'}"
    waits = f"rank {first.rank} waits {form.format(first)}, rank {second.rank} {form.format(second)}"
    rule = "shape-mismatch" if is_same else "divergent-call"
    ranks = ended if len(ended) == 1 else {first.rank, second.rank}
    waits += f"; only {format_ranks(ended)} had finished the epoch" if len(ended) == 1 else ""
    return make_inferences(rule, ranks, f"at {collective}, {waits}", first.fact)


def _infer_odd(rule: str, odd: set[int], here: Sequence[Wait], form: str, number: int) -> list[Evidence]:
    strange = next(wait for wait in here if wait.rank in odd)
    usual = next(wait for wait in here if wait.rank not in odd)
    collective = f"collective {number} of {usual.label or 'the group'}"
    waits = f"{format_ranks(odd)} {agree(odd, 'waits', 'wait')} {form.format(strange)}"
    return make_inferences(rule, odd, f"at {collective}, {waits}, the others {form.format(usual)}", strange.fact)


def odd_group(context: RuleContext) -> list[Evidence]:
    """Every rank waits, most in one process group and a few in another: two groups used in different order, or the
    wrong group.
    """
    waits = context.once(find_waits)
    groups = _by_group(waits)
    ranks = {wait.rank for wait in waits}
    if len(groups) < 2 or ranks != context.all_ranks or len(waits) != len(ranks):
        return []
    usual, *others = sorted(groups.values(), key=lambda same: (-len(same), same[0].group))
    odd = {wait.rank for same in others for wait in same}
    is_pair = len(ranks) == 2  # without a majority: either can be wrong
    if (len(usual) <= len(odd) and not is_pair) or len(others) > 1:
        return []
    members = _group_members(context)
    strange, there = others[0][0], usual[0]
    rest = {wait.rank for wait in usual}
    is_crossed = odd <= members.get(there.group, set()) and rest & members.get(strange.group, set()) - odd
    text = (
        f"{format_ranks(odd)} {agree(odd, 'waits', 'wait')} in group {strange.label or strange.group}"
        f" while {format_ranks(rest)} wait in group {there.label or there.group}"
    )
    if is_crossed:
        text += "; all belong to both groups, so each waits for the other"
    odd = ranks if is_pair else odd
    return make_inferences("group-order" if is_crossed else "wrong-group", odd, text, strange.fact)


def numbers(context: RuleContext) -> list[Evidence]:
    """The watchdogs print how far each rank had come: some are ahead or behind, or all are at the same place."""
    conclusion = compare_progress(context.facts_with(PROGRESS_HINT), context.all_ranks)
    if conclusion is None:
        unnamed = [wait for wait in context.once(find_waits) if not wait.group and wait.seq is not None]
        reached = [GroupProgress(wait.rank, wait.seq or 0, -1, wait.fact) for wait in unnamed]
        conclusion = compare_waits(reached, context.all_ranks)
    if conclusion is None:
        return []
    text = f"{format_ranks(conclusion.ranks)} {conclusion.text}"
    return make_inferences(conclusion.rule, conclusion.ranks, text, conclusion.evidence)


def watchdog_starved(context: RuleContext) -> list[Evidence]:
    """A watchdog saw the timeout much later than it had to: the process, or its host, stood still."""
    late = [
        wait
        for wait in context.once(find_waits)
        if wait.ran is not None and wait.ran > max(wait.timeout * _LATE_FACTOR, wait.timeout + _LATE_MILLISECONDS)
    ]
    if not late:
        return []
    worst = max(late, key=lambda wait: (wait.ran or 0, -wait.rank))
    delay = f"only after {worst.ran} ms"
    text = f"the watchdog of rank {worst.rank} saw a timeout of {worst.timeout} ms {delay}: it did not run in between"
    return make_inferences("watchdog-starved", {wait.rank for wait in late}, text, worst.fact)


def _by_group(waits: Sequence[Wait]) -> dict[str, list[Wait]]:
    groups: dict[str, list[Wait]] = defaultdict(list)
    for wait in waits:
        groups[wait.group].append(wait)
    return dict(sorted(groups.items()))


def _minority(values: Mapping[int, str]) -> set[int]:
    """Return the ranks whose value is not that of most; none without a clear majority."""
    counts = Counter(values.values()).most_common()
    if len(counts) < 2 or counts[0][1] * 2 <= len(values):
        return set()
    return {rank for rank, text in values.items() if text != counts[0][0]}


def _group_members(context: RuleContext) -> dict[str, set[int]]:
    """Return process group to the ranks that ever write as its members."""
    members: dict[str, set[int]] = defaultdict(set)
    for fact in context.facts_with("[PG "):
        if fact.origin.rank is not None:
            members[group_of(fact.text)[0]].add(fact.origin.rank)
    return members


def _has_line(fact: Evidence) -> bool:
    return bool(fact.fields.get("line"))


def _call_site(fact: Evidence) -> tuple[str, str, str]:
    return fact.fields.get("op", ""), fact.fields["file"], fact.fields["line"]


def _format_call(fact: Evidence) -> str:
    op, file, line = _call_site(fact)
    return f"{op or 'a call'} at {file.rsplit('/', 1)[-1]}:{line}"
