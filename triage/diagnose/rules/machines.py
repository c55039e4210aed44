"""Rules about the kernel, the scheduler and GPUs: who killed a process, which fault of a GPU came first."""

from __future__ import annotations

import math
from collections.abc import Iterable

from triage.base.host_lists import expand_hosts
from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import LONG_SILENCE, RuleContext
from triage.diagnose.graph import CausalGraph
from triage.diagnose.memory_kills import killed_process
from triage.diagnose.phrases import agree, join_names
from triage.model import KernelDetail, SchedulerDetail
from triage.ranks.identity import short_host

_NONFATAL = lazy_re(r"\bNonfatal\b")
_LOGS = ("kernel", "scheduler")

Reported = tuple[float, float, str]
"""The latest and the earliest time at which a rank can have reported, and its host."""


def failed_node(graph: CausalGraph) -> None:
    """Where a line names the node that was lost, the failure began there; all other ranks were stopped for it."""
    context = graph.context
    for lost in graph.candidates:
        if lost.indicates != "node-lost":
            continue
        lists = {fact.detail.lost_nodes for fact in lost.facts if isinstance(fact.detail, SchedulerDetail)}
        nodes = {short_host(host) for text in (*lists, *lost.values.get("node", ())) for host in expand_hosts(text)}
        ranks = {rank for rank, hosts in context.hosts.items() if nodes.intersection(hosts)}
        lost.stated_hosts = tuple(sorted(nodes))
        failed = (
            f"{agree(nodes, 'Node', 'Nodes')} {join_names(lost.stated_hosts[:4])} {agree(nodes, 'was', 'were')} lost"
        )
        if ranks:
            unknown = context.all_ranks - context.hosts.keys()
            why = f"{failed}, where {format_ranks(ranks)} ran; the other ranks were stopped because of it"
            why += f"; no file says where {format_ranks(unknown)} ran" if unknown else ""
        elif nodes:
            why = f"{failed}; no file says which ranks ran there"
        else:
            why = "No line names the lost node; a node in the line only reports it"
        graph.set_suspects(lost, ranks, why)


def kill_confirmed(graph: CausalGraph) -> None:
    """The kernel, a cgroup, the scheduler or a container says why a process got SIGKILL; that is the cause."""
    for killed in graph.candidates:
        if killed.indicates != "killed":
            continue
        causes = [graph.by_id[cause] for cause in killed.explained_by if cause in graph.by_id]
        witnesses = [cause for cause in causes if any(fact.kind in _LOGS for fact in cause.facts)]
        for witness in witnesses:
            _place_on_killed(graph, witness, killed)
            if witness.ranks or not any(map(killed_process, witness.facts)):
                components = {fact.component for fact in witness.facts if fact.kind in _LOGS}
                logs = ["the kernel" if name == "kernel" else name for name in sorted(components)]
                ranks = f"{format_ranks(killed.ranks)} {agree(killed.ranks, 'was', 'were')}"
                who = ranks if killed.ranks else "the process was"
                witness.why.append(f"{join_names(logs)} {agree(logs, 'says', 'say')} why {who} killed")
        if not witnesses and not killed.explained_by:
            killed.why.append("No file says who sent SIGKILL; look in the logs of kernel, scheduler and container")


def _place_on_killed(graph: CausalGraph, witness: Candidate, killed: Candidate) -> None:
    """A witness that names no rank and no process is about those that were killed on its host."""
    if witness.ranks or witness.suspects is not None or any(fact.fields.get("pid") for fact in witness.facts):
        return
    ranks = {
        fact.origin.rank
        for fact in killed.facts
        if fact.origin.rank is not None and (not witness.hosts or fact.origin.host in (None, *witness.hosts))
    }
    if ranks:
        was = agree(ranks, "was", "were")
        graph.set_suspects(witness, ranks, f"The line names no process; {format_ranks(ranks)} {was} killed there")


def _xids(candidate: Candidate) -> set[int]:
    details = (fact.detail for fact in candidate.facts)
    return {detail.xid for detail in details if isinstance(detail, KernelDetail) and detail.xid is not None}


def first_cuda_error(graph: CausalGraph) -> None:
    """CUDA errors show up late and elsewhere: of several ranks that report the same one, those count on whose GPUs the
    driver logs a fault; else the first.
    """
    for candidate in graph.candidates:
        if candidate.domain != "cuda" or len(candidate.observed_ranks) < 2 or candidate.suspects is not None:
            continue
        if faulty := _ranks_of_driver_faults(graph, candidate):
            only = f"The driver logs a fault only for the GPU of {format_ranks(faulty)}"
            graph.set_suspects(candidate, faulty, f"{only}; CUDA errors show up on other ranks too")
        elif first := _first_ranks(graph.context, candidate):
            why = f"{format_ranks(first)} reported it first; CUDA errors show up late, and then on other ranks too"
            graph.set_suspects(candidate, first, why)


def _ranks_of_driver_faults(graph: CausalGraph, candidate: Candidate) -> frozenset[int]:
    """Return those of the ranks on whose GPUs the driver logs a fault that the catalog joins with this CUDA error; none
    if the driver logs it for all of them.
    """
    faults = [one for one in graph.candidates if _xids(one) and not _is_warning(one) and _are_joined(one, candidate)]
    ranks = candidate.observed_rank_set.intersection(rank for one in faults for rank in one.observed_rank_set)
    return ranks if ranks != candidate.observed_rank_set else frozenset()


def _is_warning(fault: Candidate) -> bool:
    """Whether the driver calls each of its lines Nonfatal."""
    return all(_NONFATAL.search(fact.text) for fact in fault.facts)


def _are_joined(one: Candidate, other: Candidate) -> bool:
    """Whether the catalog knows one of them as an effect of the other."""
    edges = [
        (cause.signature.causal_edges if cause.signature else (), effect.id)
        for cause, effect in ((one, other), (other, one))
    ]
    return any(edge.signature == effect for known, effect in edges for edge in known)


def _first_ranks(context: RuleContext, candidate: Candidate) -> set[int]:
    """Return the ranks that report clearly before all others; none if no rank does, or times cannot be compared."""
    times: dict[int, Reported] = {}
    clocks = set()
    for fact in candidate.facts:
        interval = context.clocks.interval(fact)
        if interval is not None and fact.origin.rank is not None:
            clock, earliest, latest = interval
            clocks.add(clock)
            reported = (latest, earliest, fact.origin.host or "")
            times[fact.origin.rank] = min(times.get(fact.origin.rank, reported), reported)
    if len(clocks) != 1 or set(times) != set(candidate.observed_ranks):
        return set()
    if all(latest == math.inf for latest, _, _ in times.values()):
        return _first_silent_ranks(context, candidate.observed_ranks)
    first = min(times.values())
    early = {rank for rank, reported in times.items() if not _is_before(context, first, reported)}
    rest = [reported for rank, reported in times.items() if rank not in early]
    last = max(times[rank] for rank in early)
    return early if rest and all(_is_before(context, last, reported) for reported in rest) else set()


def _first_silent_ranks(context: RuleContext, ranks: Iterable[int]) -> set[int]:
    """Where lines have no time of their own: the ranks that report steps, and went silent long before all others."""
    reporting = context.last_time.keys() & context.last_step.keys()
    if not reporting.issuperset(ranks) or len({context.last_time[rank][0] for rank in ranks}) != 1:
        return set()
    last = {rank: context.last_time[rank][1] for rank in ranks}
    first = min(last.values())
    early = {rank: when for rank, when in last.items() if when <= first + LONG_SILENCE}
    rest = [when for rank, when in last.items() if rank not in early]
    return set(early) if rest and min(rest) > max(early.values()) + LONG_SILENCE else set()


def _is_before(context: RuleContext, one: Reported, other: Reported) -> bool:
    """Whether the first is before the second, as far as the clocks can show."""
    return one[0] < other[1] - context.clocks.uncertainty(one[2], other[2])
