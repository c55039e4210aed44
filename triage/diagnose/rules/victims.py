"""A failure of a machine names no rank: the ranks of that machine that it hit directly are where the job failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext, ranks_of
from triage.diagnose.graph import CausalGraph, root_tier
from triage.diagnose.memory_kills import is_at_other_time, killed_process, may_be_rank
from triage.diagnose.phrases import agree
from triage.diagnose.rules.absence import find_awaited, find_not_complaining
from triage.ranks.identity import short_host

_LOGS = frozenset(("kernel", "scheduler"))
# How a rank reports the end of a process that belongs to it, such as a worker of its DataLoader.
_HELPER = lazy_re(
    r"(?i)\b(?P<role>worker|child|subprocess|process|helper)\b[^\n]{0,40}?\bpid[ =:]{1,3}(?P<pid>\d{2,7})\b"
    r"[^\n]{0,60}?\b(?P<end>kill|exit|die|terminat)"
)
# What ranks only suffer from others, and how the launcher or somebody outside ended them.
_ECHOES = frozenset(("outside", "ending", "killed", "peer-lost", "waiting", "stopped-by-launcher", "stalled"))
_LOCAL = frozenset(("same-rank", "same-host"))
_LONGEST_TEXT = 4000


class Victims(NamedTuple):
    """The ranks that a failure of a machine hit directly, and how that is known."""

    ranks: Set[int]
    reason: str


def inherit_ranks(graph: CausalGraph) -> None:
    """A failure of a machine takes the ranks there that show its direct effect, or that alone fell silent. The end that
    a launcher reports once, without a rank, is that of the only rank that lost no peer.
    """
    for cause in graph.candidates:
        if _is_of_machine(graph.context, cause):
            effects = [one for one in graph.candidates if cause.id in one.explained_by]
            answers = (find(graph.context, cause, effects) for find in _WAYS)
            victims = next((one for one in answers if one is not None), None)
        else:
            victims = _find_not_complaining(graph.context) if _is_single_end(cause) else None
        if victims is not None:
            graph.set_suspects(cause, victims.ranks, victims.reason)


def _is_single_end(cause: Candidate) -> bool:
    """Whether it is one end that a launcher reports without a rank."""
    is_report = len(cause.facts) == 1 and cause.facts[0].kind == "exit" and cause.facts[0].count == 1
    return is_report and not cause.observed_ranks and cause.suspects is None


def _find_not_complaining(context: RuleContext) -> Victims | None:
    """Find the only rank that lost no peer."""
    ranks = ranks_of(find_not_complaining(context))
    if len(ranks) != 1:
        return None
    return Victims(ranks, f"{format_ranks(ranks)}: all other ranks lost the connection to a peer")


def _is_of_machine(context: RuleContext, cause: Candidate) -> bool:
    """Whether logs of machines state a cause, without a rank or with ranks elsewhere that only confirm it."""
    if cause.role != "cause" or cause.suspects is not None or not any(fact.kind in _LOGS for fact in cause.facts):
        return False
    shown = cause.observed_rank_set
    return not shown or _choose_on_machine(context, cause, shown) != shown


def _find_owners(context: RuleContext, cause: Candidate, effects: Sequence[Candidate]) -> Victims | None:
    """Find the ranks that report the end of a process of theirs that the cause names."""
    pids = {pid for fact in cause.facts if (pid := fact.fields.get("pid"))}
    owners: dict[int, str] = {}
    for fact in (fact for one in effects for fact in one.facts) if pids else ():
        helper = _HELPER.search(fact.text[:_LONGEST_TEXT])
        if helper and helper["pid"] in pids:
            end = "was killed" if helper["end"].lower() == "kill" else "ended"
            for rank in _choose_on_machine(context, cause, {fact.origin.rank}):
                owners[rank] = f"{helper['role'].lower()} {helper['pid']} {end}"
    ends = [f"{format_ranks([rank])}: its {end}" for rank, end in sorted(owners.items())]
    return Victims(owners.keys(), "; ".join(ends[:4])) if owners else None


def _find_direct_effect(context: RuleContext, cause: Candidate, effects: Sequence[Candidate]) -> Victims | None:
    """Find the ranks that show the most direct effect of the cause: signatures list their effects in this order."""
    by_id = {effect.id: effect for effect in effects}
    is_placed = _has_known_host(context, cause)
    for edge in cause.signature.causal_edges if cause.signature else ():
        effect = by_id.get(edge.signature)
        if effect is None or effect.is_inferred or effect.indicates in _ECHOES or root_tier(effect) is None:
            continue
        ranks = _choose_on_machine(context, cause, effect.observed_ranks)
        if ranks and (is_placed or (edge.scope in _LOCAL and len(ranks) == 1)):
            shows = agree(ranks, "shows", "show")
            return Victims(ranks, f"{format_ranks(ranks)} {shows} its direct effect, {effect.id}")
    return None


def _find_killed(context: RuleContext, cause: Candidate, effects: Sequence[Candidate]) -> Victims | None:
    """Find the only rank of the machine that was killed, where one process that may be a rank was killed."""
    killed = {process: fact for fact in cause.facts if (process := killed_process(fact)) is not None}
    if (
        len({pid for pid, _ in killed}) != 1
        or not _machine_hosts(cause)
        or not all(may_be_rank(name) for _, name in killed)
    ):
        return None
    line = next(iter(killed.values()))
    ends = [fact for one in effects if one.indicates == "killed" for fact in one.facts]
    ranks = _choose_on_machine(context, cause, ranks_of(fact for fact in ends if not is_at_other_time(line, fact)))
    if len(ranks) != 1 or ranks != _choose_on_machine(context, cause, ranks_of(ends)):
        return None
    return Victims(ranks, f"{format_ranks(ranks)}: the only rank there that was killed")


def _find_silent(context: RuleContext, cause: Candidate, effects: Sequence[Candidate]) -> Victims | None:
    """Find the ranks of the machine for which all others waited in vain."""
    waiting, absent, _ = context.once(find_awaited)
    explains_wait = any(waiting & one.observed_rank_set for one in effects)
    if not absent or not explains_wait or _choose_on_machine(context, cause, absent) != absent:
        return None
    return Victims(absent, f"{format_ranks(absent)} fell silent there; {format_ranks(waiting)} waited in vain")


def _find_lost(context: RuleContext, cause: Candidate, effects: Sequence[Candidate]) -> Victims | None:
    """Find the only rank of the job to which no other rank's complaint of a lost peer is left."""
    complaining = {rank for one in effects if one.indicates == "peer-lost" for rank in one.observed_ranks}
    others = context.all_ranks - complaining - context.finished
    if not complaining or len(others) != 1 or not _machine_hosts(cause):
        return None
    if _choose_on_machine(context, cause, others) != others:
        return None
    return Victims(others, f"{format_ranks(others)}: all other ranks lost the connection to a peer")


def _find_spared_host(context: RuleContext, cause: Candidate, effects: Sequence[Candidate]) -> Victims | None:
    """Find the ranks of the only host on which no rank lost a peer: their processes were the ones that were killed."""
    lost = context.ranks_with("peer-lost")
    is_kill = cause.signature is not None and cause.signature.indicates == "kill-reason"
    if not is_kill or _machine_hosts(cause) or not any(lost.intersection(one.observed_ranks) for one in effects):
        return None
    lost_hosts = {host for rank in lost for host in context.hosts.get(rank, ())}
    spared = {
        rank
        for rank, hosts in context.hosts.items()
        if hosts and rank not in lost | context.finished and not lost_hosts.intersection(hosts)
    }
    hosts = {host for rank in spared for host in context.hosts[rank]}
    if len(hosts) != 1 or not lost_hosts:
        return None
    return Victims(spared, f"{format_ranks(spared)} on {hosts.pop()}: all other hosts have ranks that lost a peer")


_WAYS = (_find_owners, _find_direct_effect, _find_killed, _find_silent, _find_lost, _find_spared_host)


def _choose_on_machine(context: RuleContext, cause: Candidate, ranks: Iterable[int | None]) -> set[int]:
    """Return which of the ranks ran on the host of the cause; all of them, if no file says what ran on that host."""
    known = {rank for rank in ranks if rank is not None}
    if not _has_known_host(context, cause):
        return known
    hosts = _machine_hosts(cause)
    return {rank for rank in known if hosts.intersection(context.hosts.get(rank, ()))}


def _has_known_host(context: RuleContext, cause: Candidate) -> bool:
    """Whether the files say of at least one rank that it ran on the host of the cause."""
    hosts = _machine_hosts(cause)
    return any(hosts.intersection(names) for names in context.hosts.values())


def _machine_hosts(cause: Candidate) -> set[str]:
    """Return the hosts that the logs of machines name."""
    return {short_host(fact.origin.host) for fact in cause.facts if fact.kind in _LOGS and fact.origin.host}
