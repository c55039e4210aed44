"""Faults in which ranks wait in a collective for a rank that does something else."""

from __future__ import annotations

import random
from collections.abc import Iterable

from triage.testing.composer.faults.c10d import (
    by_version,
    collective_calls,
    dump_signal,
    uncaught,
    watchdog_report,
)
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, Truth, World
from triage.testing.composer.parts import echoes, record, start, steps

KNOWN = frozenset({"known"})
_EITHER = frozenset({"known", "unknown"})
_ABORTED = 134  # the exit code of a process that SIGABRT ended
_ABSENT = frozenset(
    {"torch.lagging-rank", "torch.rank-never-joined", "torch.one-rank-diverged", "torch.collective-timeout", None}
)
LOADING = (
    "waiting for batch {0} from /mnt/{1}/shards/part-{0:05d}.tar",
    "prefetch queue empty, reading shard {0} of {1}",
    "refilling the shuffle buffer ({0} samples) from {1}",
)
_LEAVING = (
    "no more batches in epoch {0}, leaving the training loop",
    "early stopping: no improvement for {0} evaluations, exiting",
    "nothing left to do after {0} batches, bye",
)


def stuck_in_data_loading(world: World, rng: random.Random) -> Story:
    """One rank hangs while it reads data; the others time out in the next collective."""
    rank, count, seconds = rng.randrange(world.size), rng.randrange(4, 14), rng.choice((300, 600, 1800))
    lines = [*start(world, rng), *steps(world, rng, 10, count)]
    if rng.random() < 0.5:
        message = rng.choice(LOADING).format(rng.randrange(100, 9000), rng.choice(("lustre", "nfs01", "datasets")))
        lines.append(record(world, rank, 10.5 + count, message))
    late, exits = wait_for(world, rng, [rank], 10.6 + count, count * 12, seconds)
    return Story((*lines, *late), absent(world, rank, frozenset({"hang.dataloader"})), exits)


def long_save(world: World, rng: random.Random) -> Story:
    """Rank 0 writes a checkpoint for longer than the timeout; the others wait for it."""
    count, seconds = rng.randrange(4, 14), rng.choice((600, 1800))
    path = rng.choice(("/checkpoints/run7", "/scratch/ckpt", "outputs/llm-7b"))
    message = rng.choice(("saving checkpoint to {}/step_{}", "writing {}/step_{}/optimizer.pt ...", "save_state {} {}"))
    begin = record(world, 0, 10.4 + count, message.format(path, count))
    lines = [*start(world, rng), *steps(world, rng, 10, count), begin]
    late, exits = wait_for(world, rng, [0], 10.6 + count, count * 12, seconds, barrier=True)
    more = frozenset({"checkpoint.barrier-timeout"} if world.backend == "gloo" else ())
    return Story((*lines, *late), absent(world, 0, more), exits)


def extra_collective(world: World, rng: random.Random) -> Story:
    """One rank reduces a number of its own, so its collectives no longer pair with those of the others."""
    rank, count, seconds = rng.randrange(world.size), rng.randrange(4, 14), rng.choice((600, 1800))
    sequence, numel = count * 12 + 1, rng.choice((524288, 13107200, 6553600))
    message = rng.choice(("logging running mean of {}", "keepalive {}", "metric {} reduced")).format(rng.randrange(99))
    lines = [*start(world, rng), *steps(world, rng, 10, count), record(world, rank, 10.5 + count, message)]
    late, exits = [], []
    for each in world.ranks:
        at = 11 + count + seconds + rng.uniform(0, 0.9)
        own_numel = 1 if each == rank else numel
        late.append(watchdog_report(world, each, at, sequence, numel=own_numel, seconds=seconds, enqueued=sequence + 1))
        exits.append(Exit(each, -6, at + 0.2))
    return Story((*lines, *late), _mismatch(world, rank, "torch.extra-collective"), in_order(exits))


def collective_under_condition(world: World, rng: random.Random) -> Story:
    """Rank 0 alone enters a barrier inside its save; the others are in the next gradient collective."""
    count, seconds = rng.randrange(4, 14), rng.choice((600, 1800))
    sequence, numel = count * 12 + 1, rng.choice((524288, 13107200, 6553600))
    operation = rng.choice(("ALLREDUCE", "_REDUCE_SCATTER_BASE", "_ALLGATHER_BASE"))
    begin = record(world, 0, 10.5 + count, f"evaluating and saving best model at step {count}")
    late, exits = [], []
    for rank in world.ranks:
        at = 11 + count + seconds + rng.uniform(0, 0.9)
        kind, size = ("ALLREDUCE", 1) if rank == 0 else (operation, numel)
        late.append(watchdog_report(world, rank, at, sequence, operation=kind, numel=size, seconds=seconds))
        exits.append(Exit(rank, -6, at + 0.2))
    lines = (*start(world, rng), *steps(world, rng, 10, count), begin, *late)
    return Story(lines, _mismatch(world, 0, "torch.rank-conditional-collective"), in_order(exits))


def left_early(world: World, rng: random.Random) -> Story:
    """One rank ends with exit code 0 while the others still train."""
    rank, count, seconds = rng.randrange(world.size), rng.randrange(4, 14), rng.choice((300, 600))
    at = 10.5 + count
    message = record(world, rank, at, rng.choice(_LEAVING).format(count))
    lines = [*start(world, rng), *steps(world, rng, 10, count)]
    if world.backend == "gloo":
        late, ends = echoes(world, rng, [rank], at)
        exits = tuple(ends)
    else:
        late, exits = wait_for(world, rng, [rank], at + 0.2, count * 12, seconds, signal=False)
    roots = frozenset({"launch.rank-left-early", "data.uneven-inputs", "torch.lagging-rank"})
    truth = Truth(KNOWN, roots, frozenset({rank}), frozenset({world.node(rank)}), by_comparison=True)
    return Story((*lines, message, *late), truth, exits)


def collective_elsewhere(world: World, rng: random.Random) -> Story:
    """One rank waits in a collective of another line of the program than all others, as the tracebacks show."""
    odd, count = rng.choice((0, 0, rng.randrange(world.size))), rng.randrange(4, 14)
    seconds, lines = rng.choice((300, 600, 1800)), [*start(world, rng), *steps(world, rng, 10, count)]
    if rng.random() < 0.5:
        text = rng.choice(("evaluating at step {}", "writing the best model so far (step {})", "resampling, step {}"))
        lines.append(record(world, odd, 10.5 + count, text.format(count)))
    late, exits = [], []
    for rank in world.ranks:
        at = 11 + count + seconds + rng.uniform(0, 1.4)
        late.append(gloo_timeout(world, rank, at, seconds, barrier=rank == odd))
        exits.append(Exit(rank, 1, at + 0.3))
    roots = frozenset({"torch.rank-conditional-collective" if odd == 0 else "torch.collective-order-mismatch"})
    truth = Truth(KNOWN, roots, frozenset({odd}), frozenset({world.node(odd)}), by_comparison=True)
    return Story((*lines, *late), truth, in_order(exits))


def silent_exit(world: World, rng: random.Random) -> Story:
    """One process ends without a word, as by os._exit in a library; all others lose their peer."""
    rank, count, status = rng.randrange(world.size), rng.randrange(4, 14), rng.choice((1, 2, 3, 5, _ABORTED, 255))
    at = 10.6 + count
    lost, ends = echoes(world, rng, [rank], at)
    lines = [*start(world, rng), *steps(world, rng, 10, count), *lost]
    waited = frozenset({"torch.rank-never-joined"} if world.backend == "hccl" else ())  # HCCL's links time out
    aborted = frozenset({"crash.abort"} if status == _ABORTED else ())
    roots = waited | aborted | {None, "launch.rank-left-early", "launch.deepspeed-return-code"}
    truth = Truth(_EITHER, roots, frozenset({rank}), frozenset({world.node(rank)}), by_comparison=True)
    return Story(tuple(lines), truth, (Exit(rank, status, at), *ends))


def wait_for(
    world: World,
    rng: random.Random,
    missing: Iterable[int],
    at: float,
    completed: int,
    seconds: int,
    *,
    barrier: bool = False,
    signal: bool = True,
) -> tuple[list[Line], tuple[Exit, ...]]:
    """Return the timeouts of all ranks but the missing ones, in one collective that begins at `at`, and their ends.

    `signal`: the missing ranks live and see that others timed out.
    """  # fmt: skip
    absentees = set(missing)
    numel = 1 if barrier else rng.choice((524288, 1048576, 25559081))
    lines, exits = [], []
    for rank in [rank for rank in world.ranks if rank not in absentees]:
        moment = at + seconds + rng.uniform(0, 1.4)
        if world.backend == "gloo":
            lines.append(gloo_timeout(world, rank, moment, seconds, barrier=barrier))
            exits.append(Exit(rank, 1, moment + 0.3))
        else:
            lines.append(watchdog_report(world, rank, moment, completed + 1, numel=numel, seconds=seconds))
            exits.append(Exit(rank, -6, moment + 0.3))
    ends = in_order(exits)
    if signal and world.backend == "nccl" and ends:
        for rank in sorted(absentees):
            lines += dump_signal(world, rank, ends[0].at + 0.9, ends[0].rank, completed)
    return lines, ends


def absent(world: World, rank: int, more: frozenset[str | None] = frozenset()) -> Truth:
    """Return the truth of a job that waits for one rank: who it is shows, what it did perhaps in its last words."""
    return Truth(
        _EITHER, _ABSENT | more, frozenset({rank}), frozenset({world.node(rank)}), by_comparison=True
    )  # fmt: skip


def in_order(exits: Iterable[Exit]) -> tuple[Exit, ...]:
    """Return the ends of processes by time."""
    return tuple(sorted(exits, key=lambda end: end.at))


def gloo_source(world: World, file: str) -> str:
    """Return the source position in Gloo of a timeout (`unbound_buffer`), a closed connection or an enforcement."""
    root = by_version(world, ("../third_party", "../third_party", "../third_party", "/pytorch/third_party"))
    numbers = {"unbound_buffer": (81, 81, 81, 78), "closed": (534, 534, 534, 553), "length": (446, 446, 446, 456)}
    name = file if file == "unbound_buffer" else "pair"
    return f"{root}/gloo/gloo/transport/tcp/{name}.cc:{by_version(world, numbers[file])}"


def closed_by_peer(world: World, rng: random.Random, peer: int) -> str:
    """Return Gloo's message of a connection that the peer closed; newer versions end it with advice."""
    node = world.node(peer)
    advice = (
        ". This is typically caused by a remote worker crashing. Check the logs of the remote worker before reporting "
        "an error. GLHF! 🏖️"
    )
    end = by_version(world, ("", "", "", advice))
    return f"[{gloo_source(world, 'closed')}] Connection closed by peer [10.0.{node}.{10 + node}]:{rng.randrange(2000, 60000)}{end}"  # noqa: E501


def gloo_timeout(world: World, rank: int, at: float, seconds: int, *, barrier: bool) -> Line:
    """Return the exception of a rank that waited for so many seconds in Gloo's all-reduce, or in its barrier."""
    function, code = ("barrier", "work.wait()") if barrier else ("all_reduce", "work.wait()")
    error = (
        f"[{gloo_source(world, 'unbound_buffer')}] Timed out waiting {seconds * 1000}ms for recv operation to complete"
    )
    calls = collective_calls(world, function, code, "save" if barrier else "train_step")
    return uncaught(world, rank, at, f"RuntimeError: {error}", calls, is_cause=True)


def _mismatch(world: World, rank: int, root: str) -> Truth:
    """Return the truth of ranks that wait in different collectives: the odd one, or both where there are two."""
    roots = frozenset({root, "torch.collective-order-mismatch", "torch.collective-shape-mismatch"})
    ranks = frozenset({rank} if world.size > 2 else world.ranks)
    return Truth(KNOWN, roots, ranks, frozenset(map(world.node, ranks)), by_comparison=True)


FAULTS = (
    Fault("stuck-in-data-loading", stuck_in_data_loading),
    Fault("long-save", long_save),
    Fault("extra-collective", extra_collective, backends=("nccl",)),
    Fault("collective-under-condition", collective_under_condition, backends=("nccl",)),
    Fault("left-early", left_early),
    Fault("collective-elsewhere", collective_elsewhere, backends=("gloo",), least_per_node=3),
    Fault("silent-exit", silent_exit, backends=("nccl", "gloo", "hccl"), least_per_node=3),
)
