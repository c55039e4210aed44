"""The calls in which HCCL's tasks failed, as progress of ranks in groups: for the rules that compare calls.

HCCL's `index` counts the calls of a communicator on each member, from 0. Its entries state the members.
"""

from __future__ import annotations

from collections import defaultdict

from triage.diagnose.context import RuleContext
from triage.diagnose.npu_tasks import FailedTask, read_npu_reports
from triage.diagnose.progress import Group, GroupProgress, OpenCall, Progress


def read_npu_progress(context: RuleContext) -> Progress:
    """Return the first failed call of each rank, and the members of the communicators of which all are known."""
    reports = context.once(read_npu_reports)
    entries = [
        _make_entry(task, reports.members.ranks.get((task.group, task.transfer_end)))
        for _, task in sorted(reports.tasks.items())
        if task.group and task.operation
    ]
    members: dict[str, set[int]] = defaultdict(set)
    for (group, _), rank in reports.members.ranks.items():
        members[group].add(rank)
    whole = {
        _group(name): frozenset(ranks) for name, ranks in members.items() if len(ranks) == reports.members.sizes[name]
    }
    return Progress(entries, by_rank={entry.rank: (entry,) for entry in entries}, members=whole)


def _make_entry(task: FailedTask, partner: int | None) -> GroupProgress:
    call = OpenCall(
        task.index if task.index >= 0 else None,
        task.operation,
        (str(task.count),) if task.count >= 0 else (),
        data_type=task.data_type,
    )
    local = task.member if task.member >= 0 else None
    return GroupProgress(task.rank, _group(task.group), task.fact, local, call=call, partner=partner)


def _group(name: str) -> Group:
    return Group(name, name)
