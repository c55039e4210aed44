"""Draw the world of a job: everything that must not matter to the diagnosis."""

from __future__ import annotations

import random
from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.model import LogStyle, World

# Forms of host names: three numbers that count the nodes in different ways, and the index of the node.
_HOST_FORMS = (
    "node{0}", "node{0:03d}", "gpu-{1:03d}", "nid{2:06d}", "ip-10-0-{0}-{1}", "c{0}-n{1}", "dgx{1:02d}", "aurora-{2}",
    "hgx-h100-{1:03d}", "a100-{0:02d}", "x{2}c4s2b0n0", "r{0}u{1}", "gke-a3-pool-3f2c9b1d-x7k{0}", "g{1:04d}",
)  # fmt: skip
_LONG_FORMS = ("gpu-{1:03d}.cluster.local", "n{0:04d}.hpc.example.org", "ip-10-0-{0}-{1}.eu-west-1.compute.internal")
_POD_FORMS = ("llm-pretrain-worker-{3}", "vit-large-worker-{3}", "sft-run-17-worker-{3}")
_CONTAINER = lazy_re(r"[0-9a-f]{12}|[a-z0-9-]+-worker-\d+")
_FOLDERS = (
    "/workspace",
    "/home/ml/llm",
    "/data/projects/vit",
    "/app/src",
    "/opt/ml/code",
    "/scratch/u1042/exp-7",
    "/mnt/nfs/code",
)
_NAMES = (
    "train.py",
    "pretrain_gpt.py",
    "main.py",
    "run_sft.py",
    "finetune.py",
    "train_ddp.py",
    "pretrain.py",
    "run_clm.py",
)
_STYLES: Sequence[LogStyle] = ("bare", "stamped", "ranked", "loguru", "pid")
# Versions of torch with the NCCL of their wheels, and Pythons that they support.
_VERSIONS = (
    ("2.1.2", "2.18.1", ("3.8", "3.10", "3.11")),
    ("2.2.2", "2.19.3", ("3.10", "3.11")),
    ("2.3.1", "2.20.5", ("3.10", "3.11", "3.12")),
    ("2.4.0", "2.20.5", ("3.10", "3.11", "3.12")),
    ("2.5.1", "2.21.5", ("3.10", "3.11", "3.12")),
    ("2.6.0", "2.21.5", ("3.10", "3.11", "3.12", "3.13")),
    ("2.7.1", "2.26.2", ("3.10", "3.11", "3.12", "3.13")),
    ("2.8.0", "2.27.3", ("3.10", "3.11", "3.12", "3.13")),
    ("2.9.1", "2.27.5", ("3.10", "3.11", "3.12", "3.13")),
)
# How programs introduce their ranks when they start.
_INTRODUCTIONS = (
    "rank {rank} of {size} on {host}, pid {pid}",
    "rank {rank}/{size} is up on {host} (pid {pid})",
    "Initializing distributed: rank: {rank}, world_size: {size}, hostname: {host}, pid: {pid}",
    "[init] global_rank={rank} local_rank={local} world_size={size} host={host} pid={pid}",
    "hello from rank {rank} of {size} (host {host})",
    "distributed init done | rank={rank} | world={size} | node={host} | device=cuda:{local}",
    "{host}: global rank {rank} ready, local rank {local}, world size {size}",
    "Process group initialised on host {host}: RANK={rank} LOCAL_RANK={local} WORLD_SIZE={size} PID={pid}",
)
_ZONES = (0, 0, 0, 3600, 7200, -14400, -18000, -25200, 28800, 28800, 32400, 19800, 20700, -12600)
_FIRST_DAY = 1_780_000_000  # 2026-05-28


def draw_world(fault: Fault, layout: Layout, rng: random.Random) -> World:
    """Return a world in which the fault can happen and that the layout can write."""
    most = min(fault.most_nodes, layout.most_nodes)
    nodes = rng.choice([count for count in (1, 1, 2, 2, 3, 4) if fault.least_nodes <= count <= most] or [most])
    per_node = 1 if layout.one_per_node else max(fault.least_per_node, rng.choice((2, 3, 4, 8)))
    if nodes * per_node < 2:
        nodes = 2
    backends = [backend for backend in fault.backends if backend in layout.backends]
    torch, nccl, pythons = rng.choice(_VERSIONS)
    return World(
        draw_hosts(nodes, rng, plain=bool(fault.scheduler or layout.scheduler)),
        per_node,
        _draw_pids(nodes, per_node, rng),
        _FIRST_DAY + rng.randrange(20_000_000) + rng.random(),
        rng.choice(_ZONES),
        f"{rng.choice(_FOLDERS)}/{rng.choice(_NAMES)}",
        rng.choice(backends),
        rng.choice(_STYLES),
        torch,
        nccl,
        rng.choice(pythons),
        rng.choice(_INTRODUCTIONS),
    )


def draw_hosts(nodes: int, rng: random.Random, *, plain: bool) -> tuple[str, ...]:
    """Return the names that the hosts give themselves. `plain`: short names of machines, as schedulers list them."""
    kind = "plain" if plain else rng.choices(("plain", "long", "pod", "container"), (6, 2, 1, 1))[0]
    if kind == "container":
        return tuple(f"{rng.choice('abcdef')}{rng.getrandbits(44):011x}" for _ in range(nodes))
    form = rng.choice({"plain": _HOST_FORMS, "long": _LONG_FORMS, "pod": _POD_FORMS}[kind])
    first, gap = rng.randrange(1, 60), rng.choice((1, 1, 1, 2, 7))
    numbers = [first + node * gap for node in range(nodes)]
    if rng.random() < 0.1:
        rng.shuffle(numbers)
    return tuple(form.format(n, 40 + n * 2, 1001 + n * 13, node) for node, n in enumerate(numbers))


def is_container(host: str) -> bool:
    """Whether a host name is that of a container or a pod, which the kernel of the machine does not know."""
    return bool(_CONTAINER.fullmatch(host))


def _draw_pids(nodes: int, per_node: int, rng: random.Random) -> tuple[int, ...]:
    """Return pids by rank; nodes count their processes independently, so two nodes may share some."""
    common = rng.choice((0, 0, 0, 81, rng.randrange(30, 400)))  # all containers of a job count alike
    pids: list[int] = []
    for _ in range(nodes):
        pid = common or rng.choice((rng.randrange(1_000, 30_000), rng.randrange(100_000, 4_000_000)))
        for _ in range(per_node):
            pids.append(pid)
            pid += 1 if common else rng.randrange(1, 4)
    return tuple(pids)
