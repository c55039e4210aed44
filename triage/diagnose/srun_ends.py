"""What srun's lines of ended tasks mean: a task may be a launcher with ranks of its own, or a victim of srun itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.model import Evidence, ExitDetail
from triage.ranks.identity import JobMap, short_host

# What torchelastic writes in its own process, and DeepSpeed's launcher of a node.
_AGENT = masked_re(
    r"ChildFailedError\b|torch[./]distributed[./](?:elastic[./](?:agent|multiprocessing[./]api)|launcher[./]|run\.py)"
    r"|\bexits with return code = "
)
_STEP_END = lazy_re(r"\bCANCELLED AT\b|\bTerminating (?:StepId|job step)\b")
_LONGEST_TEXT = 4000
_STOPPING = frozenset(("SIGKILL", "SIGTERM"))


def tasks_of_srun(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A task of srun that is the launcher of a node, or ran where no rank of its number did, is no rank."""
    has_agents = any(map(_is_of_agent, facts))
    return [
        dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, rank=None, local_rank=None))
        if _is_end_of_task(fact) and fact.origin.rank is not None and (has_agents or _is_elsewhere(fact, job))
        else fact
        for fact in facts
    ]


def killed_with_step(facts: list[Evidence]) -> list[Evidence]:
    """Where srun ended the step after a first task had failed, it killed the tasks that died by a signal later.

    Where every task was killed, none before the step ended, and no line says why, all are victims: programs that do not
    heed SIGTERM are killed after KillWait.
    """
    step_ends: dict[tuple[str, int], int] = {}
    for fact in facts:
        key = (fact.source, fact.origin.attempt)
        if fact.kind == "scheduler" and _STEP_END.search(fact.text[:_LONGEST_TEXT]):
            step_ends[key] = min(fact.offset, step_ends.get(key, fact.offset))
    for fact in facts if step_ends else ():
        key = (fact.source, fact.origin.attempt)
        is_own = isinstance(fact.detail, ExitDetail) and fact.detail.signal not in _STOPPING
        if _is_end_of_task(fact) and is_own and fact.origin.attempt in {attempt for _, attempt in step_ends}:
            step_ends.setdefault(key, fact.offset + 1)  # the end of the step stands in another file
    victims = {id(fact) for fact in _victims(facts, step_ends)}
    return [_as_stopped(fact) if id(fact) in victims else fact for fact in facts] if victims else facts


def _victims(facts: Sequence[Evidence], step_ends: dict[tuple[str, int], int]) -> list[Evidence]:
    ends = [
        (fact, step_ends[key])
        for fact in facts
        if _is_end_of_task(fact) and (key := (fact.source, fact.origin.attempt)) in step_ends
    ]
    began = {(fact.source, fact.origin.attempt) for fact, step_end in ends if fact.offset < step_end}
    has_reason = any(fact.kind == "scheduler" and not _STEP_END.search(fact.text[:_LONGEST_TEXT]) for fact in facts)
    if len(ends) > 1 and not has_reason and all(_was_killed(fact) and fact.offset > end for fact, end in ends):
        return [fact for fact, _ in ends]  # all alike, so no task began it
    return [
        fact
        for fact, step_end in ends
        if fact.offset > step_end
        and (fact.source, fact.origin.attempt) in began
        and isinstance(fact.detail, ExitDetail)
        and fact.detail.signal in _STOPPING
    ]


def _was_killed(fact: Evidence) -> bool:
    return isinstance(fact.detail, ExitDetail) and fact.detail.signal == "SIGKILL"


def _as_stopped(fact: Evidence) -> Evidence:
    if not isinstance(fact.detail, ExitDetail):
        return fact
    detail = dataclasses.replace(fact.detail, stopped_by_agent=True)
    return dataclasses.replace(fact, fields={**fact.fields, "by": "agent"}, detail=detail)


def _is_end_of_task(fact: Evidence) -> bool:
    return fact.kind == "exit" and fact.component == "slurm"


def _is_of_agent(fact: Evidence) -> bool:
    """Whether the launcher of a node wrote it: it names a local rank that ended, or where in itself it stands."""
    if fact.kind == "exit" and fact.component == "launcher" and fact.origin.local_rank is not None:
        return True
    return _AGENT.search(fact.text[:_LONGEST_TEXT]) is not None


def _is_elsewhere(fact: Evidence, job: JobMap) -> bool:
    """Whether other ranks ran on the host of the task, and the rank of its number only on others."""
    host = short_host(fact.origin.host) if fact.origin.host else ""
    known = job.hosts.get(-1 if fact.origin.rank is None else fact.origin.rank)
    is_used = any(host in names for names in job.hosts.values())
    return bool(host and known and is_used and host not in known)
