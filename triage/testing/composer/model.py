"""What a composed job is made of: a world of ranks, a story of what happened, and the files that a layout makes of it.

A fault tells a `Story`: lines with their writers and times, how each process ended, and the `Truth`. A layout writes
the lines to log files as one launcher does and adds the launcher's own lines. A dressing rewrites each log file as a
collector or a container runtime does. The three know nothing of each other, so each can be combined with each.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

WriterKind = Literal["rank", "kernel", "scheduler", "launcher"]
Stream = Literal["stdout", "stderr"]
Backend = Literal["nccl", "gloo", "hccl"]
LogStyle = Literal["bare", "stamped", "ranked", "loguru", "pid"]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes a line: a rank by its global number, the kernel of a node by its index, the scheduler (number 0), or
    the launcher on a node.
    """

    kind: WriterKind
    number: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """Text of one or several lines (without a last newline), `at` seconds after the start of the job.

    `is_cause`: the failure can be told from this line alone or with others so marked. `says_rank`: the text itself
    names the global rank that wrote it; `names_ranks` are other ranks that it names as those at fault; `says_host`: it
    names the host that failed.
    """

    at: float
    writer: Writer
    text: str
    stream: Stream = "stderr"
    is_cause: bool = False
    says_rank: bool = False
    says_host: bool = False
    names_ranks: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Exit:
    """How the process of a rank ended by itself: an exit code, or a negative signal number, `at` seconds."""

    rank: int
    status: int
    at: float


@dataclass(frozen=True, slots=True)
class Truth:
    """What happened. `roots`: signature ids that are right (None: a failure that no signature knows).

    `ranks`: global ranks where it began, empty if it is no rank's; `nodes`: indexes of the nodes where it began, empty
    if it is no node's. `verdicts`: the right ones. `by_comparison`: the ranks show only by comparing what all ranks
    wrote, so the ranks of all lines must be known. `are_ranks_hidden`: no line shows the ranks.
    `roots_without_ranks` are right too where they are not known: what the lines say each for itself.
    """

    verdicts: frozenset[str]
    roots: frozenset[str | None] = frozenset()
    ranks: frozenset[int] = frozenset()
    nodes: frozenset[int] = frozenset()
    by_comparison: bool = False
    are_ranks_hidden: bool = False
    roots_without_ranks: frozenset[str | None] = frozenset()


@dataclass(frozen=True, slots=True)
class Story:
    """What happened in one job.

    `exits` has the processes that ended by themselves with a failure, in this order; the launcher stops all others. In
    a healthy story it is empty and all ranks end with exit code 0. `stopped_by`: somebody outside ended all processes.
    `artifacts`: what an engineer stored of the job, by relative path.
    """

    lines: tuple[Line, ...]
    truth: Truth
    exits: tuple[Exit, ...] = ()
    stopped_by: Literal["", "scheduler", "user"] = ""
    artifacts: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """The processes of one job. All that must not matter is drawn at random.

    `hosts` in the order of the nodes, each with `per_node` ranks in blocks; `pids` by rank; `start` in seconds since
    1970; `zone`: seconds by which local timestamps are ahead of UTC; `introduction`: how ranks introduce themselves.
    """

    hosts: tuple[str, ...]
    per_node: int
    pids: tuple[int, ...]
    start: float
    zone: int
    script: str
    backend: Backend
    log_style: LogStyle
    torch: str = "2.6.0"
    nccl: str = "2.21.5"
    python: str = "3.11"
    introduction: str = "rank {rank} of {size} on {host}, pid {pid}"

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.hosts) * self.per_node

    @property
    def ranks(self) -> range:
        """All global ranks."""
        return range(self.size)

    def node(self, rank: int) -> int:
        """Return the index of the node of a rank."""
        return rank // self.per_node

    def host(self, rank: int) -> str:
        """Return the name of the host of a rank."""
        return self.hosts[self.node(rank)]

    def local(self, rank: int) -> int:
        """Return the local rank."""
        return rank % self.per_node

    def on_node(self, node: int) -> range:
        """Return the ranks of a node."""
        return range(node * self.per_node, (node + 1) * self.per_node)

    def introduce(self, rank: int, size: int | None = None) -> str:
        """Return what a rank prints about itself when it starts: rank, world size and host, mostly also its pid."""
        values = {"rank": rank, "local": self.local(rank), "size": size or self.size, "host": self.host(rank)}
        return self.introduction.format(**values, pid=self.pids[rank])

    def bus(self, rank: int) -> str:
        """Return the PCI address of the GPU of a rank, as the kernel writes it, without the function."""
        return f"0000:{(0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)[self.local(rank) % 8]:02x}:00"

    def stamp(self, at: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
        """Return the local time `at` seconds after the start; `%f` is six digits, `%L` three."""
        moment = self.start + at
        part = f"{moment % 1:.6f}"[2:8]
        return time.strftime(form.replace("%f", part).replace("%L", part[:3]), time.gmtime(moment + self.zone))


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log file as it stands there; dressings know when, where and to which stream it was written."""

    at: float
    text: str
    host: str = ""
    stream: Stream = "stderr"


@dataclass(frozen=True, slots=True)
class Written:
    """The files that a layout made. `logs`: by path, lines in their order. `artifacts`: files that are no logs.

    `labels_ranks`: the global rank of each line of a rank can be told from prefixes, files or names (perhaps joined
    with other lines). `names_hosts`: so can the host. `reports_exits`: the launcher says which rank ended with which
    status. `drops_tags`: tracebacks lose the rank that torch puts before their lines. `host_names` has for a host other
    names that stand in the files, as that of its pod.
    """

    logs: Mapping[str, tuple[LogLine, ...]]
    labels_ranks: bool
    names_hosts: bool
    reports_exits: bool
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    drops_tags: bool = False
    host_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expected:
    """What the files of a composed job allow to be known; None: a rank or host must not be stated wrongly.

    `true_ranks` and `true_hosts` are the truth even where it cannot be known; `all_ranks` and `all_hosts` are those of
    the job. `host_names`: another name of a host to the host.
    """

    verdicts: frozenset[str]
    roots: frozenset[str | None]
    ranks: frozenset[int] | None
    hosts: frozenset[str] | None
    true_ranks: frozenset[int]
    true_hosts: frozenset[str]
    all_ranks: frozenset[int] = frozenset()
    all_hosts: frozenset[str] = frozenset()
    host_names: Mapping[str, str] = field(default_factory=dict)


def split_lines(lines: tuple[Line, ...]) -> Iterator[Line]:
    """Yield one Line for each line of text, ordered by time; lines with equal times keep their order."""
    import dataclasses

    for line in sorted(lines, key=lambda line: line.at):
        for part in line.text.split("\n"):
            yield dataclasses.replace(line, text=part)
