"""Faults in which all ranks wait in one call, or some wait that others have already finished."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from triage.testing.composer.faults.c10d import collective_calls, version, watchdog_report
from triage.testing.composer.faults.collectives import KNOWN, in_order
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import record, start, steps
from triage.testing.schedules.evidence.watchdog_texts import desync_report, op_type
from triage.testing.schedules.model import Call

_SIZES = (524288, 1048576, 13107200, 25559081)
_TIMEOUTS = (300, 480, 600, 1800)
_FIRST_COUNTS = (2, 3)  # the first version of torch that prints what a rank enqueued and completed
_DONE = (
    "training finished, 0 errors",
    "Training completed after {} steps",
    "finished training: {} steps",
    "done training, final step {}",
    "Training is complete.",
)
_STACK_FILES = ("pyspy/rank_{rank}.txt", "stacks/rank{rank}.txt", "py-spy/{host}/{pid}.txt", "pyspy-{host}-{pid}.txt")


def transfer_hangs(world: World, rng: random.Random) -> Story:
    """All ranks start one collective whose data never arrives, as behind a switch that drops packets."""
    count, seconds, ahead = rng.randrange(4, 14), rng.choice(_TIMEOUTS), rng.choice((0, 0, 1, 3, 11))
    operation = rng.choice(("ALLREDUCE", "ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BROADCAST"))
    sequence, numel = count * 12 + rng.randrange(1, 12), rng.choice(_SIZES)
    group = rng.choice(((0, "default_pg"), (0, "default_pg"), (1, "dp"), (3, "fsdp")))
    late, exits = [], []
    for rank in world.ranks:
        at = 11 + count + seconds + rng.uniform(0, 0.9)
        late.append(
            watchdog_report(
                world, rank, at, sequence, operation=operation, numel=numel, seconds=seconds,
                enqueued=sequence + ahead, group=group,
            )
        )  # fmt: skip
        exits.append(Exit(rank, -6, at + 0.2))
    truth = Truth(KNOWN, frozenset({"torch.stuck-in-collective"}), by_comparison=True)
    if version(world) < _FIRST_COUNTS:  # nobody can know whether a rank came
        roots: frozenset[str | None] = frozenset({"torch.stuck-in-collective", "torch.collective-timeout", None})
        truth = Truth(frozenset({"known", "unknown", "inconclusive"}), roots, by_comparison=True)
    return Story((*start(world, rng), *steps(world, rng, 10, count), *late), truth, in_order(exits))


def kernel_without_end(world: World, rng: random.Random) -> Story:
    """A few GPUs compute for ever before a collective that all ranks have enqueued, so they never start it.

    Torch's own comparison says so if it is on; else only that the hosts of these ranks enqueued less.
    """
    few = sorted(rng.sample(list(world.ranks), rng.randrange(1, min(3, (world.size - 1) // 2) + 1)))
    count, seconds = rng.randrange(4, 14), rng.choice(_TIMEOUTS)
    is_compared = version(world) < _FIRST_COUNTS or rng.random() < 0.5
    ahead = rng.choice((0, 2, 5)) if is_compared else rng.choice((1, 2, 5, 17))
    call = Call(rng.choice(("all_reduce", "_all_gather_base", "_reduce_scatter_base")), 0, rng.choice(_SIZES), "Float")
    sequence = count * 12 + rng.randrange(1, 12)
    kind = op_type(call)
    latest = {rank: (sequence - (rank in few), kind, rank in few) for rank in world.ranks}
    late, exits = [], []
    for rank in world.ranks:
        at = 11 + count + seconds + rng.uniform(0, 0.9)
        report = desync_report(rank, call, sequence, latest, world.size) if is_compared else ""
        late.append(
            watchdog_report(
                world, rank, at, sequence, operation=kind, numel=call.numel, seconds=seconds,
                enqueued=sequence + (0 if rank in few else ahead), desync=report,
            )
        )  # fmt: skip
        exits.append(Exit(rank, -6, at + 0.2))
    roots: frozenset[str | None] = frozenset({"torch.lagging-rank", "torch.rank-never-joined"})
    truth = Truth(KNOWN, roots, frozenset(few), frozenset(map(world.node, few)), by_comparison=True)
    return Story((*start(world, rng), *steps(world, rng, 10, count), *late), truth, in_order(exits))


def finished_too_early(world: World, rng: random.Random) -> Story:
    """Some ranks end well while the others wait in a collective, of which somebody takes the stacks, then the job is
    stopped. The few are at fault: those that left, or those that make a call which the others never make.
    """  # fmt: skip
    few = frozenset(rng.sample(list(world.ranks), rng.randrange(1, min(3, (world.size - 1) // 2) + 1)))
    are_done = rng.random() < 0.6
    done = few if are_done else frozenset(world.ranks) - few
    count, text, at = rng.randrange(4, 40), rng.choice(_DONE), rng.uniform(200, 4000)
    lines = [*start(world, rng), *steps(world, rng, 10, count)]
    lines += [record(world, rank, 10.5 + count + rng.uniform(0, 0.3), text.format(count)) for rank in sorted(done)]
    waiting = [rank for rank in world.ranks if rank not in done]
    function, caller = (
        ("all_reduce", "train_step") if are_done else rng.choice((("barrier", "save"), ("all_reduce", "evaluate")))
    )
    stacks = {rank: collective_calls(world, function, "work.wait()", caller) for rank in waiting}
    artifacts: Mapping[str, bytes] = {}
    if rng.random() < 0.5:
        lines += [
            Line(at, Writer("rank", rank), _faulthandler_text(rank, stacks[rank]), is_cause=True) for rank in waiting
        ]
    else:
        artifacts = _py_spy_files(world, rng, stacks)
    early = frozenset({"launch.rank-left-early", "data.uneven-inputs"})
    further = frozenset({"torch.rank-conditional-collective", "torch.extra-collective", "data.uneven-inputs"})
    truth = Truth(
        KNOWN, early if are_done else further, few, frozenset(map(world.node, few)), by_comparison=True,
        roots_without_ranks=frozenset({"hang.collective"}),
    )  # fmt: skip
    exits = tuple(Exit(rank, 0, 12.0 + count) for rank in sorted(done))
    return Story(tuple(lines), truth, exits, "user", artifacts)


def _faulthandler_text(rank: int, calls: Sequence[tuple[str, int, str, str]]) -> str:
    """Return what `faulthandler.dump_traceback_later` prints after five minutes."""
    frames = (f'  File "{file}", line {number} in {function}' for file, number, function, _ in reversed(calls))
    return "\n".join(("Timeout (0:05:00)!", f"Thread 0x00007f{rank:02x}a1b2c740 (most recent call first):", *frames))


def _py_spy_files(
    world: World, rng: random.Random, stacks: Mapping[int, Sequence[tuple[str, int, str, str]]]
) -> dict[str, bytes]:
    """Return `py-spy dump` of each of these ranks, in files with names of ranks or, if records pair them, of pids."""
    form = rng.choice(_STACK_FILES if "{pid}" in world.introduction else _STACK_FILES[:2])
    return {
        form.format(rank=rank, host=world.host(rank), pid=world.pids[rank]): _py_spy_text(world, rank, calls)
        for rank, calls in stacks.items()
    }


def _py_spy_text(world: World, rank: int, calls: Sequence[tuple[str, int, str, str]]) -> bytes:
    pid = world.pids[rank]
    frames = (
        f"    {function} ({file.partition('site-packages/')[2] or file.rpartition('/')[2]}:{number})\n"
        for file, number, function, _ in reversed(calls)
    )
    head = f"Process {pid}: python -u {world.script} --config config.yaml\nPython v{world.python}.9\n\n"
    return f'{head}Thread {pid} (idle): "MainThread"\n{"".join(frames)}'.encode()


FAULTS = (
    Fault("transfer-hangs", transfer_hangs, backends=("nccl",)),
    Fault("kernel-without-end", kernel_without_end, backends=("nccl",), least_per_node=3),
    Fault("finished-too-early", finished_too_early, backends=("nccl",), least_per_node=3),
)
