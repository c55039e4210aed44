"""Faults of the network between nodes and of NCCL's own transports on one node."""

from __future__ import annotations

import dataclasses
import random

from triage.testing.composer.faults.error_texts import (
    nccl_error,
    nccl_warn,
    tell_crash,
    train,
    version,
    watchdog_exception,
)
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, World
from triage.testing.composer.parts import kernel, record, traceback


def port_error(world: World, rng: random.Random) -> Story:
    """A port of an InfiniBand adapter goes down: its node's ranks print the event, then their retries are exceeded."""
    if version(world.nccl) >= (2, 23):
        world = dataclasses.replace(world, nccl="2.28.9")
    before, at = train(world, rng)
    first = rng.randrange(world.size)
    shares_adapter = rng.random() < 0.5
    ranks = list(world.on_node(world.node(first))) if shares_adapter else [first]
    adapter = "mlx5_0" if shares_adapter else f"mlx5_{world.local(first)}"
    where, message = _port_event(world, adapter)
    causes = [
        nccl_warn(world, rank, at + rng.uniform(0, 0.01), where, message, is_cause=True, device=0) for rank in ranks
    ]
    peers = [_peer(world, rng, rank) for rank in ranks]
    for rank, peer in zip(ranks, peers, strict=True):
        causes += _exceeded(world, rng, rank, peer, at + rng.uniform(8, 10), adapter, is_cause=False)
        causes += _exceeded(world, rng, peer, rank, at + rng.uniform(10, 12), adapter, is_cause=False)
    exits = [Exit(rank, -6, at + 11 + rank / 1000) for rank in ranks]
    victims = [Exit(peer, -6, at + 13 + peer / 1000) for peer in peers]
    return tell_crash(world, rng, before, exits, causes, {"fabric.ib-port-error"}, share=0.5, victims=victims)


def _port_event(world: World, adapter: str) -> tuple[str, str]:
    """Return place and text of the event in the wording of NCCL's version."""
    if version(world.nccl) < (2, 20):
        return "transport/net_ib.cc:94", "NET/IB : Got async event : port error"
    if version(world.nccl) < (2, 23):
        return "transport/net_ib.cc:103", f"NET/IB : {adapter}:1 Got async event : port error"
    return "transport/net_ib.cc:217", f"NET/IB : {adapter}:1 Got non-fatal async event: port error(10)"


def retry_exceeded(world: World, rng: random.Random) -> Story:
    """Retries between two nodes are exceeded: both ends say so, or all ranks of one node about different peers."""
    before, at = train(world, rng)
    first = rng.randrange(world.size)
    pairs = [(first, _peer(world, rng, first))]
    pairs.append((pairs[0][1], first))
    if len(world.hosts) > 2 and rng.random() < 0.5:
        others = [node for node in range(len(world.hosts)) if node != world.node(first)]
        pairs = [
            (rank, rng.choice(world.on_node(others[index % len(others)])))
            for index, rank in enumerate(world.on_node(world.node(first)))
        ]
    causes, exits = [], []
    for rank, peer in pairs:
        moment = at + rng.uniform(0, 0.6)
        causes += _exceeded(world, rng, rank, peer, moment, f"mlx5_{world.local(rank)}", is_cause=True)
        exits.append(Exit(rank, -6, moment + 1))
    ends = sorted(exits, key=lambda end: end.at)
    return tell_crash(world, rng, before, ends, causes, {"fabric.ib-retry-exceeded"}, share=0.5)


def link_down(world: World, rng: random.Random) -> Story:
    """The kernel of one node says that the link of an adapter is down; both ends' retries are exceeded."""
    rank = rng.randrange(world.size)
    node, peer = world.node(rank), _peer(world, rng, rank)
    before, at = train(world, rng)
    function = f"0000:{(0x1A, 0x40, 0x5E, 0x9A, 0xBC, 0xCE, 0xD8, 0xDC)[world.local(rank) % 8]:02x}:00.0"
    name = f"{'ens' if int(world.start) % 2 else 'ib'}{world.local(rank)}"
    down = f"mlx5_core {function} {name}: Link down"
    causes = [kernel(world, node, at, down, is_cause=True, says_host=True)]
    if rng.random() < 0.3:
        bond = f"bond{world.local(rank)}: (slave {name}): link status definitely down, disabling slave"
        causes.append(kernel(world, node, at + 0.1, bond, says_host=True))
    adapter = f"mlx5_{world.local(rank)}"
    moment = at + rng.uniform(8, 20)
    causes += _exceeded(world, rng, rank, peer, moment, adapter, is_cause=True)
    causes += _exceeded(world, rng, peer, rank, moment + rng.uniform(0, 0.5), adapter, is_cause=False)
    roots, victims = {"fabric.ib-port-error", "fabric.ib-retry-exceeded"}, [Exit(peer, -6, moment + 1.5)]
    exits = [Exit(rank, -6, moment + 1)]
    return tell_crash(world, rng, before, exits, causes, roots, share=0.5, victims=victims)


def shared_memory_full(world: World, rng: random.Random) -> Story:
    """Ranks of one node cannot make NCCL's shared memory segments: /dev/shm is full."""
    node = rng.randrange(len(world.hosts))
    before = [record(world, rank, 1 + rank / 100, "building model") for rank in world.ranks]
    ranks = sorted(rng.sample(list(world.on_node(node)), rng.randrange(1, world.per_node + 1)))
    size, at = rng.choice((9_637_888, 33_030_528, 5_767_520)), rng.uniform(8, 14)
    causes, exits = [], []
    for rank in ranks:
        path = "/dev/shm/nccl-" + "".join(rng.choices("ABCDEFGHJKabcdefghjk23456789", k=6))
        moment, new = at + rng.uniform(0, 0.4), version(world.nccl) >= (2, 22)
        reason = ", error: No space left on device (28)"
        last = f"Error while creating shared memory segment {path} (size {size}){reason if new else ''}"
        extend = f"Error: failed to extend {path} to {size + 4} bytes{reason if new else ''}"
        causes.append(nccl_warn(world, rank, moment, f"misc/shmutils.cc:{87 if new else 72}", extend, is_cause=True))
        causes.append(nccl_warn(world, rank, moment, f"misc/shmutils.cc:{126 if new else 113}", last, is_cause=True))
        causes.append(traceback(world, rank, moment + 0.1, nccl_error(world, "system", last), is_cause=True))
        exits.append(Exit(rank, 1, moment + 0.5))
    ends = sorted(exits, key=lambda end: end.at)
    return tell_crash(world, rng, before, ends, causes, {"nccl.shared-memory-full"}, share=0.5)


def no_socket_interface(world: World, rng: random.Random) -> Story:
    """NCCL_SOCKET_IFNAME fits no interface of one node; each rank there fails at its first communicator."""
    node = rng.randrange(len(world.hosts))
    before = [record(world, rank, 1 + rank / 100, "building model") for rank in world.ranks]
    at, causes, exits = rng.uniform(5, 12), [], []
    last, result = "Bootstrap : no socket interface found", "internal"
    where = "bootstrap.cc:45"
    if version(world.nccl) >= (2, 24):
        where, result = "bootstrap.cc:112", "usage"
    for rank in world.on_node(node):
        moment = at + rng.uniform(0, 0.6)
        causes.append(nccl_warn(world, rank, moment, where, last, is_cause=True))
        causes.append(traceback(world, rank, moment + 0.1, nccl_error(world, result, last), is_cause=True))
        exits.append(Exit(rank, 1, moment + 0.5))
    ends = sorted(exits, key=lambda end: end.at)
    return tell_crash(world, rng, before, ends, causes, {"nccl.no-socket-interface"}, share=0)


def _peer(world: World, rng: random.Random, rank: int) -> int:
    """Return the rank with the same local rank on another node."""
    nodes = [node for node in range(len(world.hosts)) if node != world.node(rank)]
    return world.on_node(rng.choice(nodes))[world.local(rank)]


def _exceeded(
    world: World, rng: random.Random, rank: int, peer: int, at: float, adapter: str, *, is_cause: bool
) -> list[Line]:
    """Return NCCL's completion error of a rank about a peer, and the end of its watchdog."""
    where, message = _completion(world, rng, peer, adapter)
    error = nccl_error(world, "remote", message).partition(": ")[2].partition(", ")[2]
    return [
        nccl_warn(world, rank, at, where, message, is_cause=is_cause),
        watchdog_exception(world, rank, at + 0.3, f"NCCL error: {error}", is_cause=is_cause),
    ]


def _completion(world: World, rng: random.Random, peer: int, adapter: str) -> tuple[str, str]:
    """Return place and text of a completion with an exceeded retry, in the wording of NCCL's version."""
    address = f"10.0.{world.node(peer)}.{10 + world.node(peer)}<{rng.randrange(32768, 60999)}>"
    opcode, kind = rng.choice((0, 32698, 129)), rng.choice(("Send", "Recv"))
    local, remote = rng.randrange(2, 90), rng.randrange(91, 200)
    gids = f" localGid ::ffff:10.1.0.{local} remoteGids::ffff:10.1.0.{remote}" if int(world.start) % 2 else ""
    nccl, head = version(world.nccl), f"Got completion from peer {address} with"
    if nccl < (2, 20):
        text = f"NET/IB : {head} error 12, opcode {opcode}, len 0, vendor err 129 ({kind}){gids}"
        return "transport/net_ib.cc:1295", text
    if nccl < (2, 22):
        text = f"NET/IB : {head} status=12 opcode={opcode} len=0 vendor err 129 ({kind}){gids}"
        return "transport/net_ib.cc:1909", text
    if nccl < (2, 28):
        text = f"NET/IB: {head} status=12 opcode={opcode} len=0 vendor err 129 ({kind}){gids} hca {adapter}"
        return "transport/net_ib.cc:2470", text
    status = "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)"
    return (
        "transport/net_ib.cc:2543",
        f"NET/IB: {head} {status} reqSize=0 vendor_err=129 req_type={kind}{gids} hca {adapter}",
    )


FAULTS = (
    Fault("ib-port-error", port_error, ("nccl",), least_nodes=2),
    Fault("ib-retry-exceeded", retry_exceeded, ("nccl",), least_nodes=2),
    Fault("nic-link-down", link_down, ("nccl",), least_nodes=2),
    Fault("nccl-shared-memory-full", shared_memory_full, ("nccl",), least_per_node=2),
    Fault("no-socket-interface", no_socket_interface, ("nccl",), least_nodes=2),
)
