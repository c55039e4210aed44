"""Jobs that somebody stops from outside, in which ranks then raise errors because others are already gone."""

from __future__ import annotations

import random
from dataclasses import replace

from triage.testing.composer.faults.collectives import KNOWN
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Line, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, record, start, steps, traceback

_SIGTERM = (
    "Received SIGTERM, shutting down",
    "signal handler called with signal 15",
    "got SIGTERM (15) from outside, will exit after this step",
    "caught signal SIGTERM, terminating training",
)
_REASONS = {
    "slurm.time-limit": " DUE TO TIME LIMIT",
    "slurm.preempted": " DUE TO PREEMPTION",
    "slurm.cancelled": "",
}


def cancelled(world: World, rng: random.Random) -> Story:
    """Slurm cancels the job; while its processes end one after another, ranks raise errors."""
    count, job = rng.randrange(6, 40), rng.randrange(4000, 900_000)
    at, root = 10.0 + count, rng.choice(tuple(_REASONS))
    stamp = world.stamp(at, "%Y-%m-%dT%H:%M:%S")
    kinds = rng.choice((("JOB {0}", "STEP {0}.0"), ("STEP {0}.0",), ("JOB {0}",)))
    causes = [
        Line(
            at + number / 100, Writer("scheduler"),
            f"slurmstepd: error: *** {kind.format(job)} ON {world.hosts[0]} CANCELLED AT {stamp}{_REASONS[root]} ***",
            is_cause=True,
        )
        for number, kind in enumerate(kinds)
    ]  # fmt: skip
    roots: frozenset[str | None] = frozenset({root, *(("launch.interrupted",) if root == "slurm.cancelled" else ())})
    return _stop(world, rng, count, causes, roots, longest=28)


def terminated(world: World, rng: random.Random) -> Story:
    """SIGTERM comes to all processes, whose handlers say so; then ranks raise errors."""
    count, text = rng.randrange(4, 30), rng.choice(_SIGTERM)
    causes = [
        replace(record(world, rank, 10 + count + rng.uniform(0, 0.2), text, "WARNING"), is_cause=True)
        for rank in world.ranks
    ]
    return _stop(world, rng, count, causes, frozenset({"launch.interrupted", "launch.signal-exception"}), longest=110)


def interrupted(world: World, rng: random.Random) -> Story:
    """Ctrl-C reaches some ranks; the others raise errors because those are gone."""
    count = rng.randrange(4, 30)
    first = rng.sample(list(world.ranks), rng.randrange(1, world.size + 1))
    library = f"/usr/local/lib/python{world.python}/site-packages/torch"
    places = (
        (f"{library}/autograd/graph.py", 823, "_engine_run_backward"),
        (f"{library}/utils/data/dataloader.py", 1243, "_try_get_data"),
        (f"{library}/nn/modules/linear.py", 125, "forward"),
    )
    causes = []
    for rank in first:
        frames = ((world.script, 212, "<module>"), (world.script, 141, "train_step"), rng.choice(places))
        causes.append(
            traceback(world, rank, 10 + count + rng.uniform(0, 0.2), "KeyboardInterrupt", frames, is_cause=True)
        )
    return _stop(world, rng, count, causes, frozenset({"launch.interrupted"}), longest=40, spared=frozenset(first))


def _stop(
    world: World, rng: random.Random, count: int, causes: list[Line], roots: frozenset[str | None], *, longest: float,
    spared: frozenset[int] = frozenset(),
) -> Story:  # fmt: skip
    """Return the job with errors of some ranks up to `longest` seconds after the stop; `spared` raise none."""
    at = max(line.at for line in causes)
    able = [rank for rank in world.ranks if rank not in spared]
    chosen = sorted(rng.sample(able, rng.randrange(min(1, len(able)), len(able) + 1)))
    errors: list[Line] = []
    for rank in chosen:
        errors += _error(world, rng, rank, at + rng.uniform(0.5, longest))
    lines = (*start(world, rng), *steps(world, rng, 10, count), *causes, *errors)
    is_scheduler = causes[0].writer.kind == "scheduler"
    return Story(lines, Truth(KNOWN, roots), stopped_by="scheduler" if is_scheduler else "user")


def _error(world: World, rng: random.Random, rank: int, at: float) -> list[Line]:
    """Return an error of a rank that has lost its peers, its workers or the reader of its output."""
    peers = [other for other in world.ranks if other != rank]
    if rng.random() < 0.4:
        lines, _ = echoes(world, rng, peers, at - 1)
        return [line for line in lines if line.writer.number == rank]
    error = rng.choice((
        "BrokenPipeError: [Errno 32] Broken pipe",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        f"RuntimeError: DataLoader worker (pid {world.pids[rank] + 41}) is killed by signal: Terminated. ",
        "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
        "EOFError",
        "requests.exceptions.ConnectionError: ('Connection aborted.', RemoteDisconnected('Remote end closed connection "
        "without response'))",
    ))  # fmt: skip
    return [traceback(world, rank, at, error)]


FAULTS = (
    Fault("slurm-cancelled-then-errors", cancelled, ("nccl", "gloo", "hccl"), scheduler="slurm"),
    Fault("terminated-then-errors", terminated, ("nccl", "gloo", "hccl")),
    Fault("interrupted-then-errors", interrupted, ("nccl", "gloo", "hccl")),
)
