"""What a schedule is made of: process groups, and for each rank a program of calls, local activities and waits.

A `Schedule` says what each rank does; `play` says how far each one comes. A fault changes the programs of some ranks.
Ranks are global unless a name says otherwise. Times are seconds since the first step of the job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

FOREVER = math.inf
Activity = Literal[
    "compute",
    "data",
    "lock",
    "io",
    "compile",
    "evaluation",
    "checkpoint",
    "sleep",
    "item",
    "synchronize",
    "queue",
    "exit",
]
BYTES = {"Float": 4, "BFloat16": 2, "Half": 2, "Long": 8, "Int": 4, "Byte": 1, "Double": 8}


@dataclass(frozen=True, slots=True)
class Group:
    """A process group. `name` is unique in the job, `description` may be shared by groups of one mesh dimension."""

    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """One direction of a point-to-point exchange: what the rank of the call sends to or receives from `peer`."""

    is_send: bool
    peer: int
    numel: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call of torch.distributed.

    `operation` is the name that the Flight Recorder uses ("all_reduce", "_all_gather_base", "send", "coalesced").
    `group` is an index into the groups of the schedule. `numel` are the elements of the input. `holds_device`: the
    call is not `async_op`, so that all that this rank enqueues later waits for it on the device. `transfers` are those
    of a point-to-point call; several of them are one batch. `site` is the place in the training script.
    """

    operation: str
    group: int
    numel: int
    dtype: str = "Float"
    holds_device: bool = True
    transfers: tuple[Transfer, ...] = ()
    site: str = "train_step"

    @property
    def is_p2p(self) -> bool:
        """Whether it sends or receives."""
        return bool(self.transfers)


@dataclass(frozen=True, slots=True)
class Local:
    """What the host does outside of torch.distributed for `seconds`; FOREVER if it never comes back."""

    activity: Activity
    seconds: float


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of the program itself on the device; calls enqueued later start after it. FOREVER if it never ends."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Sync:
    """The host waits until its device has done all that is enqueued, as `loss.item()` does."""

    activity: Activity = "item"


@dataclass(frozen=True, slots=True)
class Leave:
    """The process ends here, with exit code 0."""


Step = Call | Local | Kernel | Sync | Leave
Program = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A job. `programs` by rank. `depth`: how many open calls a host may have before it waits to enqueue
    more; 1 if it waits in each call, as with TORCH_NCCL_BLOCKING_WAIT."""

    kind: str
    groups: tuple[Group, ...]
    programs: tuple[Program, ...]
    depth: int = 1000
    timeout: float = 600.0
    # What all start and never ends: (group, number) of collectives, (group, source, target, number) of transfers.
    broken: frozenset[tuple[int, ...]] = field(default_factory=frozenset)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.programs)


@dataclass(slots=True, eq=False)
class Record:
    """What became of one call of one rank.

    `collective`, `p2p` and `operation_id` are torch's counters of the group after the call; `number` counts the calls
    that must match each other. Times are None for what did not happen.
    """

    rank: int
    call: Call
    collective: int
    p2p: int
    operation_id: int
    enqueued: float
    pending: int = 0
    ready: float = 0.0
    started: float | None = None
    completed: float | None = None
    followers: list[Record] = field(default_factory=list)

    @property
    def sequence(self) -> int:
        """The number that torch prints of this call: that of collectives, or that of sends and receives."""
        return self.p2p if self.call.is_p2p else self.collective


@dataclass(frozen=True, slots=True)
class HostTrack:
    """Where a host was: spans (start, end, activity), and since `entered` it is in `activity` for ever.

    `has_left`: the process ended then. A host whose program is done waits in "exit" to destroy its groups.
    """

    spans: tuple[tuple[float, float, Activity], ...]
    entered: float
    activity: Activity
    has_left: bool = False

    def at(self, time: float) -> tuple[Activity, float]:
        """Return the activity at a time, and since when."""
        if time >= self.entered:
            return self.activity, self.entered
        for start, end, activity in reversed(self.spans):
            if start <= time:
                return (activity, start) if time <= end else ("compute", end)
        return "compute", 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a played schedule ended: the records of each rank in the order of its calls, and where the hosts were.

    `fired` is the time of the first timeout of a watchdog, None if there is none.
    """

    schedule: Schedule
    records: tuple[tuple[Record, ...], ...]
    hosts: tuple[HostTrack, ...]
    fired: float | None


@dataclass(frozen=True, slots=True)
class RankView:
    """What is true of one rank at one time: its calls until then, without what happened later."""

    rank: int
    time: float
    records: tuple[Record, ...]
    activity: Activity
    since: float
    has_left: bool

    @property
    def open(self) -> list[Record]:
        """The calls that did not complete, in the order in which they were enqueued."""
        return [record for record in self.records if record.completed is None]


def view(outcome: Outcome, rank: int, time: float) -> RankView:
    """Return the view of a rank at a time."""
    host = outcome.hosts[rank]
    records = tuple(_until(record, time) for record in outcome.records[rank] if record.enqueued <= time)
    return RankView(rank, time, records, *host.at(time), host.has_left and host.entered <= time)


def _until(record: Record, time: float) -> Record:
    started = None if record.started is None or record.started > time else record.started
    completed = None if record.completed is None or record.completed > time else record.completed
    if (started, completed) == (record.started, record.completed):
        return record
    return replace(record, started=started, completed=completed)
