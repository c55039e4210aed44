"""Rules about transfers between two ends: was it the link, or had one end failed?"""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph, root_tier
from triage.diagnose.phrases import join_names

_LEAST_REPORTS = 2  # ranks that must report a lost peer before the one that does not is that peer
_ADDRESS = lazy_re(r"^\[?([0-9a-fA-F:.]+?)\]?(?:<\d+>)?$")


def dead_peer(graph: CausalGraph) -> None:
    """A transfer that was given up follows from the failure of another rank, unless that came clearly later."""
    for link in graph.candidates:
        if link.indicates != "link":
            continue
        for cause in graph.ordered:
            if _failed_elsewhere(cause, link) and not link.clearly_before(cause):
                graph.add_edge(cause, link, "the other end of the connection had failed")


def _failed_elsewhere(cause: Candidate, link: Candidate) -> bool:
    """Whether it is the failure of a rank that did not itself complain of the link."""
    if cause is link or cause.indicates in ("link", "outside") or cause.is_inferred:
        return False
    if cause.role not in ("cause", "either", "confirmation"):
        return False
    if cause.domain in ("fabric", "nccl"):
        return False  # those are about the path, and the catalog says how they are related
    level, ranks = root_tier(cause), set(cause.ranks)
    return level is not None and level <= 2 and bool(ranks) and not ranks <= set(link.observed_ranks)


def living_peer(graph: CausalGraph) -> None:
    """Where no other rank had failed before, the link is the cause. Its ends and its device are named if known."""
    for link in graph.candidates:
        if link.indicates != "link" or link.explained_by:
            continue
        peers = {value for capture in ("peer", "peer_ip") for value in link.values.get(capture, ())}
        devices = sorted(set(link.values.get("device", ())))
        addresses = graph.context.addresses
        hosts = {host for peer in peers if (match := _ADDRESS.match(peer)) for host in addresses.get(match[1], ())}
        ends = sorted({*link.hosts, *hosts}) if hosts else [*link.hosts[:3], *sorted(peers)[:3]]
        link.why.append(
            "No other rank had failed before, so the link is the cause"
            + (f", between {join_names(ends)}" if len(ends) > 1 else "")
            + (f", device {', '.join(devices[:3])}" if devices else "")
        )


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
