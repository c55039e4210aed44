"""Public types of the scan: hits, the protocol of literal matchers, and the result for one source."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from triage.base.lazy_dataclass import dataclass
from triage.scan.edges import Edges

# A longer line is searched in pieces, so that one endless line cannot fill the memory.
MAX_LINE = 1 << 16
# Pieces of an overlong line overlap by this many bytes; no literal is longer.
OVERLAP = 1 << 8
# A file is cut into spans of this size; the limit on hit lines counts within one, and each has a digest of its own. If
# it changes, the ids of jobs with larger files change.
SPAN = 1 << 23
# Of a span, hit lines are examined until this many had the same literals and the same writer as an earlier one; the
# rest is sampled.
SPAN_LINES = 1024
# The first lines of writers do not count there, so that many ranks that fail at once all count. They have limits of
# their own, which bound the memory: so many in a span, and in a file that has FILE_KINDS already, so many more in each
# further span.
SPAN_KINDS = 1 << 15
FILE_KINDS = 1 << 16
MORE_KINDS = 1 << 12
# In the sampled rest, each literal counts once per slice of this many bytes.
SLICE = 1 << 16
# Of hit lines with the same literals and the same writer, this many of the first and of the last are returned.
KEEP_PER_END = 8
# The same, where the writer is known and a literal is specific to a signature: such lines are more alike.
KEEP_PER_END_ALIKE = 1
# The writer is read from this many bytes at the start of a line.
WRITER_BYTES = 256

# Of a stream, the cells of this size around its hits are saved, at least LOOK_BACK before and LOOK_AHEAD after each.
CELL = 1 << 18
LOOK_BACK = CELL
LOOK_AHEAD = 2 * CELL

WriterKey = Callable[[bytes], bytes]
"""Returns a key for the writer of a hit line, from its bytes, within about a microsecond."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A line (or a piece of an overlong one) that contains literals.

    `start` and `end` are byte offsets. `omitted` counts the lines of the same kind that are left out after this one.
    """

    start: int
    end: int
    literals: tuple[int, ...]
    omitted: int = 0


PossibleMatch = tuple[int, Collection[int]]
"""The offset at which a match ends, and the literals that it may be."""


class LiteralMatcher(Protocol):
    """A compiled set of literals, numbered in their order."""

    def for_thread(self) -> LiteralMatcher:
        """Return a matcher that one thread may use while others use theirs."""

    def prepare(self, sample: bytes) -> None:
        """Get ready for many threads or forked processes; `sample` is from all over what will be searched."""

    def find(
        self, data: bytearray | bytes, start: int, stop: int, limit: int, *, exact: bool = False
    ) -> list[PossibleMatch]:
        """Return possible matches in `data[start:stop]`, ascending.

        Every literal there has a match in its line that names it; a match may also name others. The search may stop
        after `limit` matches. `exact` selects a slower search with fewer false matches.
        """

    def find_first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        """Return (end of its first match, literal) for each literal in `data[start:stop]`, ascending."""

    def literals_in(self, line: bytes, candidates: Collection[int] | None = None) -> tuple[int, ...]:
        """Return the literals in one line, ascending; all engines agree on them.

        `candidates` are those that the possible matches of this line name, if all of these are known.
        """


@dataclass(frozen=True, slots=True)
class SavedCell:
    """A cell of a stream near its hits, compressed by zlib, since a stream cannot be read twice."""

    offset: int
    packed: bytes


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The scan of one source.

    `edges` are its first and last bytes, `matched` counts hit lines, `sampled` the bytes that were only
    sampled. `digest` is that of all bytes that were read, empty while the text still grows. Of a stream, `saved_cells`
    hold what lies around its hits, `newlines` are (offset, newlines before it) for each cell, and `dropped_cells`
    counts those that the memory limit left out.
    """

    hits: tuple[Hit, ...]
    size: int
    edges: Edges
    sampled: int = 0
    matched: int = 0
    saved_cells: tuple[SavedCell, ...] = ()
    newlines: tuple[tuple[int, int], ...] = ()
    dropped_cells: int = 0
    digest: str = ""

    @property
    def head(self) -> bytes:
        """Its first bytes."""
        return self.edges.head

    @property
    def tail(self) -> bytes:
        """Its last bytes."""
        return self.edges.tail
