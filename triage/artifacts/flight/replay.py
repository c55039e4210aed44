"""The last calls of every rank as a program that can be run again, and what would have to change at the ranks at fault
so that it ends.

A cut is chosen so that no rank replays half of a collective: in each group all members begin with the same number.
Whether the program
hangs, and whether it ends with the change, is tried out here by letting the ranks wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from triage.artifacts.flight.grid import comparable
from triage.artifacts.flight.model import Analysis, Fault, Recording
from triage.artifacts.flight.p2p import peer_of
from triage.artifacts.flight.places import at, name_of


@dataclass(frozen=True, slots=True)
class Step:
    """One call: `number` within its group (or of the channel, for `send` and `recv` with a global `peer`), element
    counts, and where it was made.
    `root` is the rank that scatters or gathers, where the sizes tell it."""

    op: str
    group: str
    number: int
    inputs: int
    outputs: int
    dtype: str
    place: str
    peer: int | None = None
    root: int | None = None
    created: int = 0
    done: bool = False
    same: tuple[int, ...] = ()

    @property
    def channel(self) -> tuple[object, ...]:
        return (self.group,) if self.peer is None else (self.group, self.op)

    @property
    def signature(self) -> tuple[object, ...]:
        """What must agree on all ranks of a collective."""
        return (self.op, self.same, self.dtype)


Program = Mapping[int, Sequence[Step]]


@dataclass(frozen=True, slots=True)
class Replay:
    """`calls` of all ranks as they were, `fixed` as they should have been (empty where the dumps do not say), `fault`
    the root that is replayed,
    `hangs` whether the program alone explains the hang, `passes` whether it ends with the fix."""

    groups: Mapping[str, tuple[int, ...]]
    calls: Program
    fixed: Program
    fault: Fault | None
    hangs: bool
    passes: bool


def replay(recording: Recording, analysis: Analysis, *, calls: int = 50, scale: int = 1) -> Replay:
    """The last `calls` calls of each rank, every tensor's elements divided by `scale`."""
    groups = {group.label: group.members for group in recording.groups}
    program = _cut({rank: _steps(recording, rank, calls) for rank in recording.dumps}, groups)
    for rank in recording.world:
        program.setdefault(rank, _common(program, groups, rank))
    program = _apart(program, scale)
    fault = next((fault for fault in analysis.faults if not fault.explained_by), None)
    fixed = _fixed(program, groups, fault) if fault else {}
    passes = bool(fixed) and settles(fixed, groups)
    return Replay(
        groups, dict(sorted(program.items())), fixed if passes else {}, fault, not settles(program, groups), passes
    )


def _steps(recording: Recording, rank: int, most: int) -> list[Step]:
    table, dump = recording.table, recording.dumps[rank]
    steps = []
    for row in range(max(dump.start, dump.end - most), dump.end):
        op = recording.ops[int(table.op[row])]
        shape = recording.shapes[int(table.shape[row])]
        group = recording.groups[int(table.group[row])]
        peer = peer_of(op, group.members)
        name = name_of(op).split(" ")[0]
        inputs, outputs = (sum(map(math.prod, sizes)) for sizes in shape)
        root = rank if (name == "gather" and outputs) or (name == "scatter" and inputs) else None
        number = int(table.p2p[row] if peer is not None else table.seq[row])
        where = at(recording.stacks[int(table.stack[row])]).removeprefix(" at ")
        dtype = recording.dtypes[int(table.dtype[row])].split(",")[0]
        same = comparable(name, shape) if peer is None else ()
        steps.append(
            Step(
                name,
                group.label,
                number,
                inputs,
                outputs,
                dtype,
                where,
                peer,
                root,
                int(table.created[row]),
                bool(table.done[row]),
                same,
            )
        )
    return steps


def _cut(program: dict[int, list[Step]], groups: Mapping[str, Sequence[int]]) -> dict[int, list[Step]]:
    """Drop from the beginning what not all members of a group still have."""
    first: dict[str, int] = {}
    for name, members in groups.items():
        for rank in members:
            if rank in program:
                numbers = [step.number for step in program[rank] if step.group == name and step.peer is None]
                first[name] = max(first.get(name, 0), min(numbers, default=0))
    kept = {
        rank: [step for step in steps if step.peer is not None or step.number >= first.get(step.group, 0)]
        for rank, steps in program.items()
    }
    return {rank: _paired(rank, steps, kept) for rank, steps in kept.items()}


def _paired(rank: int, steps: list[Step], program: Mapping[int, list[Step]]) -> list[Step]:
    """Point to point calls have no common number: of each pair of ranks as many that are done are kept as the shorter
    side has.
    """
    counts: dict[tuple[object, ...], int] = {}
    for step in steps:
        if step.peer is not None and step.done:
            counts[step.group, step.op, step.peer] = counts.get((step.group, step.op, step.peer), 0) + 1
    surplus = {}
    for (group, op, peer), count in counts.items():
        other = "recv" if op == "send" else "send"
        theirs = sum(
            step.done and step.peer == rank and step.op == other and step.group == group
            for step in program.get(peer, ())
        )  # type: ignore[call-overload]
        surplus[group, op, peer] = max(0, count - theirs)
    out = []
    for step in steps:
        key = (step.group, step.op, step.peer)
        if step.peer is not None and surplus.get(key, 0) > 0:
            surplus[key] -= 1
            continue
        out.append(step)
    return out


def _common(program: Mapping[int, Sequence[Step]], groups: Mapping[str, Sequence[int]], rank: int) -> list[Step]:
    """For a rank without a dump: what somebody else has got past, so that the others can replay up to where they stand."""
    mine = [name for name, members in groups.items() if rank in members]
    donor = max((other for other in program), key=lambda other: len(program[other]), default=None)
    steps = (
        [step for step in program.get(donor, ()) if step.group in mine and step.peer is None]
        if donor is not None
        else []
    )
    last = {name: max((step.number for step in steps if step.group == name), default=0) for name in mine}
    return [step for step in steps if step.number < last[step.group]]


def _apart(program: Mapping[int, Sequence[Step]], scale: int) -> dict[int, list[Step]]:
    """Element counts divided by `scale`: what was equal stays equal, what was different stays different."""
    if scale <= 1:
        return {rank: list(steps) for rank, steps in program.items()}
    sizes = sorted(
        {size for steps in program.values() for step in steps for size in (step.inputs, step.outputs) if size}
    )
    smaller, last = {0: 0}, 0
    for size in sizes:
        last = smaller[size] = max(size // scale, last + 1)
    return {
        rank: [replace(step, inputs=smaller[step.inputs], outputs=smaller[step.outputs]) for step in steps]
        for rank, steps in program.items()
    }


def _fixed(
    program: Mapping[int, Sequence[Step]], groups: Mapping[str, Sequence[int]], fault: Fault
) -> dict[int, list[Step]]:
    """The ranks at fault do what a rank does that is not, from where they differ; then all go on until nobody is
    missing.
    """
    sound = [rank for rank in program if rank not in fault.ranks]
    if not sound:
        return {}
    start = fault.since if fault.since is not None else fault.seq
    fixed = {rank: list(steps) for rank, steps in program.items()}
    for rank in fault.ranks:
        model = max(sound, key=lambda other: (_shared(groups, rank, other, fault.group), len(program[other]), -other))
        mine = {name for name, members in groups.items() if rank in members}
        own, theirs = program.get(rank, ()), program[model]
        keep = next((i for i, step in enumerate(own) if _from(step, fault.group, start)), len(own))
        take = next((i for i, step in enumerate(theirs) if _from(step, fault.group, start)), len(theirs))
        fixed[rank] = [*own[:keep], *(step for step in theirs[take:] if step.group in mine and step.peer is None)]
    return _level(fixed, groups, sound)


def _from(step: Step, group: str, number: int) -> bool:
    return step.peer is None and step.group == group and step.number >= number


def _shared(groups: Mapping[str, Sequence[int]], one: int, other: int, first: str) -> tuple[bool, int]:
    return other in groups.get(first, ()), sum(one in members and other in members for members in groups.values())


def _level(
    program: dict[int, list[Step]], groups: Mapping[str, Sequence[int]], sound: Sequence[int]
) -> dict[int, list[Step]]:
    """Every member of a group makes the calls that any sound member has made there, in the order of their time."""
    for rank, steps in program.items():
        missing: dict[tuple[str, int], Step] = {}
        for name, members in groups.items():
            if rank not in members:
                continue
            have = {step.number for step in steps if step.group == name and step.peer is None}
            for other in members:
                for step in program.get(other, ()) if other in sound or not have else ():
                    if (
                        step.group == name
                        and step.peer is None
                        and step.number not in have
                        and step.number > max(have, default=-1)
                    ):
                        missing.setdefault((name, step.number), step)
        steps += sorted(missing.values(), key=lambda step: (step.created, step.group, step.number))
    return program


def settles(program: Program, groups: Mapping[str, Sequence[int]]) -> bool:
    """Does every rank get to its end when each waits for every call?"""
    position = dict.fromkeys(program, 0)
    moved = True
    while moved:
        moved = False
        for rank, steps in program.items():
            if position[rank] < len(steps) and _goes(steps[position[rank]], rank, program, position, groups):
                step = steps[position[rank]]
                for other in groups[step.group] if step.peer is None else (rank, step.peer):
                    position[other] += 1
                moved = True
    return all(position[rank] == len(steps) for rank, steps in program.items())


def _goes(
    step: Step, rank: int, program: Program, position: Mapping[int, int], groups: Mapping[str, Sequence[int]]
) -> bool:
    def current(other: int) -> Step | None:
        steps = program.get(other, ())
        return steps[position[other]] if other in position and position[other] < len(steps) else None

    if step.peer is not None:
        other = current(step.peer)
        return other is not None and other.peer == rank and other.op != step.op and other.group == step.group
    there = [current(other) for other in groups[step.group]]
    return all(
        each is not None and each.group == step.group and each.peer is None and each.signature == step.signature
        for each in there
    )
