"""Faults in which processes that should form one group form several: one for each node, or one for each process.

A program that counts itself wrong names itself by its own numbers: rank 0 is there several times.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

from triage.testing.composer.faults.collectives import KNOWN, in_order
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.mismatches import start_without_init
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, nccl_init, record, steps, traceback

_ROOTS = frozenset({"launch.split-rendezvous"})
# Launchers of which no own line says how ranks are numbered.
_LAYOUTS = frozenset((
    "srun-label", "srun-plain", "srun-file-per-task", "srun-host-and-task", "nemo-launcher", "mpirun-tag-output",
    "mpirun-plain", "mpirun-output-filename", "openmpi5-tag", "openmpi5-rank", "hydra-prepend-rank", "hydra-plain",
    "intel-mpi-prepend-rank", "pals-label", "sagemaker-mpi", "file-per-local-rank", "file-per-host",
))  # fmt: skip
_CHECKS = (
    "AssertionError: expected {all} processes, the process group has {own}",
    "ValueError: the configuration asks for {all} data-parallel ranks, but world_size is {own}",
    "RuntimeError: global batch size {batch} is made for {all} workers, only {own} joined",
    "AssertionError: world_size={own}, nodes * processes per node = {all}",
)
_PATHS = ("/checkpoints/run7/step_{0}", "/mnt/lustre/ckpt/llama-exp/iter_{0:07d}", "/scratch/ml/sft/checkpoint-{0}")


def split_rendezvous(world: World, rng: random.Random) -> Story:
    """Each node makes a process group of its own."""
    return _tell(world, rng, [list(world.on_node(node)) for node in range(len(world.hosts))])


def single_processes(world: World, rng: random.Random) -> Story:
    """Each process takes itself for rank 0 of a world of one."""
    return _tell(world, rng, [[rank] for rank in world.ranks])


def _tell(world: World, rng: random.Random, groups: Sequence[Sequence[int]]) -> Story:
    parts = [_part(world, members) for members in groups]
    with_init = world.backend == "nccl" and rng.random() < 0.5
    lines: list[Line] = []
    for number, (part, members) in enumerate(zip(parts, groups, strict=True)):
        begin = start_without_init(part, rng)
        if with_init:
            begin += [_with_id(nccl_init(part, rank, rng.uniform(3, 8)), number) for rank in part.ranks]
        lines += _as_writers(begin, members)
    later, exits = (_check if rng.random() < 0.5 else _collide)(world, rng, parts, groups)
    return Story((*lines, *later), Truth(KNOWN, _ROOTS), in_order(exits))


def _check(
    world: World, rng: random.Random, parts: Sequence[World], groups: Sequence[Sequence[int]]
) -> tuple[list[Line], list[Exit]]:
    """Return the failure of a program that compares the size of its group with its configuration."""
    lines, exits, text = [], [], rng.choice(_CHECKS)
    for part, members in zip(parts, groups, strict=True):
        error = text.format(all=world.size, own=part.size, batch=world.size * 8)
        frames = ((part.script, 212, "<module>"), (part.script, 171, "main"), (part.script, 66, "check_world"))
        for rank in part.ranks:
            at = 9 + rng.uniform(0, 0.5)
            lines += _as_writers([traceback(part, rank, at, error, frames, is_cause=True)], members)
            exits.append(Exit(members[rank], 1, at + 0.3))
    return lines, exits


def _collide(
    world: World, rng: random.Random, parts: Sequence[World], groups: Sequence[Sequence[int]]
) -> tuple[list[Line], list[Exit]]:
    """Return steps of all groups, and the failure of one whose first rank saves to the path of the others."""
    count, loser = rng.randrange(3, 12), rng.randrange(len(groups))
    at, path = 10.6 + count, rng.choice(_PATHS).format(count * 100)
    lines: list[Line] = []
    error = rng.choice((
        f"FileExistsError: [Errno 17] File exists: '{path}'",
        f"FileNotFoundError: [Errno 2] No such file or directory: '{path}.tmp' -> '{path}'",
        f"OSError: [Errno 39] Directory not empty: '{path}.tmp' -> '{path}'",
    ))  # fmt: skip
    for part, members in zip(parts, groups, strict=True):
        shown = steps(part, rng, 10, count)
        shown.append(record(part, 0, at + rng.uniform(0, 0.2), f"saving checkpoint to {path}"))
        lines += _as_writers(shown, members)
    part, members = parts[loser], groups[loser]
    frames = ((part.script, 212, "<module>"), (part.script, 187, "main"), (part.script, 133, "save_checkpoint"))
    failed = [traceback(part, 0, at + 0.5, error, frames, is_cause=True)]
    others, ends = echoes(part, rng, [0], at + 0.6)
    lines += _as_writers([*failed, *others], members)
    return lines, [Exit(members[0], 1, at + 0.8), *(replace(end, rank=members[end.rank]) for end in ends)]


def _part(world: World, members: Sequence[int]) -> World:
    """Return the world that these processes of one node believe in."""
    hosts, pids = (world.host(members[0]),), tuple(world.pids[rank] for rank in members)
    return replace(world, hosts=hosts, per_node=len(members), pids=pids)


def _as_writers(lines: Iterable[Line], members: Sequence[int]) -> list[Line]:
    """Return lines of a group as those of the ranks that the launcher counts; what they name is no global rank."""
    return [
        replace(line, writer=Writer("rank", members[line.writer.number]), says_rank=False) for line in lines
    ]  # fmt: skip


def _with_id(line: Line, number: int) -> Line:
    """Return NCCL's line with another communicator for each group."""
    return replace(line, text=line.text.replace("8f3c2a77d1e0b945", f"8f3c2a77d1e0b9{69 + number:02x}"))


FAULTS = (
    Fault("split-rendezvous", split_rendezvous, least_nodes=2, least_per_node=2, layouts=_LAYOUTS),
    Fault("single-processes", single_processes, layouts=_LAYOUTS),
)
