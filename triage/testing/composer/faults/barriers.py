"""Faults in which ranks do not come to a monitored barrier, or others come to one too many."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from triage.testing.composer.faults.c10d import by_version, collective_calls, glog, uncaught
from triage.testing.composer.faults.collectives import (
    KNOWN,
    LOADING,
    closed_by_peer,
    gloo_source,
    gloo_timeout,
    in_order,
)
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, record, start, steps

_MISSED = frozenset({"torch.monitored-barrier-timeout", "torch.lagging-rank", "torch.rank-never-joined"})
_FURTHER = frozenset({"torch.rank-conditional-collective", "torch.extra-collective", "torch.collective-order-mismatch"})


def monitored_barrier(world: World, rng: random.Random) -> Story:
    """One rank does not come to a monitored barrier; rank 0 names it, the others point to rank 0."""
    missing, count, seconds = rng.randrange(1, world.size), rng.randrange(3, 10), rng.choice((60, 300, 1800))
    named = [missing] if rng.random() < 0.5 else []
    late, exits = _report(world, rng, named, [missing], 10.6 + count + seconds, seconds)
    truth = Truth(KNOWN, _MISSED, frozenset({missing}), frozenset({world.node(missing)}))
    return Story((*start(world, rng), *steps(world, rng, 10, count), *late), truth, in_order(exits))


def _report(
    world: World,
    rng: random.Random,
    first: Sequence[int],
    missing: Sequence[int],
    at: float,
    seconds: int,
    group: range | None = None,
) -> tuple[list[Line], list[Exit]]:
    """Return what the ranks of a group (default: all ranks) print when their monitored barrier ends: numbers of ranks
    in the group. `first`: the one rank that the group's rank 0 waited for, if it does not collect all that are missing.
    """  # fmt: skip
    group = group or world.ranks
    leader = group[0]
    code = "return group_to_use.monitored_barrier("
    shown = ", ".join(str(group.index(rank)) for rank in first or missing)
    named = f"[Rank 0]: Rank{'s' * (not first)} {shown} failed to pass monitoredBarrier in {seconds * 1000} ms"
    original = f"\n Original exception: \n[{gloo_source(world, 'unbound_buffer')}] Timed out waiting {seconds * 1000}ms"
    error = f"{named}{original} for recv operation to complete" if first else named
    where = f"ProcessGroupGloo.cpp:{by_version(world, (138, 143, 145, 66))}"
    calls = collective_calls(world, "monitored_barrier", code, "synchronize")
    stated = Line(at, Writer("rank", leader), glog(world, at, "E", where, leader) + named, is_cause=True)
    raised = uncaught(world, leader, at + 0.01, f"RuntimeError: {error}", calls, is_cause=True)
    late = [replace(line, names_ranks=frozenset(first or missing)) for line in (stated, raised)]
    exits = [Exit(leader, 1, at + 0.3)]
    for rank in [rank for rank in group[1:] if rank not in missing]:
        when = at + rng.uniform(0.02, 0.3)
        message = (
            f"Rank {group.index(rank)} successfully reached monitoredBarrier, but received errors while waiting for "
            "send/recv from rank 0. Please check rank 0 logs for faulty rank."
        )
        closed = f"\n Original exception: \n{closed_by_peer(world, rng, leader)}"
        late.append(Line(when, Writer("rank", rank), glog(world, when, "E", where, rank) + message))
        late.append(uncaught(world, rank, when + 0.01, f"RuntimeError: {message}{closed}", calls))
        exits.append(Exit(rank, 1, when + 0.3))
    return late, exits


def barrier_missed_by_several(world: World, rng: random.Random) -> Story:
    """Several ranks do not come to a monitored barrier that names the first of them; those that came say so."""
    few = rng.randrange(2, max(3, (world.size - 1) // 2 + 1))
    missing = sorted(rng.sample(range(1, world.size), few))
    count, seconds = rng.randrange(3, 10), rng.choice((60, 300, 1800))
    lines: list[Line] = [*start(world, rng), *steps(world, rng, 10, count)]
    if rng.random() < 0.5:
        text = rng.choice(LOADING).format(rng.randrange(100, 9000), rng.choice(("lustre", "nfs01", "datasets")))
        lines += [record(world, rank, 10.5 + count + rng.uniform(0, 0.2), text) for rank in missing]
    late, ends = _report(world, rng, missing[:1], missing, 10.6 + count + seconds, seconds)
    nodes = frozenset(map(world.node, missing))
    truth = Truth(KNOWN, _MISSED, frozenset(missing), nodes, by_comparison=True)
    return Story((*lines, *late), truth, in_order(ends))


def barrier_of_smaller_group(world: World, rng: random.Random) -> Story:
    """A rank does not come to a monitored barrier of some of the ranks, which names its number in this group."""
    size = world.size
    members = rng.choice((range(size // 2, size), range(1, size, 2), range(1, size), range(size - 2, size)))
    missing, count, seconds = rng.choice(members[1:]), rng.randrange(3, 10), rng.choice((60, 300, 1800))
    at = 10.6 + count + seconds
    late, exits = _report(world, rng, rng.choice(([missing], [])), [missing], at, seconds, members)
    lost, ends = echoes(world, rng, members, at + 0.5, share=rng.choice((0.0, 0.6, 1.0)))
    lines = (*start(world, rng), *steps(world, rng, 10, count), *late, *lost)
    truth = Truth(KNOWN, _MISSED, frozenset({missing}), frozenset({world.node(missing)}), are_ranks_hidden=True)
    return Story(lines, truth, in_order([*exits, *ends]))


def barrier_of_a_few(world: World, rng: random.Random) -> Story:
    """Rank 0, perhaps with another one, enters a monitored barrier that the program of the others does not have."""
    few = [0, *rng.sample(range(1, world.size), rng.randrange((world.size + 1) // 4))]
    others = [rank for rank in world.ranks if rank not in few]
    count, seconds = rng.randrange(3, 10), rng.choice((60, 300, 1800))
    at = 10.6 + count + seconds
    text = rng.choice(("saving the best model of step {}", "evaluating at step {}", "exporting step {}"))
    lines = [*start(world, rng), *steps(world, rng, 10, count), record(world, 0, 10.5 + count, text.format(count))]
    late, exits = _report(world, rng, [], others, at, seconds)
    lost, ends = echoes(world, rng, few, at + 0.5, share=rng.choice((0.5, 1.0)))
    roots = frozenset({"torch.monitored-barrier-timeout"}) | _FURTHER
    truth = Truth(KNOWN, roots, frozenset(few), frozenset(map(world.node, few)), are_ranks_hidden=True)
    return Story((*lines, *late, *lost), truth, in_order([*exits, *ends]))


def barrier_missed_while_waiting(world: World, rng: random.Random) -> Story:
    """One rank hangs, a second one waits for it in a call of their own group, so both miss a monitored barrier."""
    missing = rng.sample(range(1, world.size), 2)
    stuck, waiting = missing
    count, seconds = rng.randrange(3, 10), rng.choice((60, 300, 1800))
    at = 10.6 + count + seconds
    lines = [*start(world, rng), *steps(world, rng, 10, count)]
    if rng.random() < 0.5:
        text = rng.choice(LOADING).format(rng.randrange(100, 9000), rng.choice(("lustre", "nfs01", "datasets")))
        lines.append(record(world, stuck, 10.5 + count, text))
    late, exits = _report(world, rng, [], sorted(missing), at, seconds)
    late = [replace(line, names_ranks=frozenset()) for line in late]
    own = gloo_timeout(world, waiting, at - rng.uniform(0.1, 5), seconds, barrier=False)
    truth = Truth(KNOWN, _MISSED, frozenset({stuck}), frozenset({world.node(stuck)}), by_comparison=True)
    return Story((*lines, own, *late), truth, in_order([*exits, Exit(waiting, 1, own.at + 0.3)]))


FAULTS = (
    Fault("monitored-barrier", monitored_barrier, backends=("gloo",)),
    Fault("barrier-missed-by-several", barrier_missed_by_several, backends=("gloo",), least_per_node=5),
    Fault("barrier-of-smaller-group", barrier_of_smaller_group, backends=("gloo",), least_per_node=4),
    Fault("barrier-of-a-few", barrier_of_a_few, backends=("gloo",), least_per_node=3),
    Fault("barrier-missed-while-waiting", barrier_missed_while_waiting, backends=("gloo",), least_per_node=4),
)
