"""What the headers and notes of a core file contain, before a stack is unwound."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from triage.artifacts.interface import ArtifactError


class CoreError(ArtifactError):
    """A core file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A range of the process's memory.

    `start` and `end` are addresses; the file holds the first `stored_size` bytes of the range at `offset`.
    """

    start: int
    end: int
    offset: int
    stored_size: int
    flags: int

    @property
    def is_executable(self) -> bool:
        """Whether the range holds code."""
        return bool(self.flags & 1)

    @property
    def is_writable(self) -> bool:
        """Whether the process may write to the range."""
        return bool(self.flags & 2)


def find_segment(segments: Sequence[Segment], address: int) -> Segment | None:
    """Return the segment that holds an address; segments are in the order of their addresses."""
    index = bisect_right(segments, address, key=lambda segment: segment.start) - 1
    return segments[index] if index >= 0 and address < segments[index].end else None


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapped range of a file, from the kernel's NT_FILE note; `offset` is in the file, in bytes."""

    start: int
    end: int
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class Module:
    """A program or library.

    `bias` is added to its own addresses; `build_id` is hexadecimal, "" when the core does not hold it.
    """

    path: str
    start: int
    end: int
    bias: int
    build_id: str

    @property
    def is_deleted(self) -> bool:
        """Whether the file was deleted while the process ran."""
        return self.path.endswith(" (deleted)")


@dataclass(frozen=True, slots=True)
class Registers:
    """The registers of one thread that show where it was.

    `link` is the return address, which aarch64 holds in a register; `lock` the address of a lock with waiters that the
    thread asked the kernel to wait for, 0 for none.
    """

    tid: int
    pc: int
    sp: int
    fp: int
    link: int = 0
    lock: int = 0


@dataclass(frozen=True, slots=True)
class Core:
    """The contents of a core file. The first thread is the one that got the signal; `notes` name what is damaged."""

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
    def is_truncated(self) -> bool:
        """Whether the file is shorter than its headers say."""
        return self.size < self.expected_size

    def module_at(self, address: int) -> Module | None:
        """Return the module that holds an address."""
        return next((module for module in self.modules if module.start <= address < module.end), None)

    def segment_at(self, address: int) -> Segment | None:
        """Return the segment that holds an address."""
        return find_segment(self.segments, address)

    def mapping_at(self, address: int) -> Mapping | None:
        """Return the mapped file that holds an address."""
        return next((mapping for mapping in self.mappings if mapping.start <= address < mapping.end), None)
