"""What reasoning reads of a fact, typed, by kind of fact. `Evidence.fields` holds the texts that signatures match."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, Literal

from triage.base.lazy_dataclass import dataclass
from triage.model.ras import RasCommunicator, RasProcess

Chain = Literal["final", "cause", "context"]
"""Place of an exception in its traceback: raised last, named as the cause, or being handled when the next came."""

Basis = Literal["measured", "absence"]
"""What an inference rests on: a dump, a number or a stack, or only that somebody wrote nothing."""

RankBasis = Literal[
    "",
    "stated",
    "pid",
    "device",
    "file name",
    "same file",
    "local rank",
    "exit status",
    "only rank on its host",
    "ranks of its pod",
    "another pid",
    "every rank",
]
"""The step that gave a fact its rank, the most direct first; empty: the prefix of its own line. See docs/ranks.md."""


class Detail:
    """One of the dataclasses below; `DETAILS` has them by name."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@dataclass(frozen=True, slots=True)
class ExitDetail(Detail):
    """The end of a process. `exit_code` is None where only the signal is known.

    `first_observed`: the launcher's table says that it saw this failure first.
    """

    exit_code: int | None = None
    signal: str = ""
    stopped_by_agent: bool = False
    first_observed: bool = False

    @property
    def is_own_failure(self) -> bool:
        """Whether the process failed, and its launcher did not stop it."""
        return bool(self.exit_code) and not self.stopped_by_agent


@dataclass(frozen=True, slots=True)
class ExceptionDetail(Detail):
    """A Python exception. `type` is the last part of its name, `chain` empty where no exception line is left.

    `nonfatal`: it ended no process (`ignored` by Python, or it ended a `thread`). `continued`: its rank made progress
    afterwards. `ends_writer`: nothing of its writer follows in its file. `quoted_by_launcher`: the rank printed it
    itself before. `interleaved`: lines of several writers were mixed. `truncated`: its last line is missing.
    `spawn_index`: number of the process of torch.multiprocessing.spawn. `secondary`: another exception of its chain is
    the failure. `caught`: as `Block` has it.
    """

    type: str = ""
    chain: Chain = "final"
    nonfatal: str = ""
    continued: bool = False
    ends_writer: bool = False
    quoted_by_launcher: bool = False
    interleaved: bool = False
    truncated: bool = False
    spawn_index: int | None = None
    secondary: bool = False
    caught: bool = False


@dataclass(frozen=True, slots=True)
class CrashDetail(Detail):
    """A native crash, a core or a fatal error of Python. `kind` is that of the crash point, empty without a stack."""

    signal: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class KernelDetail(Detail):
    """A line of the kernel: the PCI address of the GPU and the Xid that it names, if any."""

    pci_address: str = ""
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class SchedulerDetail(Detail):
    """A line of the scheduler: the nodes that it lost, as the scheduler lists them (`node[2-4,8]`)."""

    lost_nodes: str = ""


@dataclass(frozen=True, slots=True)
class StackDetail(Detail):
    """What a live process was doing: `state` is a kind of `stacks.live`, `phrase` says it in words, `key` is its stack
    as it is compared with others. `main` names the main thread of a process without a pid. `beside` is the collective
    that another thread of the program is in while the main one waits in its own.
    """

    state: str
    phrase: str
    op: str = ""
    place: str = ""
    remark: str = ""
    key: tuple[str, ...] = ()
    pid: int | None = None
    age: int | None = None
    main: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class FlightDetail(Detail):
    """A flight recorder's dump: whether its rank waits in a call, or (`undecided`) all dumps together show no fault.

    `call` is the first open call of the rank, as `all_reduce #7 of default_pg`; empty where there is none.
    """

    waits: bool = False
    call: str = ""
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class EndingDetail(Detail):
    """The last lines of a writer that its program died with, recognised by their form.

    `form` is the name of a form of `evidence.endings`, `runtime` the family that prints it. `strength`: `strong` where
    any program prints the form only when it fails; `weak` where it counts only as the last lines of a rank; `unlike`
    for lines of a new shape without any term of failing, which are no failure by themselves. `first` is the offset of
    the first of these lines. `alone`: no other fact of its source stands among them.
    """

    form: str
    runtime: str
    strength: Literal["strong", "weak", "unlike"]
    first: int = 0
    alone: bool = False


@dataclass(frozen=True, slots=True)
class InferenceDetail(Detail):
    """A conclusion. `evidence_kind` is the kind of fact that it rests on, `waiting` ranks wait for those it names.

    `rank_state` is what it says about the ranks that it names: they are `stalled` or `silent`, or nothing of the kind.
    `uncertainty` says which other explanation the evidence allows; it is empty where it allows none.
    """

    rule: str
    basis: Basis = "measured"
    evidence_kind: str = ""
    waiting: tuple[int, ...] = ()
    rank_state: Literal["", "stalled", "silent"] = ""
    uncertainty: str = ""


@dataclass(frozen=True, slots=True)
class RasDetail(Detail):
    """A report of NCCL's RAS subsystem: numbers of nodes, processes and GPUs (0: not stated), the communicators with
    something to report, processes that are `dead` or gave no answer (`silent`), and timeouts of RAS itself.

    `stamp` differs between two reports: when RAS answered, or how long that took.
    """

    nodes: int = 0
    processes: int = 0
    gpus: int = 0
    communicators: tuple[RasCommunicator, ...] = ()
    dead: tuple[RasProcess, ...] = ()
    silent: tuple[RasProcess, ...] = ()
    timeouts: int = 0
    stamp: str = ""

    @property
    def shows_trouble(self) -> bool:
        """Whether anything differs between ranks or is missing."""
        return bool(self.dead or self.silent or self.timeouts) or any(
            one.splits or one.missing for one in self.communicators
        )


@dataclass(frozen=True, slots=True)
class LaunchedCall:
    """A call as NCCL logs it when it is enqueued. `number` counts launches before it; `count` are elements."""

    number: int
    operation: str
    count: int
    data_type: int


@dataclass(frozen=True, slots=True)
class LaunchesDetail(Detail):
    """The last collectives that one process enqueued in one communicator, which has `size` ranks.

    `communicator` is a name that all its members share (empty: not known), `member` the rank in it (-1: not known),
    `total` how many collectives were logged in all (None: not all lines were read). `has_transfers`: it logged sends or
    receives there, too.
    """

    communicator: str
    size: int
    member: int = -1
    total: int | None = None
    has_transfers: bool = False
    calls: tuple[LaunchedCall, ...] = ()


DETAILS: dict[str, type[Detail]] = {
    kind.__name__: kind
    for kind in (
        ExitDetail,
        ExceptionDetail,
        CrashDetail,
        KernelDetail,
        SchedulerDetail,
        StackDetail,
        FlightDetail,
        EndingDetail,
        InferenceDetail,
        RasDetail,
        LaunchesDetail,
    )
}
