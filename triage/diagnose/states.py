"""What became of each rank: failed, stalled, killed, silent or ok. Of several attempts, in the one that the answer is
about.

Each sign is looked for on its own, and the first that a rank shows decides. What a rank says of itself comes before
what others conclude of it,
and what ended it before what its end made it say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from triage.diagnose.candidates import Candidate
from triage.diagnose.reason import Result
from triage.model.diagnosis import RankState
from triage.model.evidence import Evidence
from triage.ranks.identity import JobMap
from triage.ranks.last import fell_silent

State = Literal["failed", "stalled", "killed", "ok", "silent"]
Sign = Literal[
    "raised",
    "waited",
    "struck",
    "crashed",
    "absent",
    "blocked",
    "stopped",
    "echoed",
    "left",
    "terminated",
    "finished",
    "quiet",
    "wrote",
]
SIGNS: Mapping[Sign, State] = {
    "raised": "failed",  # a failure of its own, or of its node
    "waited": "stalled",  # it says that it waited in vain
    "struck": "killed",  # by a signal from outside, or the kernel or the scheduler says so
    "crashed": "failed",  # by a signal that a process brings upon itself
    "absent": "silent",  # no file holds a line of it
    "blocked": "stalled",  # a dump, a stack or the others say that it waits, or is waited for
    "stopped": "killed",  # with the whole job
    "echoed": "failed",  # it says what follows from a failure elsewhere
    "terminated": "killed",  # by its own launcher, which cleans up
    "left": "failed",  # with an exit code
    "finished": "ok",
    "quiet": "silent",  # its lines stop while the others go on
    "wrote": "ok",
}
_OUTSIDE = frozenset(("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"))
_WAITING = frozenset(("torch.flight-dump-signal", "torch.heartbeat-timeout", "npu.event-wait-timeout"))
_CLEANING = frozenset(("launch.sigterm-from-agent", "launch.deepspeed-killing-subprocess"))
_BLOCKED = frozenset(
    [
        "blocked-in-collective",
        "blocked-in-dataloader",
        "thread-deadlock",
        "never-joined",
        "rank-absent",
        "lagging-rank",
        "stuck-in-collective",
        "outside-collectives",
        "compile-skew",
        "one-rank-diverged",
        "uneven-steps",
        "rank-conditional",
        "divergent-call",
        "extra-collective",
        "group-order",
        "wrong-group",
        "missed-barrier",
        "late-entry",
        "watchdog-starved",
        "p2p-mismatch",
        "stale-build-lock",
    ]
)
_MISSED = frozenset(
    ("torch.monitored-barrier-timeout", "torch.rank-never-joined", "torch.lagging-rank", "checkpoint.barrier-timeout")
)
_QUIET = frozenset(("log-stopped", "left-first"))
_WORLD = 1 << 17  # ranks of a world that are listed at most


def states(result: Result, job: JobMap) -> tuple[RankState, ...]:
    """The state of every rank of the world, with its last step and the time of its last line as far as known."""
    state_of: dict[int, State] = {}
    shown = _signs(result, job)
    for sign, state in SIGNS.items():
        for rank in shown[sign]:
            state_of.setdefault(rank, state)
    ended = result.outcome
    return tuple(
        RankState(
            rank,
            next(iter(hosts)) if len(hosts) == 1 else None,
            state_of[rank],
            ended.last_step.get(rank),
            ended.last_time.get(rank),
        )
        for rank in sorted(shown["wrote"] | shown["absent"])
        for hosts in (job.hosts.get(rank, ()),)
    )


def _signs(result: Result, job: JobMap) -> dict[Sign, set[int]]:
    root = result.verdict.root
    attempt = root.attempt if root else max((fact.origin.attempt for fact in result.facts), default=0)
    failures = [one for one in result.candidates if one.role != "noise" and one.attempt == attempt and not one.past]
    shown: dict[Sign, set[int]] = defaultdict(set)
    for one in failures:
        sign = _sign_of(one)
        silent = ("inference",) if sign == "struck" else ("exit", "inference")
        said = {fact.origin.rank for fact in one.facts if fact.kind not in silent and fact.origin.rank is not None}
        blamed = said if one.suspects is None else set(one.suspects)
        shown[sign] |= said & blamed
        shown[sign if sign == "waited" else "echoed"] |= said - blamed
        shown[_accused(one)] |= blamed.difference(one.shown_by)
    for fact in result.facts:
        if fact.kind in ("exit", "inference") and fact.origin.attempt == attempt:
            for sign, ranks in _told(fact):
                shown[sign].update(ranks)
    lost = root is not None and root.tells == "node-lost"
    if root and (lost or ((root.tells == "outside" or _domain(root) == "slurm") and not root.ranks)):
        hosts = set() if lost else set(root.hosts)
        shown["stopped"] = {rank for rank in job.ranks if not hosts or hosts & job.hosts.get(rank, set())}
    shown["finished"] = set(result.outcome.finished)
    if failures:
        shown["blocked"] |= {
            fact.origin.rank for fact in result.facts if "waits" in fact.fields and fact.origin.rank is not None
        }
        shown["quiet"] |= fell_silent(result.outcome.last_time, result.outcome.finished).keys()
    shown["wrote"] = set(job.ranks)
    shown["absent"] = set(range(min(job.world_size() or 0, _WORLD))) - job.ranks
    return shown


def _sign_of(one: Candidate) -> Sign:
    """What it means for a rank to show this failure."""
    if one.signature is None:
        return "raised"
    if one.tells == "waiting" or one.id in _WAITING:
        return "waited"
    if one.id in _CLEANING:
        return "terminated"
    if one.tells in ("killed", "outside") or one.id == "host.oom-killer" or _domain(one) == "slurm":
        return "struck"
    if one.tells == "ending":
        return "crashed"
    return "raised" if one.tells == "own-failure" or one.role in ("cause", "either") else "echoed"


def _accused(one: Candidate) -> Sign:
    """What it means for a rank that others show this failure and mean that rank."""
    if one.tells in ("killed", "ending"):
        return _sign_of(one)
    if one.tells == "node-lost":
        return "raised"
    return "blocked" if one.id in _MISSED else "quiet"


def _told(fact: Evidence) -> Iterator[tuple[Sign, Iterable[int]]]:
    """What the end of a process says of its rank, and a conclusion of the ranks that it names and of those that wait
    for them.
    """
    own = () if fact.origin.rank is None else (fact.origin.rank,)
    signal = fact.fields.get("signal", "")
    if fact.kind == "exit" and signal:
        yield (
            ("crashed" if signal not in _OUTSIDE else "terminated" if fact.fields.get("by") == "agent" else "struck"),
            own,
        )
    elif fact.kind == "exit" and fact.fields.get("exitcode", "0") not in ("0", ""):
        yield "left", own
    elif fact.fields.get("rule") in _BLOCKED:
        yield "blocked", own
        yield "blocked", map(int, filter(str.isdecimal, fact.fields.get("waiting", "").split(",")))
    elif fact.fields.get("rule") in _QUIET:
        yield "quiet", own


def _domain(one: Candidate) -> str:
    return one.signature.domain if one.signature else ""
