"""What is known of a job's collectives: columns of entries, groups of ranks, and the faults found in them.

Columns are numpy arrays with one element an entry, all ranks one after another, oldest first within a rank. What
repeats (operations, shapes,
stacks) stands once in a list, and the columns hold its index. Times are nanoseconds since the epoch, sequence numbers
are torch's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.integer[Any]]
    Bools = NDArray[np.bool_]
else:
    Ints = Bools = Any

SCHEDULED, STARTED, COMPLETED = 0, 1, 2

Rule = Literal[
    "never-joined",
    "lagging-rank",
    "extra-collective",
    "rank-conditional",
    "divergent-call",
    "shape-mismatch",
    "dtype-mismatch",
    "wrong-group",
    "group-order",
    "stuck-in-collective",
    "p2p-mismatch",
]
"""The names by which signatures match (`fields: {rule: …}`)."""


class Frame(NamedTuple):
    name: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Group:
    """A process group. `members` are global ranks, ascending; `stated` says whether the dumps state them or only the
    entries show them.
    """

    name: str
    desc: str
    members: tuple[int, ...]
    stated: bool

    @property
    def label(self) -> str:
        """How people call it."""
        if self.desc and self.desc != "undefined":
            return self.desc if self.desc == "default_pg" or self.desc == self.name else f"{self.desc} ({self.name})"
        return f"group {self.name}"


@dataclass(frozen=True, slots=True)
class Dump:
    """One rank's dump without its entries. `first` is the record id of the oldest entry that the ring still held: what
    is below was lost.
    `status` maps a group's index to (last enqueued, last started, last completed). `whole`: the file did not end
    early."""

    rank: int
    source: str
    version: str
    library: str
    entries: int
    first: int
    last_time: int
    whole: bool
    start: int
    end: int
    status: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def wrapped(self) -> bool:
        return self.first > 0


@dataclass(frozen=True, slots=True)
class Table:
    """All entries, as columns."""

    rank: Ints
    record: Ints
    group: Ints
    seq: Ints
    p2p: Ints
    op: Ints
    shape: Ints
    dtype: Ints
    stack: Ints
    state: Ints
    created: Ints
    done: Bools
    retired: Bools
    is_p2p: Bools
    duration: NDArray[np.floating[Any]]
    timeout: Ints


class Shape(NamedTuple):
    """Input and output sizes of a collective, one tuple a tensor."""

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that the dumps of one job hold. `ops` are `backend:name`, `stacks` innermost frame first, as torch
    writes them.
    """

    dumps: Mapping[int, Dump]
    groups: tuple[Group, ...]
    table: Table
    ops: tuple[str, ...]
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    stacks: tuple[tuple[Frame, ...], ...]
    notes: tuple[tuple[str, str | None, str], ...] = ()
    """(code, source, message) of what the reader must know."""

    @property
    def world(self) -> tuple[int, ...]:
        """All ranks that any group or file names."""
        known = {rank for group in self.groups for rank in group.members}
        return tuple(sorted(known | set(self.dumps)))


@dataclass(frozen=True, slots=True)
class Place:
    """Where some ranks stand: the call, and the frames of the program that lead to it, innermost first."""

    ranks: tuple[int, ...]
    call: str
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong in one group at one sequence number.

    `ranks` are those at fault, `waiting` those that wait because of it. `seq` is where it shows, `since` where the
    ranks first diverged.
    `explained_by` are indices of other faults of the analysis that this one follows from; empty for a root. `sure` is
    False where the
    dumps allow another reading, which `text` then says.
    """

    rule: Rule
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    group: str
    seq: int
    op: str
    text: str
    since: int | None = None
    places: tuple[Place, ...] = ()
    explained_by: tuple[int, ...] = ()
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that others waited for: how often it came last and how long the others waited for it in all, in seconds."""

    rank: int
    last: int
    waited: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """The answer: faults, roots first; ranks without a dump; stragglers, worst first; and what limits the answer."""

    faults: tuple[Fault, ...]
    no_dump: tuple[int, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    notes: tuple[tuple[str, str | None, str], ...] = ()
