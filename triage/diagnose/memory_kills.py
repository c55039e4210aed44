"""Whom the kernel killed for memory, where its line names a process and no file says which rank had that pid.

Pids of a container are not those of the kernel's log, and srun's lines have none. The host of the line and how its
ranks ended say it then.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Evidence
from triage.ranks.identity import JobMap, short

_KILL = lazy_re(
    r"(?:Out of memory|cgroup out of memory): Kill(?:ed)? process (?P<pid>\d+) \((?P<name>[^)]*)\)|oom-kill:.*?\btask=(?P<task>[^,\s]+),pid=(?P<of>\d+)"
)
# What the kernel calls a rank: Python's name, the one that torch gives its main thread, the names that Ray gives.
_RANK = lazy_re(r"python[\d.]*$|pt_main_thread|ray::")
# A launcher sees the end of a process so many seconds after the kernel killed it, at most; both by the clock of their
# host, in whole seconds.
_SEEN = (-2.0, 120.0)
_SIGKILL = ("-9", "137")


def process(fact: Evidence) -> tuple[str, str] | None:
    """Pid and name of the process that this line of the kernel says was killed for memory."""
    said = _KILL.search(fact.text) if fact.kind == "kernel" else None
    return None if said is None else (said["pid"] or said["of"], said["name"] or said["task"])


def may_be_rank(name: str) -> bool:
    """Whether a rank may run under this name."""
    return _RANK.match(name) is not None


def was_killed(fact: Evidence) -> bool:
    """An end by SIGKILL that is not the launcher's doing."""
    told = fact.fields.get("signal") == "SIGKILL" or fact.fields.get("exitcode") in _SIGKILL
    return fact.kind == "exit" and told and fact.fields.get("by") != "agent"


def by_memory_kill(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A process that the kernel killed for memory, with a pid that is of no rank in the files, is the one rank of its
    host that died by SIGKILL,
    or the only rank there."""
    kills: dict[str, list[Evidence]] = defaultdict(list)
    for fact in facts:
        if process(fact) is not None:
            kills[short(fact.origin.host) if fact.origin.host else ""].append(fact)
    owner = {
        id(fact): found
        for host, said in kills.items()
        if (found := _owner(host, said, facts, job)) is not None
        for fact in said
    }
    return [_of(fact, *owner[id(fact)]) if id(fact) in owner else fact for fact in facts] if owner else facts


def _of(fact: Evidence, rank: int, how: str) -> Evidence:
    return dataclasses.replace(
        fact, origin=dataclasses.replace(fact.origin, rank=rank), fields={**fact.fields, "placed": how}
    )


def _owner(host: str, said: Sequence[Evidence], facts: Sequence[Evidence], job: JobMap) -> tuple[int, str] | None:
    """The rank that was killed on a host (empty: the kernel's lines do not say theirs) and how that is known, if only
    one can be meant.
    """
    killed = {found for fact in said if (found := process(fact)) is not None}
    whole = all(len(job.hosts.get(rank, ())) == 1 for rank in job.ranks) and not job.missing()
    if any(fact.origin.rank is not None for fact in said) or len(killed) != 1:
        return None
    if not host and (not whole or len(set().union(*job.hosts.values())) != 1):
        return None
    ends = [fact for fact in facts if fact.kind == "exit" and fact.fields.get("by") != "agent"]
    killing = [fact for fact in ends if was_killed(fact) and _may_be_on(host, fact, job)]
    dead = {fact.origin.rank for fact in killing}
    here = {rank for rank, names in job.hosts.items() if not host or host in names}
    name = next(iter(killed))[1]
    owners = dead or (
        here - {fact.origin.rank for fact in ends} if whole and len(here) == 1 and may_be_rank(name) else set()
    )
    rank = next(iter(owners)) if len(owners) == 1 and not any(_apart(said[0], fact) for fact in killing) else None
    if rank is None or not any(rank in ranks for ranks in job.by_pid.values()):
        return None if rank is None else (rank, "by the exit status" if dead else "alone on its host")
    # It is known by another pid: that is the pid in a container, or the kernel killed another process. It must have
    # died on that very host then.
    return (rank, "under another pid") if dead and host and may_be_rank(name) else None


def _apart(kill: Evidence, end: Evidence) -> bool:
    """Do the stamps say that the process ended before the kernel's line, or long after it? So they do where their zones
    differ: then nothing is sure.
    """
    if kill.origin.time is None or end.origin.time is None:
        return False
    return not _SEEN[0] <= end.origin.time - kill.origin.time <= _SEEN[1]


def _may_be_on(host: str, fact: Evidence, job: JobMap) -> bool:
    """Whether a process may have ended on this host: it did, or nobody says where."""
    names = (
        {short(fact.origin.host)}
        if fact.origin.host
        else job.hosts.get(-1 if fact.origin.rank is None else fact.origin.rank)
    )
    return not host or not names or host in names
