"""A job's collectives: columns of entries, groups of ranks, and the faults in them.

Columns are numpy arrays with one element for each entry, all ranks one after another, oldest entry first within a rank.
What repeats (operations, shapes, stacks) stands once in a list, and the columns hold its index. Times are nanoseconds
since the epoch, sequence numbers are torch's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    """One frame of a Python stack."""

    name: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Group:
    """A process group.

    `members` are global ranks, ascending; `has_stated_members` says whether the dumps list them or only the entries
    show them.
    """

    name: str
    desc: str
    members: tuple[int, ...]
    has_stated_members: bool

    @property
    def label(self) -> str:
        """The name that users know: the description, else the name."""
        if self.desc and self.desc != "undefined":
            return self.desc if self.desc == "default_pg" or self.desc == self.name else f"{self.desc} ({self.name})"
        return f"group {self.name}"


@dataclass(frozen=True, slots=True)
class Dump:
    """One rank's dump, without its entries.

    `first_record` is the id of the oldest entry that the ring buffer still held; the entries before it are lost.
    `is_complete`: the file did not end early. `start` and `end` are the dump's rows in the table.
    """

    rank: int
    source: str
    version: str
    entries: int
    first_record: int
    last_time: int
    is_complete: bool
    start: int
    end: int

    @property
    def has_wrapped(self) -> bool:
        """Whether the ring buffer has dropped entries."""
        return self.first_record > 0


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


class Shape(NamedTuple):
    """Input and output sizes of a collective, one tuple for each tensor."""

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that the dumps of one job hold.

    `ops` are `backend:name`; `stacks` have their innermost frame first, as torch writes them.
    """

    dumps: Mapping[int, Dump]
    groups: tuple[Group, ...]
    table: Table
    ops: tuple[str, ...]
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    stacks: tuple[tuple[Frame, ...], ...]
    notes: tuple[tuple[str, str | None, str], ...] = ()
    """(code, source, message) of each thing that limits the analysis."""

    @property
    def world(self) -> tuple[int, ...]:
        """All ranks that a group or a file names."""
        members = {rank for group in self.groups for rank in group.members}
        return tuple(sorted(members | set(self.dumps)))


@dataclass(frozen=True, slots=True)
class CallSite:
    """The call that some ranks made, and the frames of the program that lead to it, innermost first."""

    ranks: tuple[int, ...]
    call: str
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong in one group at one sequence number.

    `ranks` are those at fault, `waiting` those that wait because of it. `seq` is where it shows, `since` where the
    ranks first diverged. `explained_by` are indices of the faults of the analysis that cause this one; empty for a
    root. `is_certain` is False where the dumps allow another explanation, which `text` then names.
    """

    rule: Rule
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    group: str
    seq: int
    op: str
    text: str
    since: int | None = None
    call_sites: tuple[CallSite, ...] = ()
    explained_by: tuple[int, ...] = ()
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that others waited for: how often it entered last, and the seconds that the others waited for it."""

    rank: int
    times_last: int
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result: faults, roots first; ranks without a dump; stragglers, worst first; and what limits the analysis."""

    faults: tuple[Fault, ...]
    no_dump: tuple[int, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    notes: tuple[tuple[str, str | None, str], ...] = ()
