"""The last calls of every rank as a program that can run again, and the calls that the ranks at fault should have made.

No rank replays half of a collective: in each group all members begin with the same sequence number. A simulation, in
which the ranks wait for each other, shows whether the program hangs and whether the corrected one ends.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from triage.artifacts.flight.grid import comparable
from triage.artifacts.flight.model import Analysis, Fault, Group, Recording, location_of, operation_name
from triage.artifacts.flight.p2p import peer_of


@dataclass(frozen=True, slots=True)
class Step:
    """One call.

    `number` counts within the group, or within the channel for `send` and `recv` with a global `peer`; `inputs` and
    `outputs` count elements; `place` is where it was called. `root` is the rank that scatters or gathers, where the
    sizes show it; `same` the element counts that must be equal on all ranks.
    """

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
    def signature(self) -> tuple[object, ...]:
        """What must be equal on all ranks of a collective."""
        return (self.op, self.same, self.dtype)


Program = Mapping[int, Sequence[Step]]


@dataclass(frozen=True, slots=True)
class Replay:
    """The calls of all ranks, as they were and as they should have been.

    `fixed` is empty where the dumps do not show it; `fault` is the root that is replayed, `hangs` whether the program
    alone explains the hang, `passes` whether the fixed program ends.
    """

    groups: Mapping[str, tuple[int, ...]]
    calls: Program
    fixed: Program
    fault: Fault | None
    hangs: bool
    passes: bool


def replay(recording: Recording, analysis: Analysis, *, calls: int = 50, scale: int = 1) -> Replay:
    """Return the last `calls` calls of each rank, with the element counts divided by `scale`."""
    fault = next((fault for fault in analysis.faults if not fault.explained_by), None)
    groups = {group.label: _find_members(group, fault) for group in recording.groups}
    program = _cut({rank: _steps(recording, rank, calls) for rank in recording.dumps}, groups)
    for rank in recording.world:
        program.setdefault(rank, _common(program, groups, rank))
    program = _scale_down(program, scale)
    fixed = _fixed(program, groups, fault) if fault else {}
    passes = bool(fixed) and ends(fixed, groups)
    return Replay(
        groups, dict(sorted(program.items())), fixed if passes else {}, fault, not ends(program, groups), passes
    )


def _find_members(group: Group, fault: Fault | None) -> tuple[int, ...]:
    """Return the members of a group, with those that never joined it: dumps may list only ranks that did."""
    if fault is None or fault.rule != "never-joined" or fault.group != group.label:
        return group.members
    return tuple(sorted({*group.members, *fault.ranks}))


def _steps(recording: Recording, rank: int, limit: int) -> list[Step]:
    """The last calls of a rank, oldest first."""
    dump = recording.dumps[rank]
    return [_step(recording, rank, row) for row in range(max(dump.start, dump.end - limit), dump.end)]


def _step(recording: Recording, rank: int, row: int) -> Step:
    table = recording.table
    op = recording.ops[int(table.op[row])]
    shape = recording.shapes[int(table.shape[row])]
    group = recording.groups[int(table.group[row])]
    peer = peer_of(op, group.members)
    name = operation_name(op).split(" ")[0]
    inputs, outputs = (sum(map(math.prod, sizes)) for sizes in shape)
    return Step(
        name,
        group.label,
        int(table.p2p[row] if peer is not None else table.seq[row]),
        inputs,
        outputs,
        dtype=recording.dtypes[int(table.dtype[row])].split(",")[0],
        place=location_of(recording, row).removeprefix(" at "),
        peer=peer,
        root=rank if (name == "gather" and outputs) or (name == "scatter" and inputs) else None,
        created=int(table.created[row]),
        done=bool(table.done[row]),
        same=comparable(name, shape) if peer is None else (),
    )


def _cut(program: dict[int, list[Step]], groups: Mapping[str, Sequence[int]]) -> dict[int, list[Step]]:
    """Drop the first calls of a group that not all its members still have."""
    first: dict[str, int] = {}
    for name, members in groups.items():
        for rank in members:
            if rank in program:
                numbers = [step.number for step in program[rank] if step.group == name and step.peer is None]
                first[name] = max(first.get(name, 0), min(numbers, default=0))
    aligned = {
        rank: [step for step in steps if step.peer is not None or step.number >= first.get(step.group, 0)]
        for rank, steps in program.items()
    }
    return {rank: _drop_unpaired(rank, steps, aligned) for rank, steps in aligned.items()}


def _drop_unpaired(rank: int, steps: list[Step], program: Mapping[int, list[Step]]) -> list[Step]:
    """Keep as many finished sends and receives of each pair of ranks as the side with fewer of them has."""
    counts = Counter((step.group, step.op, step.peer) for step in steps if step.peer is not None and step.done)
    surplus = {}
    for (group, op, peer), count in counts.items():
        partner = (group, "recv" if op == "send" else "send", rank)
        theirs = sum(step.done and (step.group, step.op, step.peer) == partner for step in program.get(peer, ()))
        surplus[group, op, peer] = max(0, count - theirs)
    paired = []
    for step in steps:
        if step.peer is not None and surplus.get((step.group, step.op, step.peer), 0) > 0:
            surplus[step.group, step.op, step.peer] -= 1
            continue
        paired.append(step)
    return paired


def _common(program: Mapping[int, Sequence[Step]], groups: Mapping[str, Sequence[int]], rank: int) -> list[Step]:
    """The calls of a rank without a dump: those that another rank has finished, so that the others get as far."""
    mine = [name for name, members in groups.items() if rank in members]
    longest = max(program.values(), key=len, default=())
    steps = [step for step in longest if step.group in mine and step.peer is None]
    last = {name: max((step.number for step in steps if step.group == name), default=0) for name in mine}
    return [step for step in steps if step.number < last[step.group]]


def _scale_down(program: Mapping[int, Sequence[Step]], scale: int) -> dict[int, list[Step]]:
    """Divide the element counts by `scale`: equal counts stay equal, different ones stay different."""
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
    """Give the ranks at fault the calls of a rank that is not at fault, from where they differ.

    Then all ranks make the calls that they lack.
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
        own_part = itertools.takewhile(lambda step: not _is_from(step, fault.group, start), own)
        their_part = itertools.dropwhile(lambda step: not _is_from(step, fault.group, start), theirs)
        fixed[rank] = [*own_part, *(step for step in their_part if step.group in mine and step.peer is None)]
    return _add_missing_calls(fixed, groups, sound)


def _is_from(step: Step, group: str, number: int) -> bool:
    return step.peer is None and step.group == group and step.number >= number


def _shared(groups: Mapping[str, Sequence[int]], one: int, other: int, first: str) -> tuple[bool, int]:
    """Whether `other` is in the first group, and how many groups hold both ranks."""
    return other in groups.get(first, ()), sum(one in members and other in members for members in groups.values())


def _add_missing_calls(
    program: dict[int, list[Step]], groups: Mapping[str, Sequence[int]], sound: Sequence[int]
) -> dict[int, list[Step]]:
    """Let each member of a group make the calls that any sound member has made there, in the order of their time."""
    for rank, steps in program.items():
        missing: dict[tuple[str, int], Step] = {}
        for name, members in groups.items():
            if rank not in members:
                continue
            numbers = {step.number for step in steps if step.group == name and step.peer is None}
            last = max(numbers, default=-1)
            for other in members:
                for step in program.get(other, ()) if other in sound or not numbers else ():
                    if step.group == name and step.peer is None and step.number > last:
                        missing.setdefault((name, step.number), step)
        steps += sorted(missing.values(), key=lambda step: (step.created, step.group, step.number))
    return program


def ends(program: Program, groups: Mapping[str, Sequence[int]]) -> bool:
    """Return whether every rank reaches its end when each waits in every call for all ranks of the call."""
    position = dict.fromkeys(program, 0)
    moved = True
    while moved:
        moved = False
        for rank, steps in program.items():
            if position[rank] < len(steps) and _can_proceed(steps[position[rank]], rank, program, position, groups):
                step = steps[position[rank]]
                for other in groups[step.group] if step.peer is None else (rank, step.peer):
                    position[other] += 1
                moved = True
    return all(position[rank] == len(steps) for rank, steps in program.items())


def _can_proceed(
    step: Step, rank: int, program: Program, position: Mapping[int, int], groups: Mapping[str, Sequence[int]]
) -> bool:
    def current(other: int) -> Step | None:
        steps = program.get(other, ())
        return steps[position[other]] if other in position and position[other] < len(steps) else None

    if step.peer is not None:
        other = current(step.peer)
        return other is not None and other.peer == rank and other.op != step.op and other.group == step.group
    return all(
        each is not None and each.group == step.group and each.peer is None and each.signature == step.signature
        for each in map(current, groups[step.group])
    )
