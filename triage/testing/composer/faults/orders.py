"""Faults that the watchdogs' lines tell: groups in another order, a rank behind the others, some in another branch."""

from __future__ import annotations

import random

from triage.testing.composer.faults.c10d import watchdog_report
from triage.testing.composer.faults.collectives import KNOWN, in_order
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, Truth, World
from triage.testing.composer.parts import record, start, steps

_SIZES = (524288, 1048576, 13107200, 25559081)
_NAMES = (("dp", "ema"), ("", ""), ("dp_replicate", "loss_sync"), ("fsdp", "metrics"))
_BRANCHES = (
    ("batch without images, skipping the vision tower", "vision batch: {0} images"),
    ("expert {0} got no tokens", "expert {0}: {1} tokens"),
    ("using cached teacher logits", "teacher forward on {1} tokens"),
    ("loss is not finite, skipping the update", "gradient norm {0}.{1}"),
)


def groups_in_other_order(world: World, rng: random.Random) -> Story:
    """One rank enters two process groups of all ranks in another order than the others; all wait."""
    odd, count, seconds = rng.randrange(world.size), rng.randrange(4, 14), rng.choice((600, 1800))
    usual, other = rng.sample((1, 2), 2)
    names = rng.choice(_NAMES)
    sequences = {usual: count * 12 + 1, other: count + rng.randrange(1, 4)}
    numels = dict(zip((usual, other), rng.sample(_SIZES, 2), strict=True))
    late, exits = [], []
    for rank in world.ranks:
        at, group = 11 + count + seconds + rng.uniform(0, 0.9), other if rank == odd else usual
        late.append(
            watchdog_report(
                world, rank, at, sequences[group], numel=numels[group], seconds=seconds, group=(group, names[group - 1])
            )
        )
        exits.append(Exit(rank, -6, at + 0.2))
    roots = ("torch.group-order-deadlock", "torch.wrong-process-group", "torch.collective-order-mismatch")
    truth = _few(world, frozenset({odd}), *roots)
    return Story((*start(world, rng), *steps(world, rng, 10, count), *late), truth, in_order(exits))


def rank_behind(world: World, rng: random.Random) -> Story:
    """One rank still waits in an earlier operation than all others; the sequence numbers tell."""
    odd, count, seconds = rng.randrange(world.size), rng.randrange(6, 14), rng.choice((600, 1800))
    behind, ahead = rng.choice((1, 2, 5, 11, 24, 37)), rng.choice((0, 0, 1, 3, 8))
    operation = rng.choice(("BROADCAST", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "ALLREDUCE"))
    sequence, numel = count * 12 + 1, rng.choice(_SIZES)
    missed = behind // 12 + 1 if rng.random() < 0.5 else 0
    others = [rank for rank in world.ranks if rank != odd]
    lines = [*start(world, rng), *steps(world, rng, 10, count - missed)]
    lines += steps(world, rng, 10 + count - missed, missed, ranks=others, number=count - missed + 1)
    late, exits = [], []
    for rank in world.ranks:
        at = 11 + count + seconds + rng.uniform(0, 0.9)
        own = sequence - behind if rank == odd else sequence
        last = own + (0 if rank == odd else ahead)
        report = watchdog_report(
            world, rank, at, own, operation=operation, numel=numel, seconds=seconds, enqueued=last
        )  # fmt: skip
        late.append(report)
        exits.append(Exit(rank, -6, at + 0.2))
    return Story((*lines, *late), _few(world, frozenset({odd}), "torch.lagging-rank"), in_order(exits))


def other_branch(world: World, rng: random.Random) -> Story:
    """A few ranks take another branch of the program and wait in another operation than most."""
    most = max(1, (world.size - 1) // 2)
    few = frozenset(rng.sample(list(world.ranks), rng.randrange(1, min(most, 3) + 1)))
    count, seconds = rng.randrange(4, 14), rng.choice((600, 1800))
    sequence, numels = count * 12 + 1, rng.sample(_SIZES, 2)
    kinds = rng.sample(("ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BROADCAST"), 2)
    same_kind = rng.random() < 0.4
    texts, numbers = rng.choice(_BRANCHES), (rng.randrange(2, 64), rng.randrange(100, 4000))
    lines: list[Line] = [*start(world, rng), *steps(world, rng, 10, count)]
    if rng.random() < 0.5:
        for rank in world.ranks:
            text = texts[0 if rank in few else 1].format(*numbers)
            lines.append(record(world, rank, 10.4 + count + rng.uniform(0, 0.2), text))
    late, exits = [], []
    for rank in world.ranks:
        at, own = 11 + count + seconds + rng.uniform(0, 0.9), rank in few
        kind = kinds[own and not same_kind]
        late.append(watchdog_report(world, rank, at, sequence, operation=kind, numel=numels[own], seconds=seconds))
        exits.append(Exit(rank, -6, at + 0.2))
    roots = ("torch.collective-order-mismatch", "torch.collective-shape-mismatch")
    return Story((*lines, *late), _few(world, few, *roots), in_order(exits))


def _few(world: World, ranks: frozenset[int], *roots: str) -> Truth:
    """Return the truth of ranks that differ from most; where they are as many as the others, all are right."""
    shown = ranks if 2 * len(ranks) < world.size else frozenset(world.ranks)
    return Truth(KNOWN, frozenset(roots), shown, frozenset(map(world.node, shown)), by_comparison=True)


FAULTS = (
    Fault("groups-in-other-order", groups_in_other_order, backends=("nccl",)),
    Fault("sequence-behind", rank_behind, backends=("nccl",)),
    Fault("branch-of-a-few", other_branch, backends=("nccl",)),
)
