"""Faults of processes or hosts that stand still for a while, or are gone without a line."""

from __future__ import annotations

import random
from collections.abc import Sequence

from triage.testing.composer.faults.c10d import watchdog_report
from triage.testing.composer.faults.collectives import KNOWN, in_order, wait_for
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, Truth, World
from triage.testing.composer.parts import kernel, start, steps

# Layouts in which no process of a node writes of the end of its ranks, and whose launcher can miss the loss for long.
_LAYOUTS = frozenset((
    "srun-label", "srun-plain", "srun-file-per-task", "srun-host-and-task", "nemo-launcher", "bash-file-per-rank",
    "file-per-local-rank", "file-per-host", "json-lines", "kubernetes-pod-per-rank",
))  # fmt: skip
_TIMEOUTS = (300, 420, 600, 900, 1500, 2700)  # seconds that programs give to init_process_group
_JUMPS = (
    (
        "clocksource: timekeeping watchdog on CPU{cpu}: Marking clocksource 'tsc' as unstable because the skew is too "
        "large:",
        "clocksource:                       'tsc' cs_nsec: {nanoseconds} cs_now: 9c1f3a2b7e4 cs_last: 8b2e1f9a6d3 "
        "mask: ffffffffffffffff",
        "clocksource: Switched to clocksource hpet",
    ),
    ("hrtimer: interrupt took {nanoseconds} ns",),
    ("PM: suspend entry (s2idle)", "PM: suspend exit"),
    ("INFO: NMI handler (perf_event_nmi_handler) took too long to run: {milliseconds}.412 msecs",),
    ("rtc_cmos 00:03: System wakeup disabled by ACPI", "Restarting tasks ... done.", "PM: suspend exit"),
)


def host_frozen(world: World, rng: random.Random) -> Story:
    """A virtual machine is suspended for longer than the timeout; its watchdogs fire when it goes on."""
    node, count, seconds = rng.randrange(len(world.hosts)), rng.randrange(4, 14), rng.choice(_TIMEOUTS)
    frozen, at = seconds * rng.uniform(1.5, 6), 10.6 + count
    lines = [*start(world, rng), *steps(world, rng, 10, count)]
    for number, text in enumerate(rng.choice(_JUMPS)):
        shown = text.format(cpu=rng.randrange(64), nanoseconds=int(frozen * 1e9), milliseconds=int(frozen * 1e3))
        moment = at if "entry" in text else at + frozen + number / 100
        lines.append(kernel(world, node, moment, shown, is_cause=True, says_host=True))
    stuck = list(world.on_node(node))
    return _starved(world, rng, lines, stuck, at, seconds, frozen)


def process_stopped(world: World, rng: random.Random) -> Story:
    """Somebody stops one process (SIGSTOP) and lets it go on after the timeout of the others."""
    rank, count, seconds = rng.randrange(world.size), rng.randrange(4, 14), rng.choice(_TIMEOUTS)
    lines = [*start(world, rng), *steps(world, rng, 10, count)]
    return _starved(world, rng, lines, [rank], 10.6 + count, seconds, seconds * rng.uniform(1.5, 6))


def _starved(
    world: World, rng: random.Random, lines: list[Line], stuck: Sequence[int], at: float, seconds: int, frozen: float
) -> Story:
    """Return the story of ranks of which the watchdog sees the timeout of all only when they go on."""
    sequence, numel = round(at * 12) + 1, rng.choice((524288, 1048576, 25559081))
    exits = []
    for rank in world.ranks:
        ran = frozen + rng.uniform(0.2, 1.5) if rank in stuck else 0.0
        moment = at + (ran or seconds + rng.uniform(0, 1))
        lines.append(watchdog_report(world, rank, moment, sequence, numel=numel, seconds=seconds, ran=ran))
        exits.append(Exit(rank, -6, moment + 0.3))
    roots: frozenset[str | None] = frozenset({"torch.watchdog-starved"})
    truth = Truth(KNOWN, roots, frozenset(stuck), frozenset(map(world.node, stuck)), by_comparison=True)
    return Story(tuple(lines), truth, in_order(exits))


def host_silent(world: World, rng: random.Random) -> Story:
    """A host loses its power: all its ranks are silent from one moment on, and the others wait for them."""
    node, count, seconds = rng.randrange(len(world.hosts)), rng.randrange(4, 14), rng.choice((300, 600, 1800))
    gone = list(world.on_node(node))
    others = [rank for rank in world.ranks if rank not in gone]
    more = rng.randrange(0, 4)
    lines = [*start(world, rng), *steps(world, rng, 10, count)]
    lines += steps(world, rng, 10 + count, more, ranks=others, number=count + 1)
    late, exits = wait_for(world, rng, gone, 10.5 + count + more, (count + more) * 12, seconds, signal=False)
    roots = frozenset({"torch.lagging-rank", "torch.rank-never-joined", "torch.collective-timeout", None})
    verdicts = frozenset({"known", "unknown", "inconclusive"})
    truth = Truth(verdicts, roots, frozenset(gone), frozenset({node}), by_comparison=True)
    return Story((*lines, *late), truth, exits)


FAULTS = (
    Fault("host-frozen", host_frozen, backends=("nccl",)),
    Fault("process-stopped", process_stopped, backends=("nccl",)),
    Fault("host-silent", host_silent, least_nodes=2, layouts=_LAYOUTS),
)
