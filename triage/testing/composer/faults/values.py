"""Faults in which numbers that must agree do not: between ranks, or between nodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from triage.testing.composer.faults.c10d import uncaught, watchdog_report
from triage.testing.composer.faults.collectives import KNOWN, in_order
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.mismatches import gloo_size_failure, odd_one
from triage.testing.composer.model import Exit, Line, Story, Truth, World
from triage.testing.composer.parts import finish, record, start

_DIVERGED = "numeric.rank-divergence"
_AGREED = ("grad_norm {0:.6f}", "grad_norm={0:.5f}", "avg_loss {0:.6f}", "param_sum {0:.6f}", "reduced loss: {0:.7f}")
_SETTINGS = {
    "nccl": (("NCCL_ALGO", "Ring", "Tree"), ("NCCL_PROTO", "Simple", "LL128")),
    "hccl": (("HCCL_DETERMINISTIC", "true", "false"), ("HCCL_ALGO", "level0:NA;level1:ring", "level0:NA;level1:H-D_R")),
    "gloo": (("OMP_NUM_THREADS", "8", "8"),),
}


def agreed_steps(
    world: World, rng: random.Random, first: float, count: int, parted: Mapping[int, int], begin: int
) -> list[Line]:
    """Return steps in which each rank prints a number that all must share.

    `parted`: ranks that have another value from step `begin` on, and the number of their group: a group agrees.
    """
    form, value, lines = rng.choice(_AGREED), rng.uniform(1.5, 4), []
    for number in range(1, count + 1):
        value *= rng.uniform(0.93, 1.02)
        drift = {group: rng.uniform(0.002, 0.03) * rng.choice((-1, 1)) for group in sorted(set(parted.values()))}
        for rank in world.ranks:
            factor = 1 + drift[parted[rank]] if rank in parted and number >= begin else 1
            at = first + number + rng.uniform(0, 0.3)
            lines.append(record(world, rank, at, f"step {number} {form.format(value * factor)} lr 3.0e-04"))
    return lines


def differs_and_is_checked(world: World, rng: random.Random) -> Story:
    """One rank has another value from a step on; the program's own check ends the job a little later."""
    rank, begin = rng.randrange(world.size), rng.randrange(4, 10)
    count = begin + rng.randrange(0, 4)
    name = rng.choice(("grad_norm", "parameter checksum", "averaged loss"))
    error = rng.choice((
        "RuntimeError: ranks disagree on {0} at step {1}",
        "AssertionError: {0} is not the same on all ranks (step {1})",
        "ValueError: consistency check failed at step {1}: {0}",
    )).format(name, count)  # fmt: skip
    lines = [*start(world, rng), *agreed_steps(world, rng, 9, count, {rank: 1}, begin)]
    return _end_by_check(world, rng, lines, error, odd_one(world, rank, _DIVERGED), 10.5 + count)


def differs_to_the_end(world: World, rng: random.Random) -> Story:
    """One rank has another value from a step on; nobody checks it and the job ends with exit code 0."""
    rank, begin = rng.randrange(world.size), rng.randrange(3, 8)
    count = begin + rng.randrange(3, 9)
    lines = (*start(world, rng), *agreed_steps(world, rng, 9, count, {rank: 1}, begin), *finish(world, 11 + count))
    return Story(_as_cause(lines), odd_one(world, rank, _DIVERGED))


def differs_between_two_nodes(world: World, rng: random.Random) -> Story:
    """After a step the ranks of each of two nodes agree among themselves only; neither node is the majority."""
    return _part_by_node(world, rng, 1, frozenset(world.ranks))


def differs_on_one_of_many_nodes(world: World, rng: random.Random) -> Story:
    """After a step the ranks of one node agree among themselves, and differ from those of all other nodes."""
    node = rng.randrange(len(world.hosts))
    return _part_by_node(world, rng, node, frozenset(world.on_node(node)))


def setting_differs_between_nodes(world: World, rng: random.Random) -> Story:
    """Values part between one node and the others, along with a setting that each rank prints at its start."""
    node = rng.randrange(len(world.hosts))
    name, usual, other = rng.choice(_SETTINGS[world.backend])
    form = rng.choice(("env {}={}", "{}={}", "environment: {}={}"))
    values = {rank: other if world.node(rank) == node else usual for rank in world.ranks}
    marked = _as_cause(record(world, rank, 2.5, form.format(name, value)) for rank, value in values.items())
    more = ("config.env-mismatch", *(["config.determinism-incomplete"] if "DETERMINISTIC" in name else []))
    return _part_by_node(world, rng, node, frozenset(world.on_node(node)), marked, *more)


def parameter_count_differs(world: World, rng: random.Random) -> Story:
    """One rank prints another number of parameters; the first collective fails."""
    rank, usual = rng.randrange(world.size), rng.choice((124439808, 354823168, 1315723264))
    more = usual + rng.choice((768, 50257, 7087872))
    form = rng.choice(("number of parameters on rank {}: {}", " > number of parameters on rank ({}): {}"))
    counts = {each: more if each == rank else usual for each in world.ranks}
    lines = _as_cause([record(world, each, 8 + each / 100, form.format(each, counts[each])) for each in world.ranks])
    roots = ("torch.model-differs-across-ranks", "ddp.model-differs-across-ranks", "torch.collective-shape-mismatch")
    truth = odd_one(world, rank, *roots, _DIVERGED)
    if world.backend == "gloo":
        late, ends = gloo_size_failure(world, rng, rank, 9.5, more, usual)
        return Story((*start(world, rng), *lines, *late), truth, ends)
    reports, exits = [], []
    for each in world.ranks:
        at = 610 + rng.uniform(0, 1)
        reports.append(watchdog_report(world, each, at, 4, operation="BROADCAST", numel=counts[each]))
        exits.append(Exit(each, -6, at + 0.2))
    return Story((*start(world, rng), *lines, *reports), truth, in_order(exits))


def data_hash_differs(world: World, rng: random.Random) -> Story:
    """One rank reads another version of the data; the program compares the hashes before it trains."""
    rank, usual, other = rng.randrange(world.size), f"{rng.getrandbits(64):016x}", f"{rng.getrandbits(64):016x}"
    form = rng.choice(("dataset sha256 {}", "data manifest hash: {}", "tokenized corpus checksum={}"))
    lines = [record(world, each, 5.5, form.format(other if each == rank else usual)) for each in world.ranks]
    error = rng.choice(("RuntimeError: data differ between ranks", "SystemError: corpus hash mismatch across workers"))
    truth = odd_one(world, rank, _DIVERGED)
    either = Truth(truth.verdicts | {"unknown"}, truth.roots | {None}, truth.ranks, truth.nodes, by_comparison=True)
    return _end_by_check(world, rng, [*start(world, rng), *lines], error, either, 6.5)


def _part_by_node(
    world: World, rng: random.Random, node: int, ranks: frozenset[int], before: Iterable[Line] = (), *more: str
) -> Story:
    begin = rng.randrange(3, 8)
    count = begin + rng.randrange(4, 10)
    parted = dict.fromkeys(world.on_node(node), 1)
    lines = [*start(world, rng), *before, *_as_cause(agreed_steps(world, rng, 9, count, parted, begin))]
    roots: frozenset[str | None] = frozenset({_DIVERGED, *more})
    truth = Truth(KNOWN, roots, ranks, frozenset(map(world.node, ranks)), by_comparison=True)
    return Story((*lines, *finish(world, 11 + count)), truth)


def _end_by_check(
    world: World, rng: random.Random, lines: list[Line], error: str, truth: Truth, at: float
) -> Story:  # fmt: skip
    """Return the story that ends with the same exception on all ranks."""
    calls = [
        (world.script, 212, "<module>", "main()"),
        (world.script, 187, "main", "check_consistency(state, group)"),
        (world.script, 97, "check_consistency", f"raise {error.partition(':')[0]}("),
    ]
    late, exits = [], []
    for rank in world.ranks:
        moment = at + rng.uniform(0, 0.3)
        late.append(uncaught(world, rank, moment, error, calls))
        exits.append(Exit(rank, 1, moment + 0.3))
    return Story((*_as_cause(lines), *late), truth, in_order(exits))


def _as_cause(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return the lines as those that show the failure when they are compared."""
    return tuple(Line(line.at, line.writer, line.text, line.stream, is_cause=True) for line in lines)


_ALL: tuple[tuple[str, Callable[[World, random.Random], Story]], ...] = (
    ("value-differs-and-is-checked", differs_and_is_checked),
    ("value-differs-to-the-end", differs_to_the_end),
    ("data-hash-differs", data_hash_differs),
)

FAULTS = (
    *(Fault(name, tell, backends=("nccl", "gloo", "hccl"), least_per_node=2) for name, tell in _ALL),
    Fault("parameter-count-differs", parameter_count_differs, least_per_node=2),
    Fault("values-part-between-two-nodes", differs_between_two_nodes, ("nccl", "gloo", "hccl"), 2, 2, 2),
    Fault("values-part-on-one-node", differs_on_one_of_many_nodes, ("nccl", "gloo", "hccl"), 3, least_per_node=2),
    Fault("setting-parts-values", setting_differs_between_nodes, ("nccl", "hccl"), 3, least_per_node=2),
)
