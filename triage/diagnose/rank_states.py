"""The state of each rank: failed, stalled, killed, silent, ok or unclear, in the attempt that is diagnosed.

Each sign is looked for on its own, and the first in SIGNS that a rank shows decides. What a rank says about itself
comes before what is inferred from others, and what ended it before what it printed because of its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from triage.diagnose.candidates import Candidate
from triage.diagnose.reason import ReasoningResult
from triage.model import EndingDetail, Evidence, ExceptionDetail, ExitDetail, FlightDetail, InferenceDetail, RankState
from triage.ranks.identity import JobMap
from triage.records.activity import find_silent_ranks

State = Literal["failed", "stalled", "killed", "ok", "silent", "unclear"]
Sign = Literal[
    "own failure",
    "gave up waiting",
    "killed from outside",
    "crashed",
    "absent",
    "stalled",
    "stopped with the job",
    "consequence",
    "stopped by launcher",
    "exit code",
    "error",
    "finished",
    "job succeeded",
    "log stopped",
    "wrote",
]
SIGNS: Mapping[Sign, State] = {
    "own failure": "failed",  # of the rank itself or its node
    "gave up waiting": "stalled",
    "killed from outside": "killed",  # by a signal, or as the kernel or the scheduler says
    "crashed": "failed",  # by a signal that a process causes itself
    "absent": "silent",  # of a stated world, and no file has a line of it
    "stalled": "stalled",  # a dump, a stack or the other ranks show that it waits, or that others wait for it
    "stopped with the job": "killed",
    "consequence": "failed",  # it prints what follows from a failure elsewhere
    "stopped by launcher": "killed",  # which cleans up
    "exit code": "failed",
    "error": "failed",  # its lines report one that ended nothing else
    "finished": "ok",
    "job succeeded": "ok",  # as its launcher or scheduler says
    "log stopped": "silent",  # while the others go on
    "wrote": "unclear",  # and nothing shows how it ended
}
# By what a signature indicates: what it means for a rank to show this failure.
_SIGN_BY_INDICATION: Mapping[str, Sign] = {
    "waiting": "gave up waiting",
    "stalled": "gave up waiting",
    "stopped-by-launcher": "stopped by launcher",
    "killed": "killed from outside",
    "kill-reason": "killed from outside",
    "outside": "killed from outside",
    "ending": "crashed",
    "own-failure": "own failure",
}
# The same for a rank that others blame.
_BLAMED_SIGN: Mapping[str, Sign] = {
    "killed": "killed from outside",
    "ending": "crashed",
    "node-lost": "own failure",
    "awaited": "stalled",
}
_OUTSIDE_SIGNALS = frozenset(("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"))
_MOST_RANKS = 1 << 17  # of a world, that are listed


def infer_rank_states(result: ReasoningResult, job: JobMap) -> tuple[RankState, ...]:
    """Return the state of every rank of the world, with its last step and the time of its last line if known."""
    states: dict[int, State] = {}
    ranks_by_sign = _ranks_by_sign(result, job)
    for sign, state in SIGNS.items():
        for rank in ranks_by_sign[sign]:
            states.setdefault(rank, state)
    outcome = result.outcome
    return tuple(
        RankState(
            rank,
            next(iter(hosts)) if len(hosts) == 1 else None,
            states[rank],
            outcome.last_step.get(rank),
            outcome.last_time.get(rank),
        )
        for rank in sorted(ranks_by_sign["wrote"] | ranks_by_sign["absent"])
        for hosts in (job.hosts.get(rank, ()),)
    )


def _ranks_by_sign(result: ReasoningResult, job: JobMap) -> dict[Sign, set[int]]:
    root = result.verdict.root
    attempt = root.attempt if root else max((fact.origin.attempt for fact in result.facts), default=0)
    failures = [
        one for one in result.candidates if one.role != "noise" and one.attempt == attempt and not one.superseded
    ]
    ranks: dict[Sign, set[int]] = defaultdict(set)
    for one in failures:
        for sign, shown in _failure_signs(one):
            ranks[sign].update(shown)
    for fact in result.facts:
        if fact.detail is not None and fact.origin.attempt == attempt:
            for sign, shown in _fact_signs(fact):
                ranks[sign].update(shown)
    ranks["stopped with the job"] = _stopped_with_job(root, job) if root else set()
    ranks["error"] = _ranks_with_error(result.facts, attempt)
    ranks["finished"] = set(result.outcome.finished)
    ranks["job succeeded"] = set(job.ranks) if result.outcome.is_success and not failures else set()
    if failures:
        ranks["stalled"] |= {
            fact.origin.rank
            for fact in result.facts
            if isinstance(fact.detail, FlightDetail) and fact.detail.waits and fact.origin.rank is not None
        }
        ranks["log stopped"] |= find_silent_ranks(result.outcome.last_time, result.outcome.finished).keys()
    ranks["wrote"] = set(job.ranks)
    ranks["absent"] = set(range(min(job.world_size() or 0, _MOST_RANKS))) - job.ranks
    return ranks


def _ranks_with_error(facts: Iterable[Evidence], attempt: int) -> set[int]:
    """Return the ranks whose lines report an error that did not turn out to be over."""
    return {
        fact.origin.rank
        for fact in facts
        if fact.origin.rank is not None
        and fact.origin.attempt == attempt
        and (
            fact.kind in ("terminate", "fatal-python", "crash")
            or (isinstance(fact.detail, EndingDetail) and fact.detail.strength != "unlike")
            or (isinstance(fact.detail, ExceptionDetail) and not fact.detail.nonfatal and not fact.detail.continued)
        )
    }


def _failure_signs(one: Candidate) -> Iterator[tuple[Sign, Iterable[int]]]:
    """Yield what a failure means for the ranks that show it, and for those that it blames."""
    sign = _sign_of(one)
    silent_kinds = ("inference",) if sign == "killed from outside" else ("exit", "inference")
    showing = {fact.origin.rank for fact in one.facts if fact.kind not in silent_kinds and fact.origin.rank is not None}
    blamed = showing if one.suspects is None else set(one.suspects)
    yield sign, showing & blamed
    yield (sign if sign == "gave up waiting" or one.is_stop_of_job else "consequence"), showing - blamed
    yield _BLAMED_SIGN.get(one.indicates, "log stopped"), blamed.difference(one.observed_ranks)


def _sign_of(one: Candidate) -> Sign:
    if one.signature is None:
        return "own failure"
    if one.domain == "slurm" and one.indicates not in ("waiting", "stalled", "stopped-by-launcher"):
        return "killed from outside"
    default: Sign = "own failure" if one.role in ("cause", "either") else "consequence"
    return _SIGN_BY_INDICATION.get(one.indicates, default)


def _stopped_with_job(root: Candidate, job: JobMap) -> set[int]:
    """Return the ranks that were stopped because the job, or one of its nodes, was."""
    if root.indicates == "node-lost":
        return set(job.ranks)
    if root.ranks or (root.indicates != "outside" and root.domain != "slurm"):
        return set()
    hosts = set() if root.is_stop_of_job else set(root.hosts)
    return {rank for rank in job.ranks if not hosts or hosts & job.hosts.get(rank, set())}


def _fact_signs(fact: Evidence) -> Iterator[tuple[Sign, Iterable[int]]]:
    """Yield what the end of a process means for its rank, and an inference for ranks that it names or that wait."""
    own = () if fact.origin.rank is None else (fact.origin.rank,)
    detail = fact.detail
    if isinstance(detail, ExitDetail):
        if detail.signal and detail.signal not in _OUTSIDE_SIGNALS:
            yield "crashed", own
        elif detail.signal:
            yield ("stopped by launcher" if detail.stopped_by_agent else "killed from outside"), own
        elif detail.exit_code:
            yield "exit code", own
    elif isinstance(detail, InferenceDetail):
        if detail.rank_state == "stalled":
            yield "stalled", (*own, *detail.waiting)
        elif detail.rank_state == "silent":
            yield "log stopped", own
