"""Rules about transfers between two ends: the link, or an end that was gone."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.diagnose.candidates import Candidate
from triage.diagnose.graph import Case, name, tier
from triage.diagnose.scene import Scene

_ADDRESS = lazy_re(r"^\[?([0-9a-fA-F:.]+?)\]?(?:<\d+>)?$")


def dead_peer(case: Case) -> None:
    """A transfer that was given up follows from the failure of another rank, unless that came clearly later."""
    for link in case.candidates:
        if link.tells != "link":
            continue
        for cause in case.ordered:
            if _died_elsewhere(cause, link) and not link.clearly_before(cause):
                case.link(cause, link, f"the other end was gone: {name(cause)}")


def _died_elsewhere(cause: Candidate, link: Candidate) -> bool:
    """Is it the failure of a rank that did not itself complain of the link?"""
    if (
        cause is link
        or cause.tells in ("link", "outside")
        or cause.inferred
        or cause.role not in ("cause", "either", "confirmation")
    ):
        return False
    if cause.signature is not None and cause.signature.domain in ("fabric", "nccl"):
        return False  # those name the path, and the catalog says how they hang together
    level, ranks = tier(cause), set(cause.ranks)
    return level is not None and level <= 2 and bool(ranks) and not ranks <= set(link.shown_by)


def living_peer(case: Case) -> None:
    """Nobody had failed before: the link itself. Both ends and the device are named, as far as the lines say."""
    for link in case.candidates:
        if link.tells != "link" or link.explained_by:
            continue
        peers = {value for capture in ("peer", "peer_ip") for value in link.values.get(capture, ())}
        devices = sorted(set(link.values.get("device", ())))
        hosts = {
            host for peer in peers if (match := _ADDRESS.match(peer)) for host in case.scene.addresses.get(match[1], ())
        }
        ends = sorted({*link.hosts, *hosts}) if hosts else [*link.hosts[:3], *sorted(peers)[:3]]
        link.why.append(
            "no other rank had failed before: it is the link"
            + (f", between {' and '.join(ends)}" if len(ends) > 1 else "")
            + (f", device {', '.join(devices[:3])}" if devices else "")
        )


def heartbeat_location(case: Case) -> None:
    """HCCL's heartbeat names host and device of the end that was lost: the rank there is the suspect, and what it says
    of itself is why.
    """
    for candidate in case.candidates:
        if candidate.signature is None or candidate.signature.domain != "hccl" or candidate.suspects is not None:
            continue
        peers, devices = candidate.values.get("peer", ()), candidate.values.get("device", ())
        if len(peers) != 1 or len(devices) != 1:
            continue
        found = _ranks_at(case.scene, peers[0], int(devices[0]))
        if len(found) != 1:
            continue
        rank = next(iter(found))
        case.suspect(candidate, found, f"the message names device {devices[0]} of {peers[0]}: that is rank {rank}")
        for cause in case.ordered:
            own = (
                cause.role in ("cause", "either")
                and not cause.inferred
                and rank in cause.shown_by
                and rank not in candidate.shown_by
            )
            if own and cause.tells not in ("link", "outside") and not candidate.clearly_before(cause):
                case.link(cause, candidate, f"rank {rank}, whose heartbeat was lost, had failed: {name(cause)}")


def _ranks_at(scene: Scene, address: str, device: int) -> set[int]:
    """The ranks on a device of the host with this name or address; where all files are of one host, it is that one."""
    hosts = {address, *scene.addresses.get(address, ())}
    found = {rank for host in hosts for rank in scene.local.get((host, device), ())}
    if found or not scene.one_host:
        return found
    return {rank for (_, local), ranks in scene.local.items() if local == device for rank in ranks}
