"""Faults of one node: no memory left, stalls of the kernel or of storage, a node lost, old drivers, limits."""

from __future__ import annotations

import random
from collections.abc import Sequence

from triage.testing.composer.faults.error_texts import (
    KNOWN,
    kernel_pid,
    nccl_error,
    nccl_warn,
    plain,
    tell_crash,
    time_out,
    train,
    version,
)
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Backend, Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import kernel, record, start, steps, traceback

ALL: tuple[Backend, ...] = ("nccl", "gloo", "hccl")


def out_of_host_memory(world: World, rng: random.Random) -> Story:
    """A node has no memory left; the kernel kills one rank."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    uid = rng.randrange(1000, 1200)
    task = f"/user.slice/user-{uid}.slice/session-{rng.randrange(2, 90)}.scope"
    place = f"constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg={task}"
    causes = oom_lines(world, rng, rank, at, place, "Out of memory: Killed process", uid)
    return tell_crash(world, rng, before, [Exit(rank, -9, at + 0.2)], causes, {"host.oom-killer"})


def cgroup_out_of_memory(world: World, rng: random.Random) -> Story:
    """The memory limit of a container or job step is reached; the kernel kills one rank of it."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    pod = f"/kubepods.slice/kubepods-pod{rng.getrandbits(32):08x}_71c2_4d0e_9b1f_{rng.getrandbits(48):012x}.slice"
    step = f"/system.slice/slurmstepd.scope/job_{rng.randrange(1000, 99999)}/step_0"
    group = rng.choice((pod, step))
    task = (
        f"{group}/cri-containerd-{rng.getrandbits(64):016x}.scope"
        if group == pod
        else f"{group}/user/task_{world.local(rank)}"
    )
    limit = rng.choice((67108864, 268435456, 536870912))
    place = f"constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,oom_memcg={group},task_memcg={task}"
    usage = f"memory: usage {limit}kB, limit {limit}kB, failcnt {rng.randrange(10, 90000)}"
    causes = [
        _kernel(world, rank, at - 0.01, usage, is_cause=False),
        *oom_lines(world, rng, rank, at, place, "Memory cgroup out of memory: Killed process", 0),
    ]
    return tell_crash(world, rng, before, [Exit(rank, -9, at + 0.2)], causes, {"host.oom-killer"})


def nfs_stall(world: World, rng: random.Random) -> Story:
    """The file server answers one node no more: its ranks (or the one that saves) stand still, the others time out."""
    node = rng.randrange(len(world.hosts))
    before, at = train(world, rng)
    here = list(world.on_node(node))
    stuck = here if len(world.hosts) > 1 and rng.random() < 0.5 else [rng.choice(here)]
    server = rng.choice(("10.0.9.5", "nfs01", "filer-2.cluster.local"))
    lines = [
        kernel(world, node, at + 5, f"nfs: server {server} not responding, still trying", is_cause=True, says_host=True)
    ]
    lines += [
        _kernel(
            world, rank, at + 130, f"INFO: task python3:{kernel_pid(world, rank)} blocked for more than 120 seconds."
        )
        for rank in stuck
    ]
    return _stall(world, rng, node, stuck, before, lines, at, "host.nfs-stall")


def soft_lockup(world: World, rng: random.Random) -> Story:
    """A CPU of a node hangs in the kernel; the rank on it (or all ranks of the node) stand still."""
    node = rng.randrange(len(world.hosts))
    before, at = train(world, rng)
    here = list(world.on_node(node))
    stuck = [rng.choice(here)]
    task = f"python3:{kernel_pid(world, stuck[0])}"
    if len(world.hosts) > 1 and rng.random() < 0.4:
        stuck, task = here, f"kworker/{rng.randrange(96)}:1:{rng.randrange(300, 2000)}"
    cpu = rng.randrange(96)
    lines = [
        kernel(
            world, node, at + 22 + 28 * count,
            f"watchdog: BUG: soft lockup - CPU#{cpu} stuck for {22 + 28 * count + rng.randrange(2)}s! [{task}]",
            is_cause=True, says_host=True,
        )
        for count in range(rng.randrange(1, 5))
    ]  # fmt: skip
    return _stall(world, rng, node, stuck, before, lines, at, "host.soft-lockup")


def node_lost(world: World, rng: random.Random) -> Story:
    """A node goes down; all its output ends, and Slurm ends the job."""
    return _nodes_lost(world, rng, [rng.randrange(len(world.hosts))])


def neighbours_lost(world: World, rng: random.Random) -> Story:
    """Two nodes of one power supply go down together."""
    first = rng.randrange(len(world.hosts) - 1)
    return _nodes_lost(world, rng, [first, first + 1])


def _nodes_lost(world: World, rng: random.Random, nodes: Sequence[int]) -> Story:
    count, more = rng.randrange(3, 12), rng.randrange(0, 3)
    at = 10.0 + count + more
    alive = [rank for rank in world.ranks if world.node(rank) not in nodes]
    job, end = rng.randrange(1000, 9_999_999), at + rng.randrange(60, 310)
    witness = next(host for index, host in enumerate(world.hosts) if index not in nodes)
    reason, lost = "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", ",".join(world.hosts[node] for node in nodes)
    moment = world.stamp(end, "%Y-%m-%dT%H:%M:%S")
    cancelled = f"slurmstepd: error: *** STEP {job}.0 ON {witness} CANCELLED AT {moment} {reason} ***"
    scheduler = Writer("scheduler")
    lines = (
        *start(world, rng),
        *steps(world, rng, 10, count),
        *steps(world, rng, 10 + count, more and 1, ranks=alive[: len(alive) // 2], number=count + 1),
        Line(end, scheduler, f"srun: error: Node failure on {lost}", is_cause=True, says_host=True),
        Line(end + 0.1, scheduler, "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."),
        Line(end + 0.2, scheduler, cancelled, is_cause=True),
    )
    ranks = frozenset(rank for node in nodes for rank in world.on_node(node))
    truth = Truth(KNOWN, frozenset({"slurm.node-failure"}), ranks, frozenset(nodes))
    return Story(lines, truth, stopped_by="scheduler")


def node_lost_after_timeouts(world: World, rng: random.Random) -> Story:
    """A node goes down; the ranks of the others time out, and Slurm notices it only then."""
    node = rng.randrange(len(world.hosts))
    before, at = train(world, rng)
    lines, exits = time_out(world, rng, world.on_node(node), at)
    end, job = max(line.at for line in lines) + rng.uniform(1, 40), rng.randrange(1000, 9_999_999)
    witness = next(host for index, host in enumerate(world.hosts) if index != node)
    moment, lost = world.stamp(end, "%Y-%m-%dT%H:%M:%S"), world.hosts[node]
    reason = "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"
    texts = rng.choice((
        (f"srun: error: Node failure on {lost}",
         f"slurmstepd: error: *** STEP {job}.0 ON {witness} CANCELLED AT {moment} {reason} ***"),
        (f"slurmctld: error: Nodes {lost} not responding, setting DOWN",
         f"slurmstepd: error: *** JOB {job} ON {witness} CANCELLED AT {moment} {reason} ***"),
    ))  # fmt: skip
    causes = [
        Line(end + number / 10, Writer("scheduler"), text, is_cause=True, says_host=not number)
        for number, text in enumerate(texts)
    ]
    truth = Truth(KNOWN, frozenset({"slurm.node-failure"}), frozenset(world.on_node(node)), frozenset({node}))
    return Story((*before, *lines, *causes), truth, tuple(exits), stopped_by="scheduler")


def old_driver(world: World, rng: random.Random) -> Story:
    """The GPU driver of one node is older than the CUDA of torch needs; each rank there fails at its start."""
    node = rng.randrange(len(world.hosts))
    at, exits, causes = rng.uniform(4, 9), [], []
    before = [record(world, other, 1 + other / 100, "loading configuration") for other in world.ranks]
    driver, from_nccl = rng.choice((10020, 11000, 11040, 11070)), rng.random() < 0.3
    for rank in world.on_node(node):
        moment = at + rng.uniform(0, 0.8)
        exits.append(Exit(rank, 1, moment + 0.4))
        if from_nccl:
            last = "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'"
            where = "init.cc:1340" if version(world.nccl) < (2, 22) else "init.cc:428"
            causes.append(nccl_warn(world, rank, moment, where, last, is_cause=True))
            causes.append(traceback(world, rank, moment + 0.1, nccl_error(world, "cuda", last), is_cause=True))
            continue
        error = (
            f"RuntimeError: The NVIDIA driver on your system is too old (found version {driver}). Please update your "
            "GPU driver by downloading and installing a new version from the URL: "
            "http://www.nvidia.com/Download/index.aspx "
            "Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your "
            "version of the CUDA driver."
        )
        causes.append(traceback(world, rank, moment, error, is_cause=True, tagged=False))
    ends = sorted(exits, key=lambda end: end.at)
    return tell_crash(world, rng, before, ends, causes, {"gpu.driver-too-old"}, share=0)


def thread_limit(world: World, rng: random.Random) -> Story:
    """The limit of processes of a node is reached; ranks there cannot start a thread."""
    node = rng.randrange(len(world.hosts))
    ranks = sorted(rng.sample(list(world.on_node(node)), rng.randrange(1, world.per_node + 1)))
    before, at = train(world, rng)
    form = rng.randrange(4)
    exits, causes = [], []
    for rank in ranks:
        moment = at + rng.uniform(0, 0.3)
        line, status = _thread_error(world, rank, moment, form)
        causes.append(line)
        exits.append(Exit(rank, status, moment + 0.3))
    ends = sorted(exits, key=lambda end: end.at)
    return tell_crash(world, rng, before, ends, causes, {"host.thread-limit"})


def _thread_error(world: World, rank: int, at: float, form: int) -> tuple[Line, int]:
    """Return how CPython or native code says that no thread can be started, and the exit status."""
    library = f"/usr/lib/python{world.python}"
    if form == 0:
        frames = [
            (world.script, 187, "main"),
            (f"{library}/site-packages/torch/utils/data/dataloader.py", 1146, "__init__"),
            (f"{library}/threading.py", 964, "start"),
        ]
        return traceback(world, rank, at, "RuntimeError: can't start new thread", frames, is_cause=True), 1
    if form == 1:
        error = "BlockingIOError: [Errno 11] Resource temporarily unavailable"
        frames = [(world.script, 187, "main"), (f"{library}/multiprocessing/popen_fork.py", 66, "_launch")]
        return traceback(world, rank, at, error, frames, is_cause=True), 1
    if form == 2:
        return plain(world, rank, at, "libgomp: Thread creation failed: Resource temporarily unavailable"), 1
    kind, what = "std::system_error", "Resource temporarily unavailable"
    return plain(world, rank, at, f"terminate called after throwing an instance of '{kind}'\n  what():  {what}"), -6


def _stall(
    world: World, rng: random.Random, node: int, stuck: list[int], before: list[Line], causes: list[Line], at: float,
    root: str,
) -> Story:  # fmt: skip
    """Return the story of ranks that stand still and write nothing until the watchdogs of all others end the job."""
    lines, exits = time_out(world, rng, stuck, at)
    truth = Truth(KNOWN, frozenset({root}), frozenset(stuck), frozenset({node}), by_comparison=True)
    return Story((*before, *causes, *lines), truth, tuple(exits))


def oom_lines(world: World, rng: random.Random, rank: int, at: float, place: str, killed: str, uid: int) -> list[Line]:
    """Return the kernel's lines about a process that it killed for memory."""
    pid, resident = kernel_pid(world, rank), rng.randrange(60_000_000, 480_000_000)
    invoker = rng.choice(("python3", "pt_data_worker", "kubelet", "node_exporter"))
    flags = rng.choice(("0xcc0(GFP_KERNEL)", "0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP)"))
    total = f"total-vm:{resident + rng.randrange(9_000_000, 90_000_000)}kB, anon-rss:{resident}kB"
    shared = f"file-rss:{rng.randrange(999)}kB, shmem-rss:{rng.randrange(9999)}kB"
    rest = f"{shared}, UID:{uid} pgtables:{resident // 500}kB oom_score_adj:0"
    invoked = f"{invoker} invoked oom-killer: gfp_mask={flags}, order=0, oom_score_adj=0"
    return [
        _kernel(world, rank, at - 0.02, invoked, is_cause=False),
        _kernel(world, rank, at, f"oom-kill:{place},task=python3,pid={pid},uid={uid}"),
        _kernel(world, rank, at + 0.001, f"{killed} {pid} (python3) {total}, {rest}"),
    ]  # fmt: skip


def _kernel(world: World, rank: int, at: float, text: str, is_cause: bool = True) -> Line:
    return kernel(world, world.node(rank), at, text, is_cause=is_cause, says_host=True)


FAULTS = (
    Fault("host-oom-killer", out_of_host_memory, ALL),
    Fault("cgroup-oom-kill", cgroup_out_of_memory, ALL),
    Fault("nfs-stall", nfs_stall, ("nccl",)),
    Fault("soft-lockup", soft_lockup, ("nccl",)),
    Fault("slurm-node-failure", node_lost, ALL, least_nodes=2, scheduler="slurm"),
    Fault("slurm-two-nodes-fail", neighbours_lost, ALL, least_nodes=3, scheduler="slurm"),
    Fault("slurm-node-failure-late", node_lost_after_timeouts, ("nccl",), least_nodes=2, scheduler="slurm"),
    Fault("gpu-driver-too-old", old_driver, ("nccl",), least_nodes=2),
    Fault("thread-limit", thread_limit, ALL),
)
