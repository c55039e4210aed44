"""What one report of NCCL's RAS subsystem says: processes that do not answer, and ranks of a communicator that differ.

Ranks are those within the communicator. Counts are the operations that a rank has launched, not those that ended.
"""

from __future__ import annotations

from triage.base.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RasProcess:
    """A process and its GPU, as far as the report lists them; `rank` is that in the communicator where it stands."""

    rank: int | None = None
    host: str = ""
    pid: int | None = None
    gpu: str = ""

    @property
    def key(self) -> tuple[str, int | None, str]:
        """What is equal in all communicators of the process."""
        return self.host, self.pid, self.gpu

    def __str__(self) -> str:
        gpu = f"GPU {self.gpu} of " if self.gpu else ""
        return f"{gpu}process {self.pid} on {self.host}" if self.pid is not None else f"rank {self.rank}"


@dataclass(frozen=True, slots=True)
class RasPart:
    """`size` ranks with one value (a count, a status, an error); `members` are empty where they are not listed."""

    value: str
    size: int
    members: tuple[RasProcess, ...] = ()

    @property
    def count(self) -> int:
        """The value as a count of operations."""
        return int(self.value)


@dataclass(frozen=True, slots=True)
class RasSplit:
    """In what the ranks of a communicator differ: `subject` is `status`, `error` or the name of an operation."""

    subject: str
    parts: tuple[RasPart, ...]

    @property
    def is_count(self) -> bool:
        """Whether the values are counts of operations."""
        return self.subject not in ("status", "error")


@dataclass(frozen=True, slots=True)
class RasCommunicator:
    """A communicator with something to report. `size` is 0 where it is not stated; `missing` gave no data."""

    name: str
    hash: str
    size: int = 0
    splits: tuple[RasSplit, ...] = ()
    missing: tuple[RasProcess, ...] = ()
    members: tuple[RasProcess, ...] = ()

    @property
    def label(self) -> str:
        """How a sentence calls it."""
        return f"communicator {self.name} ({self.hash})" if self.name else f"communicator {self.hash}"
