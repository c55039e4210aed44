"""Split one segment of a source: read chunks of whole lines, route them, append each writer's lines to a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.records import line_cuts
from triage.split.launcher_layout import LauncherLayout
from triage.split.part_files import MemorySpans, PartFiles, address_of
from triage.split.router import RoutedChunk, Router, WriterKey
from triage.split.unwrapped_stream import Format, UnwrappedStream

if TYPE_CHECKING:
    from triage.split.part_files import Addresses
    from triage.split.prefix_automaton import Ints

# A chunk fits the processor's cache. Chunks are written together, so that every writer gets many lines at once.
CHUNK = 1 << 19
WRITE_SIZE = 8 << 20
_NEWLINE = b"\n"
_FIRST_CHUNK = 1 << 15  # small, so that few lines are parsed one by one before their prefixes are known
LONGEST_LINE = 16 << 20
_NO_LIMIT = 1 << 62


@dataclass
class Tally:
    """The result of one segment.

    `parts`: writer, path, bytes and lines of each part. `second_writers`: places where a line was split because a
    second writer begins. `joined_pieces`: pieces joined to the line that they continue. `long_lines`: lines too long to
    parse. `unwrapped`: lines that came out of a wrapped log, less those that went in. `learned`: what prefixes state
    about ranks. `differing`: a prefix, its rank, and the other rank that lines behind it name.
    """

    keys: list[WriterKey] = field(default_factory=list)
    parts: list[tuple[WriterKey, str, int, int]] = field(default_factory=list)
    lines: int = 0
    bytes: int = 0
    second_writers: int = 0
    joined_pieces: int = 0
    long_lines: int = 0
    unwrapped: int = 0
    left_out: int = 0
    learned: list[Origin] = field(default_factory=list)
    differing: list[tuple[str, int, int]] = field(default_factory=list)


class SegmentSplitter:
    """Split the chunks of a segment. `is_wanted` tells which writers are written; lines of others are left out."""

    def __init__(self, router: Router, parts: PartFiles, is_wanted: Callable[[WriterKey], bool]) -> None:
        self._router = router
        self._parts = parts
        self._is_wanted = is_wanted
        self._left_out_keys: list[bool] = []
        self._long_line_key = 0
        self._routed: list[tuple[bytes, RoutedChunk]] = []
        self._routed_bytes = 0
        self._waiting = b""
        self.tally = Tally()

    def feed(self, data: bytes) -> None:
        """Take the next chunk of whole lines; it waits for the one after it where lines may continue there."""
        if self._router.layout.cuts_lines:
            data, self._waiting = self._waiting, data
        if data:
            self._route(data, self._waiting)

    def _route(self, data: bytes, ahead: bytes) -> None:
        routed = self._router.route(data, ahead[: line_cuts.REACH])
        self.tally.bytes += len(data)
        self.tally.lines += routed.lines
        self.tally.second_writers += len(routed.unterminated)
        self.tally.joined_pieces += len(routed.partial)
        self._routed.append((data, routed))
        self._routed_bytes += len(data)
        if self._routed_bytes >= WRITE_SIZE:
            self._write()

    def _write(self) -> None:
        """Write the routed chunks: to each writer its lines in order."""
        if not self._routed:
            return
        import numpy as np

        columns = [_memory_spans(data, routed) for data, routed in self._routed]
        keys, begins, sizes = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(keys.astype(np.uint16) if keys.max(initial=0) < 1 << 16 else keys, kind="stable")
        lengths = sizes.take(order)
        spans = MemorySpans(begins.take(order), lengths)
        counts = np.bincount(keys)
        present = np.flatnonzero(counts)
        stops = np.cumsum(counts.take(present))
        bytes_of = np.diff(np.cumsum(lengths).take(stops - 1), prepend=np.uintp(0)).tolist()
        lines_of = np.zeros(len(counts), np.intp)
        for _, routed in self._routed:
            partial = np.bincount(routed.keys.take(routed.partial), minlength=len(counts))
            lines_of += np.bincount(routed.keys, minlength=len(counts)) - partial
        at = 0
        for key, stop, size, lines in zip(
            present.tolist(), stops.tolist(), bytes_of, lines_of.take(present).tolist(), strict=True
        ):
            if self._is_left_out(key):
                self.tally.left_out += lines
            else:
                self._parts.append_spans(key, spans, at, stop, size, lines)
            at = stop
        self._routed.clear()
        self._routed_bytes = 0

    def _is_left_out(self, key: int) -> bool:
        while len(self._left_out_keys) < len(self._router.keys):
            self._left_out_keys.append(not self._is_wanted(self._router.keys[len(self._left_out_keys)]))
        return self._left_out_keys[key]

    def feed_long(self, data: bytes, is_first: bool) -> None:
        """Take a piece of a line that is too long for memory: its first piece decides the writer."""
        self._write_all()
        self.tally.bytes += len(data)
        if is_first:
            routed = self._router.route(data)
            self._long_line_key = int(routed.keys[0])
            data = data[int(routed.starts[0]) :]
            self.tally.lines += 1
            self.tally.long_lines += 1
        if self._is_left_out(self._long_line_key):
            self.tally.left_out += is_first
        else:
            self._parts.append(self._long_line_key, data, int(is_first))

    def _write_all(self) -> None:
        if self._waiting:
            data, self._waiting = self._waiting, b""
            self._route(data, b"")
        self._write()

    def finish(self) -> Tally:
        """Write what is left, and return the tally."""
        self._write_all()
        self.tally.keys = list(self._router.keys)
        self.tally.learned = list(dict.fromkeys(self._router.learned))
        self.tally.differing = sorted(self._router.differing)
        self.tally.parts = [
            (self._router.keys[key], str(self._parts.path(key)), size, lines)
            for key, size, lines in self._parts.sizes()
        ]
        return self.tally


def _memory_spans(data: bytes, routed: RoutedChunk) -> tuple[Ints, Addresses, Addresses]:
    """Return writer, address and length of every piece, with a newline behind each piece that needs one."""
    import numpy as np

    keys, ends = routed.keys, routed.ends
    if routed.partial:
        ends = ends.copy()
        ends[routed.partial] -= 1
    begins = routed.starts.astype(np.uintp) + np.uintp(address_of(data))
    sizes = (ends - routed.starts).astype(np.uintp)
    if routed.unterminated:
        behind = np.array(routed.unterminated) + 1
        begins = np.insert(begins, behind, address_of(_NEWLINE))
        sizes = np.insert(sizes, behind, 1)
        keys = np.insert(keys, behind, keys.take(routed.unterminated))
    return keys, begins, sizes


def read_chunks(stream: BinaryIO | UnwrappedStream, limit: int | None = None) -> Iterator[tuple[bytes, bool, bool]]:
    """Yield whole lines, about CHUNK bytes at a time, until `limit` bytes, as (data, False, False).

    A line longer than LONGEST_LINE comes in pieces, as (data, True, is the first piece).
    """
    rest = b""
    left = limit if limit is not None else _NO_LIMIT
    in_long_line = False
    size = _FIRST_CHUNK
    while left > 0 and (data := stream.read(min(size, left))):
        left -= len(data)
        size = min(CHUNK, size * 2)
        if in_long_line:
            stop = data.find(b"\n") + 1
            yield data[: stop or len(data)], True, False
            in_long_line = not stop
            data = data[stop:] if stop else b""
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut], False, False
            rest = data[cut:]
        else:
            rest += data
        if len(rest) > LONGEST_LINE:
            yield rest, True, True
            rest, in_long_line = b"", True
    if rest:
        yield rest, False, False


@dataclass(frozen=True)
class SegmentPlan:
    """How to split a segment. `sole_writer` wrote all of it, where that is known."""

    layout: LauncherLayout
    job: JobMap
    parts: PartFiles
    keep_prefix: bool
    is_wanted: Callable[[WriterKey], bool]
    sole_writer: WriterKey | None = None
    format: Format = ""


def split_segment(
    source: str, stream: BinaryIO, limit: int | None, plan: SegmentPlan, advance: Callable[[int], None]
) -> Tally:
    """Read `stream` (up to `limit` bytes), and write its parts."""
    if plan.sole_writer is not None:
        return _copy(stream, limit, plan, plan.sole_writer, advance)
    splitter = SegmentSplitter(Router(source, plan.layout, plan.job, plan.keep_prefix), plan.parts, plan.is_wanted)
    unwrapped = UnwrappedStream(stream, plan.format) if plan.format else None
    for data, is_long, is_first in read_chunks(stream, limit) if unwrapped is None else read_chunks(unwrapped):
        if is_long:
            splitter.feed_long(data, is_first)
        else:
            splitter.feed(data)
        advance(len(data))
    tally = splitter.finish()
    if unwrapped is not None:
        tally.lines, tally.unwrapped = unwrapped.lines_in, unwrapped.lines_out - unwrapped.lines_in
    return tally


def _copy(
    stream: BinaryIO, limit: int | None, plan: SegmentPlan, key: WriterKey, advance: Callable[[int], None]
) -> Tally:
    """Copy a segment that one writer wrote."""
    tally, last = Tally(keys=[key]), b"\n"
    left = limit if limit is not None else _NO_LIMIT
    is_wanted = plan.is_wanted(key)
    while left > 0 and (data := stream.read(min(CHUNK, left))):
        left -= len(data)
        tally.bytes += len(data)
        lines = data.count(b"\n")
        tally.lines += lines
        if is_wanted:
            plan.parts.append(0, data, lines)
        last = data[-1:]
        advance(len(data))
    if last != b"\n":
        tally.lines += 1
        if is_wanted:
            plan.parts.append(0, b"", 1)
    tally.left_out = 0 if is_wanted else tally.lines
    if is_wanted and tally.lines:
        tally.parts = [(key, str(plan.parts.path(0)), size, lines) for _, size, lines in plan.parts.sizes()]
    return tally
