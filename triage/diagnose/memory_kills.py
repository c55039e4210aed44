"""Which rank the kernel killed for memory, where its line names a process and no file maps that pid to a rank.

Pids of a container are not those of the kernel's log, and srun's lines have none. Then the host of the line, and how
the ranks of that host ended, say which rank it was.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Sequence

from triage.base.lazy_re import lazy_re
from triage.diagnose.time_order import MOST_ZONES, ZONE_STEP
from triage.model import Evidence, ExitDetail, RankBasis
from triage.ranks.identity import JobMap, short_host

_KILL = lazy_re(
    r"(?:Out of memory|cgroup out of memory): Kill(?:ed)? process (?P<pid>\d{1,18}) \((?P<name>[^)]*)\)"
    r"|oom-kill:.*?\btask=(?P<task>[^,\s]+),pid=(?P<task_pid>\d{1,18})"
)
# What the kernel calls a rank: Python's name, the one that torch gives its main thread, the names that Ray gives.
_RANK = lazy_re(r"python[\d.]*$|pt_main_thread|ray::")
# A launcher sees the end of a process at most so many seconds after the kernel killed it, by the clock of their host.
_DELAY = (-2.0, 120.0)
# A line without a timestamp of its own has that of an earlier line, which may be older by so many seconds.
_OLDEST_STAMP = 300.0
_SIGKILL = (-9, 137)
# A parent names its child by the rank: `process 1 terminated with signal SIGKILL`.
_CHILD_KILLED = lazy_re(r"\bprocess \d{1,6} (?:was )?(?:terminated|killed) (?:with|by) (?:signal )?(?:SIGKILL|9)\b")
_LONGEST_TEXT = 4000


def killed_process(fact: Evidence) -> tuple[str, str] | None:
    """Return pid and name of the process that this line of the kernel says was killed for memory."""
    kill = _KILL.search(fact.text) if fact.kind == "kernel" else None
    return None if kill is None else (kill["pid"] or kill["task_pid"], kill["name"] or kill["task"])


def may_be_rank(name: str) -> bool:
    """Whether a rank may run under this name."""
    return _RANK.match(name) is not None


def was_killed(fact: Evidence) -> bool:
    """Whether the fact is an end by SIGKILL that did not come from the launcher."""
    end = fact.detail
    if not isinstance(end, ExitDetail):
        return fact.origin.rank is not None and _CHILD_KILLED.search(fact.text[:_LONGEST_TEXT]) is not None
    return not end.stopped_by_agent and (end.signal == "SIGKILL" or end.exit_code in _SIGKILL)


def by_memory_kill(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A process that the kernel killed for memory, with an unknown pid, is the one rank of its host that died by
    SIGKILL, or the only rank there.
    """
    kills: dict[str, list[Evidence]] = defaultdict(list)
    for fact in facts:
        if killed_process(fact) is not None:
            kills[short_host(fact.origin.host) if fact.origin.host else ""].append(fact)
    owners = {
        id(fact): owner
        for host, lines in kills.items()
        if (owner := _find_owner(host, lines, facts, job)) is not None
        for fact in lines
    }
    return [_attributed(fact, *owners[id(fact)]) if id(fact) in owners else fact for fact in facts] if owners else facts


def _attributed(fact: Evidence, rank: int, basis: RankBasis) -> Evidence:
    return dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, rank=rank), rank_basis=basis)


def _find_owner(
    host: str, lines: Sequence[Evidence], facts: Sequence[Evidence], job: JobMap
) -> tuple[int, RankBasis] | None:
    """Return the rank that was killed on a host, and how that is known, if only one can be meant.

    An empty host means that the kernel's lines do not name theirs.
    """
    killed = {process for fact in lines if (process := killed_process(fact)) is not None}
    all_placed = all(len(job.hosts.get(rank, ())) == 1 for rank in job.ranks) and not job.missing_ranks()
    if any(fact.origin.rank is not None for fact in lines) or len(killed) != 1:
        return None
    if not host and (not all_placed or len(set().union(*job.hosts.values())) != 1):
        return None
    ends = [fact for fact in facts if isinstance(fact.detail, ExitDetail) and not fact.detail.stopped_by_agent]
    kills = [fact for fact in facts if was_killed(fact) and _may_be_on(host, fact, job)]
    dead = {fact.origin.rank for fact in kills}
    here = {rank for rank, names in job.hosts.items() if not host or host in names}
    is_rank = may_be_rank(next(iter(killed))[1])
    alone = here - {fact.origin.rank for fact in ends} if all_placed and len(here) == 1 and is_rank else set()
    owners = dead or alone
    rank = (
        next(iter(owners)) if len(owners) == 1 and not any(is_at_other_time(lines[0], end) for end in kills) else None
    )
    if rank is None:
        return None
    if not _has_pid(rank, job.by_pid.values()):
        return rank, "exit status" if dead else "only rank on its host"
    # It is known by another pid: that is the pid in a container, or the kernel killed another process. Then it must
    # have died on that very host.
    return (rank, "another pid") if dead and host and is_rank else None


def _has_pid(rank: int, ranks_by_pid: Collection[Collection[int]]) -> bool:
    return any(rank in ranks for ranks in ranks_by_pid)


def is_at_other_time(kill: Evidence, end: Evidence) -> bool:
    """Whether the process ended before the kernel's line or long after it, whatever the time zones of both are."""
    if kill.origin.time is None or end.origin.time is None:
        return False
    delay = end.origin.time - kill.origin.time
    least = -_OLDEST_STAMP if end.inherits_time else _DELAY[0]
    if abs(delay) < MOST_ZONES:
        delay = (delay - least) % ZONE_STEP + least
    return not least <= delay <= _DELAY[1]


def _may_be_on(host: str, fact: Evidence, job: JobMap) -> bool:
    """Whether a process may have ended on this host: it did, or no file says where."""
    names = (
        {short_host(fact.origin.host)}
        if fact.origin.host
        else job.hosts.get(-1 if fact.origin.rank is None else fact.origin.rank)
    )
    return not host or not names or host in names
