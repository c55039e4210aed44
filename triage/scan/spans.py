"""Read what is scanned: plain files by spans, streams by cells, each into one buffer per thread."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from triage.base.content_digest import digest_list, start_digest
from triage.scan.edges import HEAD, TAIL, HeldEdges
from triage.scan.interface import (
    CELL,
    MAX_LINE,
    OVERLAP,
    SPAN,
    LiteralMatcher,
    SavedCell,
    ScanResult,
    WriterKey,
)
from triage.scan.lines import Collector, HitGroups, list_hits
from triage.sources.opened_file import OpenedFile

_MIN_CHUNK = 2 * MAX_LINE + 2 * OVERLAP


class LineFeeder:
    """Feed whole lines to a collector and keep the rest in the buffer; an overlong line is fed in pieces."""

    def __init__(self, collector: Collector, buffer: bytearray, offset: int) -> None:
        self.collector = collector
        self.buffer = buffer
        self.base = offset  # absolute offset of buffer[0]
        self.filled = 0
        self.line_start = offset
        self.overlap = 0  # so many bytes at the start of the buffer are the end of the piece before

    def free_space(self) -> memoryview:
        """Return the part of the buffer to write the next bytes to."""
        return memoryview(self.buffer)[self.filled :]

    def advance(self, count: int, *, final: bool = False) -> None:
        """Feed the complete lines after `count` more bytes were written to the buffer; all of it when `final`."""
        self.filled += count
        whole_lines_end = self.filled if final else self.buffer.rfind(b"\n", 0, self.filled) + 1
        if whole_lines_end:
            self.collector.feed(self.buffer, self.base, whole_lines_end, self.line_start, self.overlap)
            self._drop(whole_lines_end, overlap=0)
            self.line_start = self.base
        elif self.filled == len(self.buffer):
            self._feed_piece()

    def _feed_piece(self) -> None:
        whole = (self.base + self.filled - self.line_start) // MAX_LINE * MAX_LINE
        stop = self.line_start + whole - self.base
        self.collector.feed(self.buffer, self.base, stop, self.line_start, self.overlap)
        self._drop(stop - OVERLAP, overlap=OVERLAP)

    def _drop(self, count: int, *, overlap: int) -> None:
        rest = self.filled - count
        self.buffer[:rest] = self.buffer[count : self.filled]
        self.base += count
        self.filled = rest
        self.overlap = overlap


class SpanReader:
    """The scanner of one thread: a matcher and a buffer, both reused for every span."""

    def __init__(
        self, matcher: LiteralMatcher, writer: WriterKey, chunk_bytes: int, generic: frozenset[int] = frozenset()
    ) -> None:
        self.matcher = matcher
        self.writer = writer
        self.generic = generic
        self.buffer = bytearray(max(chunk_bytes, _MIN_CHUNK))

    def scan_span(self, file: OpenedFile, start: int, size: int) -> tuple[Collector, str]:
        """Scan the lines of `file` that start in [start, start + SPAN), the last one to its end.

        Returns their hits, and the digest of the bytes in exactly this range.
        """
        collector = Collector(self.matcher, self.writer, self.generic)
        stop = min(start + SPAN, size)
        digest = start_digest()
        begin = _first_line(file, start, stop, digest.update)
        feeder = LineFeeder(collector, self.buffer, stop if begin is None else begin)
        position, end = feeder.base, stop
        while position < end:
            free_space = feeder.free_space()
            count = file.read_into(free_space[: end - position], position)
            digest.update(free_space[: max(0, min(count, stop - position))])
            position += count
            if count == 0 or position >= end:
                end = _line_end(file, position, stop, size) if count and end == stop else position
            feeder.advance(count, final=position >= end)
        return collector, digest.hexdigest()

    def scan_stream(self, stream: BinaryIO) -> ScanResult:
        """Scan all of a stream and save the cells around its hits, since it cannot be read again."""
        return _StreamScan(self).run(stream)


def _first_line(file: OpenedFile, start: int, stop: int, on_skipped: Callable[[bytes], object]) -> int | None:
    """Return the start of the first line that starts in [start, stop), or None.

    `on_skipped` gets the bytes of the range before it, in order.
    """
    if start == 0:
        return 0
    position = start - 1
    while position < stop:
        data = file.read_at(min(1 << 16, stop - position), position)
        if not data:
            return None
        at = data.find(b"\n")
        skipped = data if at < 0 else data[: at + 1]
        on_skipped(skipped[max(0, start - position) :])
        position += len(skipped)
        if at >= 0:
            return position if position < stop else None
    return None


def find_line_behind(file: OpenedFile, start: int, stop: int) -> int | None:
    """Return the start of the first line that starts in [start, stop), or None if there is none."""
    return _first_line(file, start, stop, len)


def _line_end(file: OpenedFile, position: int, stop: int, size: int) -> int:
    """Return the end of the line that is open at `position`, the end of a span."""
    if file.read_at(1, position - 1) == b"\n" or position < stop:
        return position
    while position < size:
        data = file.read_at(1 << 16, position)
        if not data:
            return position
        at = data.find(b"\n")
        if at >= 0:
            return position + at + 1
        position += len(data)
    return position


class _StreamDigest:
    """The digest of a stream, made of the digests of its spans, as that of a plain file is."""

    def __init__(self) -> None:
        self._spans: list[str] = []
        self._digest = start_digest()
        self._size = 0

    def add(self, cell: bytes) -> None:
        """Add the next cell; a span is a whole number of cells."""
        if self._size == SPAN:
            self._spans.append(self._digest.hexdigest())
            self._digest, self._size = start_digest(), 0
        self._digest.update(cell)
        self._size += len(cell)

    def result(self) -> str:
        return digest_list([*self._spans, self._digest.hexdigest()])


class _StreamScan:
    """The scan of one stream, read once: cells around hits are saved compressed, newlines are counted."""

    MAX_PACKED = 1 << 26

    def __init__(self, reader: SpanReader) -> None:
        self.collector = Collector(reader.matcher, reader.writer, reader.generic)
        self.touched_cells = self.collector.touched_cells = set[int]()
        self.feeder = LineFeeder(self.collector, reader.buffer, 0)
        self.pending: dict[int, bytes] = {}  # cells that may still be needed
        self.saved: dict[int, bytes] = {}
        self.packed = 0
        self.dropped_cells = 0

    def run(self, stream: BinaryIO) -> ScanResult:
        size = lines = 0
        head = tail = b""
        newlines: list[tuple[int, int]] = []
        digest = _StreamDigest()
        for number, cell in enumerate(_cells(stream)):
            digest.add(cell)
            self.pending[number] = cell
            head = head or cell[:HEAD]
            tail = (tail + cell)[-TAIL:]
            newlines.append((size, lines))
            lines += cell.count(b"\n")
            size += len(cell)
            self._feed(cell)
            self._settle_cells(self.feeder.base // CELL - 2)
        self.feeder.advance(0, final=True)
        self._settle_cells(size // CELL + 1)
        hits, matched = list_hits(self.collector.groups)
        saved = tuple(SavedCell(number * CELL, packed) for number, packed in sorted(self.saved.items()))
        return ScanResult(
            hits,
            size,
            HeldEdges(head, tail),
            self.collector.sampled,
            matched,
            saved,
            tuple(newlines),
            self.dropped_cells,
            digest.result(),
        )

    def _feed(self, cell: bytes) -> None:
        position = 0
        while position < len(cell):
            free_space = self.feeder.free_space()
            count = min(len(free_space), len(cell) - position)
            free_space[:count] = cell[position : position + count]
            free_space.release()
            self.feeder.advance(count)
            position += count

    def _settle_cells(self, last: int) -> None:
        """Save or drop the pending cells up to number `last`: all lines near them were fed."""
        for number in [number for number in self.pending if number <= last]:
            cell = self.pending.pop(number)
            if self.touched_cells.isdisjoint(range(number - 2, number + 2)):
                continue
            packed = zlib.compress(cell, 1)
            if self.packed + len(packed) > self.MAX_PACKED:
                self._drop_unneeded_cells()
            if self.packed + len(packed) > self.MAX_PACKED:
                self.dropped_cells += 1
                continue
            self.saved[number] = packed
            self.packed += len(packed)

    def _drop_unneeded_cells(self) -> None:
        """Drop saved cells around hits that later hits of their kind have replaced."""
        needed = cells_near(self.collector.groups)
        for number in [number for number in self.saved if number not in needed]:
            self.packed -= len(self.saved.pop(number))


def cells_near(groups: HitGroups) -> set[int]:
    """Return the numbers of the cells in which later stages read around these hits."""
    hits = list_hits(groups)[0]
    return {cell + step for hit in hits for cell in (hit.start // CELL, hit.end // CELL) for step in range(-1, 3)}


def _cells(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the stream in cells of CELL bytes; the last may be shorter."""
    parts: list[bytes] = []
    filled = 0
    while data := stream.read(CELL - filled):
        parts.append(data)
        filled += len(data)
        if filled == CELL:
            yield b"".join(parts)
            parts, filled = [], 0
    if parts:
        yield b"".join(parts)
