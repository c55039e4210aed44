"""Rules about NPU ranks that wait for each other, by what HCCL wrote of tasks and links that did not end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext
from triage.diagnose.npu_tasks import NpuReports, read_npu_reports
from triage.diagnose.phrases import agree
from triage.evidence.inference import make_inferences
from triage.model.evidence import Evidence

_EXEC_TIMEOUT = lazy_re(r"HCCL_EXEC_TIMEOUT\D{0,40}?(\d{2,6})")
_DEFAULT_EXEC_TIMEOUT = 1836


def wait_chain(context: RuleContext) -> list[Evidence]:
    """HCCL names the rank for which each rank waits: the waits lead to ranks that report no timeout of their own, to
    ranks that wait for a signal of their own device, or into a ring.
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
    local = {rank for rank in awaited_by.keys() - waiters if rank in reports.tasks and reports.tasks[rank].is_local}
    if ends or local:
        return _infer_ends(context, reports, awaited_by, ends, local, reporting)
    ring = _find_ring(reports)
    return _infer_ring(reports, ring, waiters) if ring else []


def _infer_ends(
    context: RuleContext,
    reports: NpuReports,
    awaited_by: Mapping[int, Set[int]],
    silent_ends: Set[int],
    local_ends: Set[int],
    reporting: Set[int],
) -> list[Evidence]:
    """Return that silent ends did not come. They are suspects where most ranks are silent or many are ends, and so are
    ends that came and wait for their own device.
    """
    ends = silent_ends | local_ends
    direct = {rank for end in ends for rank in awaited_by[end]}
    indirect = _find_waiting_for(awaited_by, direct) - direct
    text = f"{format_ranks(direct)} {agree(direct, 'waits', 'wait')} for {format_ranks(ends)}"
    if indirect:
        text += f", {format_ranks(indirect)} for ranks that wait themselves"
    if silent_ends:
        text += f"; {format_ranks(silent_ends)} {agree(silent_ends, 'reports', 'report')} no timeout"
    if local_ends:
        device = agree(local_ends, "waits for a signal of its own device", "wait for signals of their own devices")
        text += f"; {format_ranks(local_ends)} {device}"
    fact = next(wait.fact for wait in reports.waits if wait.awaited in ends)
    silent = context.all_ranks - reporting
    is_clear = not local_ends and len(ends) <= max(1, len(reporting) // 2) and len(silent) <= max(1, len(reporting))
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


def late_timeout(context: RuleContext) -> list[Evidence]:
    """All ranks timed out, a few of them later than each waits: when the others gave up, these had not come yet."""
    limit = _exec_timeout(context)
    times: dict[str, dict[int, tuple[float, Evidence]]] = defaultdict(dict)
    for rank, task in context.once(read_npu_reports).tasks.items():
        if (reading := context.clocks.read(task.fact)) is not None:
            times[reading[0]][rank] = reading[1], task.fact
    for _, by_rank in sorted(times.items()):
        first = min(when for when, _ in by_rank.values())
        late = {rank: when - first for rank, (when, _) in by_rank.items() if when - first > limit}
        if (late and 2 * len(late) < len(by_rank)) or (len(late) == 1 and len(by_rank) == 2):
            text = (
                f"{format_ranks(late)} timed out {max(late.values()):.0f} s after the first rank; each waits {limit} s,"
                f" so {agree(late, 'it', 'they')} came so much later"
            )
            return make_inferences("lagging-rank", late, text, by_rank[min(late)][1])
    return []


def _exec_timeout(context: RuleContext) -> int:
    """Return how many seconds a rank waits for a notify: as HCCL or the environment says, or the default."""
    facts = context.facts_with("HCCL_EXEC_TIMEOUT")
    stated = [int(match[1]) for fact in facts if (match := _EXEC_TIMEOUT.search(fact.text))]
    return stated[-1] if stated else _DEFAULT_EXEC_TIMEOUT
