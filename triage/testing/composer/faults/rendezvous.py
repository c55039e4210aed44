"""Faults before the first step: ranks that do not find each other."""

from __future__ import annotations

import random
from collections.abc import Iterable

from triage.testing.composer.faults.c10d import Call, by_version, glog, start_of, torch_file, uncaught, version
from triage.testing.composer.faults.collectives import KNOWN, in_order
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.mismatches import nccl_error, nccl_prefix, start_without_init
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import record

_SECONDS = (300, 600, 900, 1800)


def never_started(world: World, rng: random.Random) -> Story:
    """One rank never starts; the others wait for it at the store."""
    missing, seconds = rng.randrange(1, world.size), rng.choice(_SECONDS)
    present = [rank for rank in world.ranks if rank != missing]
    late, exits = _wait_at_store(world, rng, present, world.size, seconds)
    lines = [line for line in start_of(world, rng, present) if "Init COMPLETE" not in line.text]
    nodes = frozenset({world.node(missing)})
    truth = Truth(KNOWN, _MISSING, frozenset({missing}), nodes, by_comparison=True)
    return Story((*lines, *late), truth, exits)


def wrong_world_size(world: World, rng: random.Random) -> Story:
    """WORLD_SIZE is larger than the number of ranks that the launcher starts."""
    claimed, seconds = world.size + rng.choice((1, world.per_node)), rng.choice(_SECONDS)
    message = {rank: world.introduce(rank, claimed) for rank in world.ranks}
    lines = [record(world, rank, 1 + rng.uniform(0, 1), message[rank]) for rank in world.ranks]
    late, exits = _wait_at_store(world, rng, world.ranks, claimed, seconds)
    return Story((*lines, *late), Truth(KNOWN, _MISSING, frozenset(range(world.size, claimed))), exits)


def port_in_use(world: World, rng: random.Random) -> Story:
    """Rank 0 cannot listen on the master port; the launcher stops the others."""
    port, at = rng.choice((29500, 12355, 6000, 23456)), 3.5
    bound = [f"The server socket has failed to bind to {host}:{port} (errno: 98 - Address already in use)." for host in
             ("[::]", "0.0.0.0")]  # fmt: skip
    error = "The server socket has failed to listen on any local network address."
    lines: list[Line] = []
    if version(world) < (2, 4):
        shown = [glog(world, at, "W", "socket.cpp:436") + "[c10d] " + text for text in bound]
        shown.append(glog(world, at, "E", "socket.cpp:472") + "[c10d] " + error)
        lines.append(Line(at, Writer("rank", 0), "\n".join(shown), is_cause=True))
        error = " ".join((error, *bound))
    else:
        wide = "0" if version(world) < (2, 9) else "false"
        error += f" port: {port}, useIpv6: {wide}, code: -98, name: EADDRINUSE, message: address already in use"
    calls = _store_calls(world)
    last = uncaught(
        world, 0, at + 0.1, f"torch.distributed.DistNetworkError: {error}", calls, is_cause=True, tagged=False
    )  # fmt: skip
    truth = Truth(KNOWN, frozenset({"launch.port-in-use"}), frozenset({0}), frozenset({0}))
    return Story((*start_without_init(world, rng), *lines, last), truth, (Exit(0, 1, at + 0.3),))


def master_unresolvable(world: World, rng: random.Random) -> Story:
    """No rank can resolve the name in MASTER_ADDR."""
    host = rng.choice(("trainer-0.trainer-svc", "master-node", "job-4711-master-0", f"{world.hosts[0]}-ib"))
    port, seconds = rng.choice((29500, 23456)), rng.choice((60, 300))
    number = by_version(world, (663, 697, 752, 767))
    late, exits = [], []
    for rank in world.ranks:
        at = 3 + rng.uniform(0, 1)
        for again in range(rng.randrange(2, 5)):
            moment = at + again * 1.2
            prefix = glog(world, moment, "W", f"socket.cpp:{number}")
            text = f"[c10d] The IPv6 network addresses of ({host}, {port}) cannot be retrieved (gai error: -2 - Name or service not known)."  # noqa: E501
            late.append(Line(moment, Writer("rank", rank), prefix + text, is_cause=True))
        late += _connect_timeout(world, rank, at + seconds, host, port, seconds)
        exits.append(Exit(rank, 1, at + seconds + 0.3))
    every = frozenset(world.ranks)
    truth = Truth(KNOWN, frozenset({"launch.host-unresolvable"}), every, frozenset(map(world.node, every)))
    return Story((*start_without_init(world, rng), *late), truth, in_order(exits))


def master_port_closed(world: World, rng: random.Random) -> Story:
    """The ranks of other nodes cannot reach the master port; those of the first node wait for them."""
    port, seconds = rng.choice((29500, 23456)), rng.choice((300, 600))
    local, remote = list(world.on_node(0)), [rank for rank in world.ranks if world.node(rank)]
    late, exits = [], []
    for rank in remote:
        at = 3 + rng.uniform(0, 1)
        for again in range(rng.randrange(1, 3)):
            moment = at + 129 + again * 2
            prefix = glog(world, moment, "W", f"socket.cpp:{by_version(world, (663, 697, 752, 767))}")
            text = f"[c10d] The client socket has failed to connect to [{world.hosts[0]}]:{port} (errno: 110 - Connection timed out)."  # noqa: E501
            late.append(Line(moment, Writer("rank", rank), prefix + text, is_cause=True))
        late += _connect_timeout(world, rank, at + seconds, world.hosts[0], port, seconds, is_cause=True)
        exits.append(Exit(rank, 1, at + seconds + 0.3))
    waiting, ends = _wait_at_store(world, rng, local, world.size, seconds, is_cause=False)
    roots = frozenset({"launch.port-closed", "launch.store-connect-timeout"})
    truth = Truth(KNOWN, roots, frozenset(remote), frozenset(map(world.node, remote)))
    return Story((*start_without_init(world, rng), *late, *waiting), truth, in_order((*exits, *ends)))


def environment_missing(world: World, rng: random.Random) -> Story:
    """All ranks miss a variable that the launcher should have set."""
    name = rng.choice(("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))
    number = {"RANK": 258, "WORLD_SIZE": 263, "MASTER_ADDR": 265, "MASTER_PORT": 266}[name]
    code = {
        "RANK": 'rank = int(_get_env_or_raise("RANK"))',
        "MASTER_ADDR": 'master_addr = _get_env_or_raise("MASTER_ADDR")',
    }
    number += int(by_version(world, (-12, 0, 3, 11)))
    error = f"environment variable {name} expected, but not set"
    rendezvous = torch_file(world, "distributed/rendezvous.py")
    calls = [
        *_init_calls(world),
        (rendezvous, number, "_env_rendezvous_handler", code.get(name, f'int(_get_env_or_raise("{name}"))')),
        (rendezvous, number - 15, "_get_env_or_raise", "raise _env_error(env_var)"),
    ]
    late, exits = [], []
    for rank in world.ranks:
        at = 2.5 + rng.uniform(0, 0.6)
        text = f"ValueError: Error initializing torch.distributed using env:// rendezvous: {error}"
        late.append(uncaught(world, rank, at, text, calls, is_cause=True, tagged=False))
        exits.append(Exit(rank, 1, at + 0.2))
    every = frozenset(world.ranks)
    truth = Truth(KNOWN, frozenset({"launch.env-missing"}), every, frozenset(map(world.node, every)))
    return Story(tuple(late), truth, in_order(exits))


def stale_rendezvous(world: World, rng: random.Random) -> Story:
    """The store still counts the ranks of an earlier job, so the barrier counts too many (torch up to 1.12)."""
    seconds = rng.choice((1800, 900))
    counted = world.size * 2 if rng.random() < 0.6 else world.size + rng.randrange(1, world.size)
    span = f"0:{seconds // 60:02d}:00"
    calls = [
        *_init_calls(world)[:-1],
        (torch_file(world, "distributed/distributed_c10d.py"), 627, "init_process_group",
         "_store_based_barrier(rank, store, timeout)"),
        (torch_file(world, "distributed/distributed_c10d.py"), 255, "_store_based_barrier", "raise RuntimeError("),
    ]  # fmt: skip
    late, exits = [], []
    for rank in world.ranks:
        at = 4 + seconds + rng.uniform(0, 1)
        state = f"(world_size={world.size}, worker_count={counted}, timeout={span})"
        waiting = "Waiting in store based barrier to initialize process group for rank: "
        for again in (10, 20, 30):
            text = f"{waiting}{rank}, key: store_based_barrier_key:1 {state}"
            late.append(record(world, rank, at - seconds + again, text))
        error = (
            "RuntimeError: Timed out initializing process group in store based barrier on rank: "
            f"{rank}, for key: store_based_barrier_key:1 {state}"
        )
        late.append(uncaught(world, rank, at, error, calls, is_cause=True, tagged=False))
        exits.append(Exit(rank, 1, at + 0.3))
    truth = Truth(KNOWN, frozenset({"launch.stale-rendezvous"}))
    return Story((*start_without_init(world, rng), *late), truth, in_order(exits))


def duplicate_rank(world: World, rng: random.Random) -> Story:
    """A process of another job checks in as a rank that NCCL's root already knows."""
    rank, at, root = rng.randrange(1, world.size), 7.0, rng.randrange(30000, 60000)
    text = f"Bootstrap Root : rank {rank} of {world.size} ranks has already checked in"
    where = by_version(world, ("bootstrap.cc:145", "bootstrap.cc:151", "bootstrap.cc:331", "bootstrap.cc:340"))
    warning = Line(at, Writer("rank", 0), f"\n{nccl_prefix(world, 0, at, where)}{text}", "stdout", is_cause=True)
    late, exits = [warning], []
    file = torch_file(world, "distributed/distributed_c10d.py")
    calls = [*_init_calls(world)[:1], (file, int(by_version(world, (3696, 3936, 4551, 4811))), "barrier",
             "work = group.barrier(opts=opts)")]  # fmt: skip
    for each in world.ranks:
        moment = at + 0.4 + rng.uniform(0, 0.8)
        closed = f"socketProgress: Connection closed by remote peer {world.hosts[0]}<{root}>"
        summary = "remote process exited or there was a network error"
        late.append(uncaught(world, each, moment, nccl_error(summary, "ncclRemoteError", closed, world), calls))
        exits.append(Exit(each, 1, moment + 0.3))
    nodes = frozenset({world.node(rank)})
    truth = Truth(KNOWN, frozenset({"nccl.duplicate-rank"}), frozenset({rank}), nodes)
    return Story((*start_without_init(world, rng), *late), truth, in_order(exits))


_MISSING = frozenset({"launch.ranks-missing-at-rendezvous", "launch.wrong-world-size", "torch.rank-never-joined"})


def _init_calls(world: World) -> list[Call]:
    number = int(by_version(world, (1141, 1361, 1714, 1769)))
    wrapper = int(by_version(world, (74, 93, 97, 95)))
    code = "store, rank, world_size = next(rendezvous_iterator)"
    return [
        (world.script, 212, "<module>", "main()"),
        (world.script, 152, "main", "dist.init_process_group(backend=args.backend, timeout=timeout)"),
        (torch_file(world, "distributed/c10d_logger.py"), wrapper, "wrapper", "func_return = func(*args, **kwargs)"),
        (torch_file(world, "distributed/distributed_c10d.py"), number, "init_process_group", code),
    ]


def _store_calls(world: World) -> list[Call]:
    file, code = torch_file(world, "distributed/rendezvous.py"), "store = _create_c10d_store("
    return [
        *_init_calls(world),
        (file, int(by_version(world, (246, 258, 278, 278))), "_env_rendezvous_handler", code),
        (file, int(by_version(world, (174, 185, 198, 198))), "_create_c10d_store", "return TCPStore("),
    ]


def _connect_timeout(
    world: World, rank: int, at: float, host: str, port: int, seconds: int, *, is_cause: bool = False
) -> list[Line]:
    span = f"{seconds}s" if version(world) < (2, 4) else f"{seconds * 1000}ms"
    text = f"The client socket has timed out after {span} while trying to connect to ({host}, {port})."
    prefix = glog(world, at, "E", f"socket.cpp:{by_version(world, (957, 957, 1015, 1019))}")
    error = f"torch.distributed.DistNetworkError: {text}"
    return [
        Line(at, Writer("rank", rank), f"{prefix}[c10d] {text}", is_cause=is_cause),
        uncaught(world, rank, at + 0.1, error, _store_calls(world), is_cause=is_cause, tagged=False),
    ]


def _wait_at_store(
    world: World, rng: random.Random, present: Iterable[int], size: int, seconds: int, *, is_cause: bool = True
) -> tuple[list[Line], tuple[Exit, ...]]:
    """Return the timeouts of ranks that wait for `size` clients, and their ends. From 2.2 on rank 0 counts clients."""
    joined = list(present)
    lines, exits = [], []
    for rank in joined:
        at = 3.5 + seconds + (1 if rank == 0 else rng.uniform(-0.4, 1.8))
        error, calls = _store_error(world, rank, seconds, f"{len(joined)}/{size}")
        lines.append(uncaught(world, rank, at, error, calls, is_cause=is_cause, tagged=False))
        exits.append(Exit(rank, 1, at + 0.3))
    return lines, in_order(exits)


def _store_error(world: World, rank: int, seconds: int, joined: str) -> tuple[str, list[Call]]:
    """Return how a rank fails at the store, and where: `joined` of all ranks, like `7/8`, joined it."""
    file, calls = torch_file(world, "distributed/distributed_c10d.py"), _init_calls(world)[:3]
    numbers = [int(by_version(world, choice)) for choice in ((1193, 1399, 1723, 1776), (481, 1583, 2002, 2020))]
    if version(world) < (2, 2):
        count, _, size = joined.partition("/")
        state = f"(world_size={size}, num_workers_joined={count}, timeout=0:{seconds // 60:02d}:00)"
        where = f"rank {rank}, for key: store_based_barrier_key:1 {state}"
        error = f"DistStoreError: Timed out initializing process group in store based barrier on {where}"
        calls += [(file, numbers[0], "init_process_group", "_store_based_barrier(rank, store, timeout)"),
                  (file, numbers[1], "_store_based_barrier", "raise DistStoreError(")]  # fmt: skip
    elif rank == 0:
        error = f"DistStoreError: Timed out after {seconds + 1} seconds waiting for clients. {joined} clients joined."
        calls = _store_calls(world)
    else:
        gloo = world.backend == "gloo"
        key = "/default_pg/0//cpu//0/0" if gloo else "/default_pg/0//cuda//0"
        why = "Socket Timeout" if version(world) < (2, 6) else f"wait timeout after {seconds * 1000}ms, keys: {key}"
        fetch = (
            f"[{rank}] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store"
        )
        error = (
            f"DistStoreError: {why}"
            if gloo
            else f"DistBackendError: {fetch} by key '0', but store->get('0') got error: {why}"
        )
        constructor = (
            "backend_class = ProcessGroupGloo(" if gloo else "eager_backend.eager_connect_single_device(device_id)"
        )
        calls += [(file, numbers[0], "init_process_group", "default_pg, _ = _new_process_group_helper("),
                  (file, numbers[1], "_new_process_group_helper", constructor)]  # fmt: skip
    return f"torch.distributed.{error}", calls


FAULTS = (
    Fault("rank-never-started", never_started, least_per_node=2),
    Fault("master-port-in-use", port_in_use),
    Fault("master-unresolvable", master_unresolvable),
    Fault("master-port-closed", master_port_closed, least_nodes=2),
    Fault("environment-missing", environment_missing),
    Fault("stale-rendezvous", stale_rendezvous),
    Fault("wrong-world-size", wrong_world_size),
    Fault("duplicate-rank", duplicate_rank, backends=("nccl",)),
)
