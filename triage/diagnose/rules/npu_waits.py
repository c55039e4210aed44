"""Rules about NPU ranks that wait for each other, by what HCCL wrote of tasks and links that did not end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Set

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_range, format_ranks
from triage.diagnose.context import RuleContext
from triage.diagnose.npu_tasks import FailedTask, NpuReports, read_npu_reports
from triage.diagnose.phrases import agree, join_names
from triage.evidence.inference import make_inferences
from triage.model.evidence import Evidence

_EXEC_TIMEOUT = lazy_re(r"HCCL_EXEC_TIMEOUT\D{0,40}?(\d{2,6})")
_DEFAULT_EXEC_TIMEOUT = 1836
# Calls in which members may give different numbers of elements.
_UNEVEN = lazy_re(r"(?i)alltoall|gatherv|scatterv|^(?:send|recv|receive|batchsendrecv)")
_LONGEST_NAME = 60


def wait_chain(context: RuleContext) -> list[Evidence]:
    """HCCL names the rank for which each rank waits: the waits lead to ranks that report no timeout of their own, or
    into a ring.
    """
    reports = context.once(read_npu_reports)
    awaited_by: dict[int, set[int]] = defaultdict(set)
    for wait in reports.waits:
        awaited_by[wait.awaited].add(wait.rank)
    if not awaited_by:
        return []
    waiters = {wait.rank for wait in reports.waits}
    reporting = waiters | reports.tasks.keys() | context.ranks_with("waiting", "peer-lost")
    ends = awaited_by.keys() - reporting
    if ends & (context.failed | context.finished):
        return []  # a line says what became of it
    if ends:
        return _infer_ends(context, reports, awaited_by, ends, reporting)
    ring = _find_ring(reports)
    return _infer_ring(reports, ring, waiters) if ring else []


def _infer_ends(
    context: RuleContext,
    reports: NpuReports,
    awaited_by: Mapping[int, Set[int]],
    ends: Set[int],
    reporting: Set[int],
) -> list[Evidence]:
    """Return that the ends did not come; where most ranks are silent or many are ends, that they are suspects."""
    direct = {rank for end in ends for rank in awaited_by[end]}
    indirect = _find_waiting_for(awaited_by, direct) - direct
    text = f"{format_ranks(direct)} {agree(direct, 'waits', 'wait')} for {format_ranks(ends)}"
    if indirect:
        text += f", {format_ranks(indirect)} for ranks that wait themselves"
    text += f"; {format_ranks(ends)} {agree(ends, 'reports', 'report')} no timeout"
    fact = next(wait.fact for wait in reports.waits if wait.awaited in ends)
    silent = context.all_ranks - reporting
    is_clear = len(ends) <= max(1, len(reporting) // 2) and len(silent) <= max(1, len(reporting))
    rule = "never-joined" if is_clear else "open-waits"
    return make_inferences(rule, ends, text, fact, basis="absence", waiting=sorted(reporting))


def _find_waiting_for(awaited_by: Mapping[int, Set[int]], ranks: Set[int]) -> set[int]:
    """Return all ranks whose waits lead to these."""
    waiters, pending = set[int](), [*ranks]
    while pending:
        for rank in awaited_by.get(pending.pop(), ()):
            if rank not in waiters:
                waiters.add(rank)
                pending.append(rank)
    return waiters


def _find_ring(reports: NpuReports) -> set[int]:
    """Return the ranks that wait for each other: those left when ranks for which nobody waits, or that wait for nobody,
    are taken away one by one.
    """
    after: dict[int, set[int]] = defaultdict(set)
    before: dict[int, set[int]] = defaultdict(set)
    for wait in reports.waits:
        after[wait.rank].add(wait.awaited)
        before[wait.awaited].add(wait.rank)
    ring = {*after, *before}
    pending = [rank for rank in ring if not after.get(rank) or not before.get(rank)]
    while pending:
        rank = pending.pop()
        if rank not in ring:
            continue
        ring.remove(rank)
        for others, back in ((after, before), (before, after)):
            for other in others.pop(rank, ()):
                back[other].discard(rank)
                if not back[other]:
                    pending.append(other)
    return ring


def _infer_ring(reports: NpuReports, ring: Set[int], waiters: Set[int]) -> list[Evidence]:
    """Return that ranks wait for each other; they are suspects if the waits of others lead to them, or they are two."""
    is_small = len(ring) == 2 or 2 * len(ring) <= len(waiters)
    others = waiters - ring
    text = f"{format_ranks(ring)} wait for each other"
    text += f", and {format_ranks(others)} {agree(others, 'waits', 'wait')} for them" if others else ""
    text += "; nothing shows which of them is at fault" if is_small else "; the waits alone show no suspect"
    fact = next(wait.fact for wait in reports.waits if wait.rank in ring)
    return make_inferences("wait-ring", ring if is_small else (), text, fact)


def odd_task(context: RuleContext) -> list[Evidence]:
    """HCCL writes in which call of its group each rank timed out: a few are behind, or in another operation, or bring
    another number or type of elements than most.
    """
    tasks = context.once(read_npu_reports).tasks
    for group, members in sorted(_group_tasks(tasks).items()):
        for compare in (_infer_behind, _infer_other_operation, _infer_other_elements):
            if made := compare(group, members):
                return made
    return []


def _group_tasks(tasks: Mapping[int, FailedTask]) -> dict[str, dict[int, FailedTask]]:
    """Return the tasks of each group of which at least two ranks report."""
    groups: dict[str, dict[int, FailedTask]] = defaultdict(dict)
    for rank, task in tasks.items():
        if task.group:
            groups[task.group][rank] = task
    return {group: members for group, members in groups.items() if len(members) > 1}


def _split(members: Mapping[int, FailedTask], key: Callable[[FailedTask], object]) -> tuple[set[int], bool] | None:
    """Return the ranks that differ from most, or all where no value is that of most; None: all agree or one is unknown.

    The flag says whether most ranks agree.
    """
    values = {rank: key(task) for rank, task in members.items()}
    counts = Counter(values.values()).most_common()
    if len(counts) < 2 or any(value in ("", -1) for value in values.values()):
        return None
    if 2 * counts[0][1] <= len(values):
        return set(values), False
    return {rank for rank, value in values.items() if value != counts[0][0]}, True


def _infer_behind(group: str, members: Mapping[int, FailedTask]) -> list[Evidence]:
    numbers = {rank: task.index for rank, task in members.items() if task.index >= 0}
    if len(numbers) < len(members) or len(set(numbers.values())) < 2:
        return []
    least, most = min(numbers.values()), max(numbers.values())
    behind = {rank for rank, number in numbers.items() if number < most}
    if 2 * len(behind) >= len(numbers):
        ahead = numbers.keys() - behind
        text = f"{format_ranks(ahead)} timed out in call index {most} of {_name(group)}, the others before it"
        return make_inferences("open-waits", ahead, text, members[min(ahead)].fact)
    first = {rank for rank, number in numbers.items() if number == least}
    others = numbers.keys() - first
    text = (
        f"{format_ranks(first)} timed out in call index {least} of {_name(group)}, "
        f"{format_ranks(others)} in index {format_range(min(map(numbers.__getitem__, others)), most)}"
    )
    return make_inferences("lagging-rank", first, text, members[min(first)].fact)


def _infer_other_operation(group: str, members: Mapping[int, FailedTask]) -> list[Evidence]:
    split = _split(members, lambda task: task.operation)
    return _infer_odd("divergent-call", group, members, split, lambda task: task.operation)


def _infer_other_elements(group: str, members: Mapping[int, FailedTask]) -> list[Evidence]:
    if any(_UNEVEN.search(task.operation) for task in members.values()):
        return []
    split = _split(members, lambda task: task.data_type)
    if made := _infer_odd("dtype-mismatch", group, members, split, lambda task: task.data_type):
        return made
    split = _split(members, lambda task: task.count)
    return _infer_odd("shape-mismatch", group, members, split, lambda task: f"{task.count} elements")


def _infer_odd(
    rule: str,
    group: str,
    members: Mapping[int, FailedTask],
    split: tuple[set[int], bool] | None,
    describe: Callable[[FailedTask], str],
) -> list[Evidence]:
    if split is None:
        return []
    odd, has_majority = split
    by_value: dict[str, list[int]] = defaultdict(list)
    for rank, task in sorted(members.items()):
        by_value[describe(task)].append(rank)
    parts = [f"{format_ranks(ranks)} in {value}" for value, ranks in sorted(by_value.items(), key=lambda one: one[1])]
    text = f"at one call of {_name(group)}, {join_names(parts[:4])} timed out"
    doubt = "" if has_majority else "no value is that of most ranks"
    return make_inferences(rule, odd, text, members[min(odd)].fact, uncertainty=doubt)


def late_timeout(context: RuleContext) -> list[Evidence]:
    """All members of a group timed out in the same call, a few of them later than the others wait: these came late."""
    limit = _exec_timeout(context)
    for group, members in sorted(_group_tasks(context.once(read_npu_reports).tasks).items()):
        times: dict[str, dict[int, float]] = defaultdict(dict)
        for rank, task in members.items():
            if (reading := context.clocks.read(task.fact)) is not None:
                times[reading[0]][rank] = reading[1]
        for _, by_rank in sorted(times.items()):
            first = min(by_rank.values())
            late = {rank for rank, when in by_rank.items() if when - first > limit}
            if late and 2 * len(late) < len(by_rank):
                delay = max(by_rank[rank] for rank in late) - first
                text = (
                    f"{format_ranks(late)} timed out in {_name(group)} {delay:.0f} s after the first rank; each waits "
                    f"{limit} s, so {agree(late, 'it', 'they')} came to the call so much later"
                )
                return make_inferences("lagging-rank", late, text, members[min(late)].fact)
    return []


def _exec_timeout(context: RuleContext) -> int:
    """Return how many seconds a rank waits for a notify: as HCCL or the environment says, or the default."""
    facts = context.facts_with("HCCL_EXEC_TIMEOUT")
    stated = [int(match[1]) for fact in facts if (match := _EXEC_TIMEOUT.search(fact.text))]
    return stated[-1] if stated else _DEFAULT_EXEC_TIMEOUT


def same_task(context: RuleContext) -> list[Evidence]:
    """All ranks that report wait in the same call, and none says for whom: nothing shows who is at fault."""
    tasks = context.once(read_npu_reports).tasks
    named = {task.operation for task in tasks.values() if task.operation}
    if len(tasks) < 2 or len(named) != 1:
        return []
    task = tasks[min(tasks)]
    call = f"{task.operation} of {_name(task.group)}" if task.group else task.operation
    text = f"{format_ranks(tasks)} timed out in {call}; no line says which rank did not come"
    return make_inferences("same-wait", (), text, task.fact)


def _name(group: str) -> str:
    """Return how a sentence calls a communicator."""
    return f"group {group[:_LONGEST_NAME]}" if group else "the group"
