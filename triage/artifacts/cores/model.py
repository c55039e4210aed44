"""What our own reader finds in a core file, before anybody unwinds a stack."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from triage.artifacts.interface import ArtifactError


class CoreError(ArtifactError):
    """A core file cannot be read."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A range of the process's memory: `start` to `end` are addresses, the first `kept` bytes of it lie at `offset` of
    the file.
    """

    start: int
    end: int
    offset: int
    kept: int
    flags: int

    @property
    def executable(self) -> bool:
        return bool(self.flags & 1)

    @property
    def writable(self) -> bool:
        return bool(self.flags & 2)


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapped range of a file, as the kernel's NT_FILE note says it; `offset` is in the file, in bytes."""

    start: int
    end: int
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class Module:
    """A program or library. `bias` is what is added to its own addresses; `build_id` in hexadecimal, "" when the core
    does not hold it.
    """

    path: str
    start: int
    end: int
    bias: int
    build_id: str

    @property
    def deleted(self) -> bool:
        return self.path.endswith(" (deleted)")


@dataclass(frozen=True, slots=True)
class Registers:
    """The registers of one thread that say where it was; `link` is the return address that aarch64 keeps in a register.

    `lock`: the address of a lock with waiters that it asked the kernel to wait for.
    """

    tid: int
    pc: int
    sp: int
    fp: int
    link: int = 0
    lock: int = 0


@dataclass(frozen=True, slots=True)
class Core:
    """The notes of a core file. The first thread is the one that got the signal."""

    machine: str
    size: int
    expected_size: int
    pid: int | None
    command: str
    program: str
    signal: int
    code: int | None
    address: int | None
    sender: int | None
    threads: tuple[Registers, ...]
    segments: tuple[Segment, ...]
    mappings: tuple[Mapping, ...]
    modules: tuple[Module, ...]
    executable: Module | None
    notes: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        return self.size < self.expected_size

    def module_at(self, address: int) -> Module | None:
        """The module that holds an address."""
        return next((module for module in self.modules if module.start <= address < module.end), None)

    def segment_at(self, address: int) -> Segment | None:
        index = bisect_right(self.segments, address, key=lambda segment: segment.start) - 1
        found = self.segments[index] if index >= 0 else None
        return found if found is not None and address < found.end else None

    def mapping_at(self, address: int) -> Mapping | None:
        return next((mapping for mapping in self.mappings if mapping.start <= address < mapping.end), None)
