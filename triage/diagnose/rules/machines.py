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
from triage.diagnose.memory_kills import killed_process, may_be_rank, was_killed
from triage.diagnose.phrases import agree, join_names
from triage.model import Evidence, KernelDetail, SchedulerDetail
from triage.ranks.identity import short_host

# Faults of one GPU that the kernel logs within so many seconds are one burst.
_BURST = 300.0
_NONFATAL = lazy_re(r"\bNonfatal\b")
_CAUSED_BY = lazy_re(r"caused by previous Xid (\d+)")
_INNER = lazy_re(r"\b[A-Z][A-Z0-9]9999\b")
_CODE = lazy_re(r"\bE[A-Z0-9]\d{4}\b")
_LOGS = ("kernel", "scheduler")

Reported = tuple[float, float, str]
"""The latest and the earliest time at which a rank can have reported, and its host."""


def failed_node(graph: CausalGraph) -> None:
    """Where the scheduler names the node that it lost, the failure began there; all other ranks were stopped for it."""
    context = graph.context
    for lost in graph.candidates:
        if lost.indicates != "node-lost":
            continue
        lists = {fact.detail.lost_nodes for fact in lost.facts if isinstance(fact.detail, SchedulerDetail)}
        nodes = {short_host(host) for text in lists for host in expand_hosts(text)}
        ranks = {rank for rank, hosts in context.hosts.items() if nodes.intersection(hosts)}
        failed = f"{join_names(sorted(nodes)[:4])} failed"
        if ranks:
            unknown = context.all_ranks - context.hosts.keys()
            why = f"{failed}, where {format_ranks(ranks)} ran; the other ranks were stopped because of it"
            why += f"; no file says where {format_ranks(unknown)} ran" if unknown else ""
        elif nodes:
            why = f"{failed}; no file says which ranks ran there"
        else:
            why = "No line names the failed node; a node in the line only reports it"
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
                verb, was = "says" if len(logs) == 1 else "say", agree(killed.ranks, "was", "were")
                witness.why.append(f"{join_names(logs)} {verb} why {format_ranks(killed.ranks)} {was} killed")
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


def nameless_kill(graph: CausalGraph) -> None:
    """A process that the kernel killed for memory, with an unknown pid, may be a rank that died by SIGKILL on that
    host, or that ran there.
    """
    for candidate in graph.candidates:
        killed = {
            (fact.origin.host or "", *process)
            for fact in candidate.facts
            if fact.origin.rank is None and (process := killed_process(fact))
        }
        for host, pid, program in sorted(killed):
            kernel = f"The kernel of {host}" if host else "The kernel"
            text = f"{kernel} killed process {pid} ({program}), a pid that no file maps to a rank"
            candidate.why.append(text + (_possible_victims(graph.context, host) if may_be_rank(program) else ""))


def _possible_victims(context: RuleContext, host: str) -> str:
    """Return a clause that names the ranks that may have been killed on a host; empty where there are none."""
    here = {rank for rank, hosts in context.hosts.items() if host in hosts}
    dead = {fact.origin.rank for fact in context.exits if fact.origin.rank is not None and was_killed(fact)}
    dead = {rank for rank in dead if not host or rank in here or rank not in context.hosts}
    ranks = dead or here
    if not ranks:
        return ""
    one_of = "one of " if len(ranks) > 1 else ""
    return f": it may be {one_of}{format_ranks(ranks)}, which {'died by SIGKILL' if dead else 'ran'} there"


def first_of_burst(graph: CausalGraph) -> None:
    """Of the faults of one GPU in a burst of kernel lines, the first explains the others; the driver may say so."""
    faults = [candidate for candidate in graph.candidates if candidate.signature and _xids(candidate)]
    for later in faults:
        named = {int(number) for fact in later.facts for number in _CAUSED_BY.findall(fact.text)}
        for first in faults:
            if first is later:
                continue
            if named & _xids(first):
                numbers = " and ".join(map(str, sorted(named)))
                graph.add_edge(first, later, f"the driver says that Xid {numbers} caused it")
            elif first.role in ("cause", "either") and later.role != "cause" and _leads(first.facts, later.facts):
                graph.add_edge(first, later, "it was the first fault of that GPU")


def _xids(candidate: Candidate) -> set[int]:
    details = (fact.detail for fact in candidate.facts)
    return {detail.xid for detail in details if isinstance(detail, KernelDetail) and detail.xid is not None}


def _leads(first: Iterable[Evidence], later: Iterable[Evidence]) -> bool:
    """Whether on every GPU of `later` a fault of `first` came before, in the same log and within a burst."""
    begun = {gpu: fact for fact in sorted(first, key=lambda fact: -fact.offset) if (gpu := _gpu(fact))}
    pairs = [(begun.get(gpu), fact) for fact in later if (gpu := _gpu(fact))]
    return bool(pairs) and all(
        before is not None and before.offset < fact.offset and _in_one_burst(before, fact) for before, fact in pairs
    )


def _gpu(fact: Evidence) -> tuple[str, str] | None:
    return (fact.source, fact.detail.pci_address) if isinstance(fact.detail, KernelDetail) else None


def _in_one_burst(one: Evidence, other: Evidence) -> bool:
    return one.origin.time is None or other.origin.time is None or other.origin.time - one.origin.time <= _BURST


def nonfatal(graph: CausalGraph) -> None:
    """A fault that the driver calls Nonfatal is a warning: anything else comes before it."""
    for candidate in graph.candidates:
        if candidate.signature and all(_NONFATAL.search(fact.text) for fact in candidate.facts):
            candidate.demotion_reason = "The driver calls it Nonfatal: a warning, not a cause"


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
    faults = [one for one in graph.candidates if _xids(one) and not one.demotion_reason and _are_joined(one, candidate)]
    ranks = candidate.observed_rank_set.intersection(rank for one in faults for rank in one.observed_rank_set)
    return ranks if ranks != candidate.observed_rank_set else frozenset()


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


def inner_error(graph: CausalGraph) -> None:
    """CANN's codes that end in 9999 say only that something failed inside: they carry no cause."""
    for candidate in (one for one in graph.candidates if one.signature is None):
        codes = {code for fact in candidate.facts for code in _CODE.findall(fact.text)}
        if codes and all(_INNER.fullmatch(code) for code in codes):
            verb = "says" if len(codes) == 1 else "say"
            candidate.demotion_reason = f"{', '.join(sorted(codes))} {verb} only that something failed inside CANN"


def all_ranks(graph: CausalGraph) -> None:
    """The same error on all ranks is one of the program, the configuration or shared hardware, not of one rank."""
    world = graph.context.all_ranks
    for candidate in graph.candidates:
        ranks = candidate.observed_ranks
        if candidate.suspects is not None or candidate.role == "symptom" or candidate.is_inferred or len(ranks) < 2:
            continue
        if candidate.indicates == "outside" and set(ranks) >= world:
            candidate.why.append(f"All ranks ({format_ranks(ranks)}) were stopped, so no rank is at fault")
        elif len(ranks) > 2 and set(ranks) >= world:
            is_of_machine = candidate.domain in ("gpu", "fabric", "host", "slurm")
            fault = "shared hardware" if is_of_machine else "the program or its configuration"
            candidate.why.append(f"All ranks ({format_ranks(ranks)}) show it: a fault of {fault}, not of one rank")
        elif world:
            candidate.why.append(f"{len(ranks)} of {len(world)} ranks show it: {format_ranks(ranks)}")
