"""A job's collectives: columns of entries, groups of ranks, and the faults in them.

Columns are numpy arrays with one element for each entry, all ranks one after another, oldest entry first within a rank.
What repeats (operations, shapes, stacks) stands once in a list, and the columns hold its index. Times are nanoseconds
since the epoch, sequence numbers are torch's own. The functions at the end write calls as text: what a rank called,
and where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks

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
_LIBRARY = lazy_re(r"(?:^|/)(?:site-packages|dist-packages|torch|torch_npu)/|/lib/python3[^/]*/|^<|^\?\?$")


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
    `is_complete`: the file did not end early. `only_open`: it lists the calls in flight and none that are done. `start`
    and `end` are the dump's rows in the table. `written` is when the file was written, in seconds since the epoch, or
    later, where a copy has its own time; None where it is not known.
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
    only_open: bool = False
    written: float | None = None

    @property
    def has_wrapped(self) -> bool:
        """Whether earlier entries are lost: the ring buffer has dropped them, or the dump lists only open calls."""
        return self.first_record > 0 or self.only_open


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


class GroupStatus(NamedTuple):
    """The numbers of the last call of a group that a rank has enqueued, started and completed; -1 for none."""

    enqueued: int
    started: int
    completed: int


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that the dumps of one job hold.

    `ops` are `backend:name`; `stacks` have their innermost frame first, as torch writes them. `status` is what
    `pg_status` says, by rank and number of the group.
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
    status: Mapping[tuple[int, int], GroupStatus] = field(default_factory=dict)

    @property
    def world(self) -> tuple[int, ...]:
        """All ranks that a group or a file names."""
        return tuple(sorted({rank for group in self.groups for rank in group.members} | set(self.dumps)))


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
    root. `uncertainty` says which other explanation the dumps allow; it is empty where they allow none.
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
    uncertainty: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether the dumps allow no other explanation."""
        return not self.uncertainty


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


def format_waiting(ranks: Iterable[int]) -> str:
    """Return `rank 3 waits` or `ranks 0-2 wait`."""
    numbers = set(ranks)
    return f"{format_ranks(numbers)} {'waits' if len(numbers) == 1 else 'wait'}"


def innermost_user_frame(stack: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the user's program; the outermost frame where all are of libraries."""
    return next((frame for frame in stack if not _LIBRARY.search(frame.file)), stack[-1] if stack else None)


def format_location(stack: Sequence[Frame]) -> str:
    """Return ` at train.py:25 in step`, or nothing without a stack."""
    frame = innermost_user_frame(stack)
    if frame is None:
        return ""
    inside = f" in {frame.name}" if frame.name not in ("<module>", "?", "") else ""
    return f" at {frame.file.rsplit('/', 1)[-1]}:{frame.line}{inside}"


def operation_name(op: str) -> str:
    """Return `all_reduce` for `nccl:all_reduce`."""
    return op.partition(":")[2] or op


def format_operation(recording: Recording, row: int) -> str:
    """Return `all_reduce #7 of default_pg` for the call in a row of the table."""
    table = recording.table
    name, group = operation_name(recording.ops[int(table.op[row])]), recording.groups[int(table.group[row])].label
    return f"{name} #{number_of(recording, row)} of {group}"


def number_of(recording: Recording, row: int) -> int:
    """Return the number of a call: sends and receives have their own counter."""
    table = recording.table
    return int(table.p2p[row] if table.is_p2p[row] else table.seq[row])


def location_of(recording: Recording, row: int) -> str:
    """Return where the call in a row of the table was made, as `format_location` does."""
    return format_location(recording.stacks[int(recording.table.stack[row])])


def call_site_of(recording: Recording, row: int, ranks: Iterable[int]) -> CallSite:
    """Return the call in a row of the table, with operation, sizes and types, as the place of these ranks."""
    table = recording.table
    shape = recording.shapes[int(table.shape[row])]
    sizes = " ".join(str(list(size)) for size in (shape.inputs or shape.outputs)[:4])
    parts = (operation_name(recording.ops[int(table.op[row])]), sizes, recording.dtypes[int(table.dtype[row])])
    return CallSite(
        tuple(sorted(ranks)), " ".join(part for part in parts if part), recording.stacks[int(table.stack[row])]
    )
