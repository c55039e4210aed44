"""Rules about transfers between two ends: was it the link, or had one end failed?"""

from __future__ import annotations

from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph

_LEAST_REPORTS = 2  # ranks that must report a lost peer before the one that does not is that peer


def heartbeat_location(graph: CausalGraph) -> None:
    """HCCL's heartbeat names host and device of the end that was lost: the rank there is the suspect, and its own
    failure the cause.
    """
    for candidate in graph.candidates:
        if candidate.domain != "hccl" or candidate.suspects is not None:
            continue
        peers, devices = candidate.values.get("peer", ()), candidate.values.get("device", ())
        if len(peers) != 1 or len(devices) != 1:
            continue
        named = f"The message names device {devices[0]} of {peers[0]}"
        ranks, why = _ranks_at(graph.context, peers[0], int(devices[0])), "which is rank {}"
        if len(ranks) != 1:
            ranks, why = _only_other(graph.context, candidate), "and rank {} is the only one that does not report it"
        if len(ranks) != 1:
            continue
        rank = next(iter(ranks))
        graph.set_suspects(candidate, ranks, f"{named}, {why.format(rank)}")
        for cause in graph.ordered:
            if _is_failure_of(cause, rank, candidate) and not candidate.clearly_before(cause):
                graph.add_edge(cause, candidate, f"rank {rank}, whose heartbeat was lost, had failed")


def _only_other(context: RuleContext, lost: Candidate) -> set[int]:
    """Return the one rank that does not report a peer that all others lost; empty where it is not one of many."""
    others = set(context.all_ranks - lost.observed_rank_set)
    return others if len(others) == 1 and len(lost.observed_rank_set) >= _LEAST_REPORTS else set()


def _is_failure_of(cause: Candidate, rank: int, lost: Candidate) -> bool:
    return (
        cause.role in ("cause", "either")
        and not cause.is_inferred
        and cause.indicates not in ("link", "outside")
        and rank in cause.observed_ranks
        and rank not in lost.observed_ranks
    )


def _ranks_at(context: RuleContext, address: str, device: int) -> set[int]:
    """Return the ranks on a device of the host with this name or address; where all files are of one host, that one."""
    hosts = {address, *context.addresses.get(address, ())}
    ranks = {rank for host in hosts for rank in context.local.get((host, device), ())}
    if ranks or not context.one_host:
        return ranks
    return {rank for (_, local), here in context.local.items() if local == device for rank in here}
