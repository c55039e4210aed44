"""What crosses the door of the scan room: hits, and what is remembered of each source."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

# A line longer than this is looked at in pieces, so that one endless line cannot fill the memory.
MAX_LINE = 1 << 16
# Pieces of an overlong line overlap by this much; no literal is longer.
OVERLAP = 1 << 8
# A file is cut into spans of this size; the storm breaker counts within one.
SPAN = 1 << 23
# Hit lines of one span that are all looked at; beyond, the rest of the span is sampled.
SPAN_LINES = 1024
# In the sampled rest, every literal counts once per slice of this many bytes.
SLICE = 1 << 16
# Of hit lines with the same literals and the same writer, this many are kept from the start and from the end.
KEEP = 8
# Where a literal of one signature says what the lines are about and the writer is known, they are more alike.
KEEP_ALIKE = 1
# The writer is told from this many bytes at the start of a line.
WRITER_BYTES = 256

# Of a stream, the cells of this size around its hits are remembered: LOOK_BACK before and LOOK_AHEAD after are always
# there.
CELL = 1 << 18
LOOK_BACK = CELL
LOOK_AHEAD = 2 * CELL

HEAD = 1 << 13
TAIL = 1 << 15

# Given the bytes of a hit line, names its writer as far as can be told in a microsecond.
WriterKey = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Hit:
    """A line (or a piece of an overlong one) that holds literals. `more` counts lines of the same kind that were not
    kept.
    """

    start: int
    end: int
    literals: tuple[int, ...]
    more: int = 0


Place = tuple[int, Collection[int]]
"""Where something ends that may be one of these literals."""


class Gate(Protocol):
    """A compiled set of literals.

    `find` gives places in `data[start:stop]`, ascending, so that every literal there has one, with it among those
    named, in its line
    (there may be others); it may stop after `limit` of them; `sure` asks for slower search with fewer others. `first`
    gives for each
    literal in the range its first (end, literal), ascending. `inside` gives the literals in one line, ascending:
    engines must agree on
    that; `among` are those named at its places, if all are known. `for_thread` gives a gate that one thread may use
    beside others.
    """

    def for_thread(self) -> Gate: ...

    def find(
        self, data: bytearray | bytes, start: int, stop: int, limit: int, *, sure: bool = False
    ) -> list[Place]: ...

    def first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]: ...

    def inside(self, line: bytes, among: Collection[int] | None = None) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes of a stream around its hits, for what cannot be read twice."""

    offset: int
    packed: bytes


@dataclass(frozen=True, slots=True)
class Scanned:
    """Everything the scan remembers of one source."""

    hits: tuple[Hit, ...]
    size: int
    head: bytes
    tail: bytes
    sampled: int = 0
    matched: int = 0
    windows: tuple[Window, ...] = ()
    newlines: tuple[tuple[int, int], ...] = ()
    dropped_windows: int = 0
