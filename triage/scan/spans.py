"""Reading: spans of plain files into one reusable buffer a thread, streams cell by cell."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from triage.scan.interface import CELL, HEAD, MAX_LINE, OVERLAP, SPAN, TAIL, Gate, Scanned, Window, WriterKey
from triage.scan.lines import Collector, merge

_MIN_CHUNK = 2 * MAX_LINE + 2 * OVERLAP


class Feeder:
    """Cuts a run of bytes into whole lines for a collector, carrying the rest; an overlong line goes on in pieces."""

    def __init__(self, collector: Collector, buffer: bytearray, offset: int) -> None:
        self.collector = collector
        self.buffer = buffer
        self.base = offset  # absolute offset of buffer[0]
        self.filled = 0
        self.line_start = offset
        self.fresh = 0  # up to this place in the buffer the end of the piece before is seen again

    def room(self) -> memoryview:
        return memoryview(self.buffer)[self.filled :]

    def advance(self, count: int, *, final: bool = False) -> None:
        """`count` more bytes lie in the buffer; feed what is complete."""
        self.filled += count
        cut = self.filled if final else self.buffer.rfind(b"\n", 0, self.filled) + 1
        if cut:
            self.collector.feed(self.buffer, self.base, cut, self.line_start, self.fresh)
            self._drop(cut, fresh=0)
            self.line_start = self.base
        elif self.filled == len(self.buffer):
            self._feed_piece()

    def _feed_piece(self) -> None:
        whole = (self.base + self.filled - self.line_start) // MAX_LINE * MAX_LINE
        stop = self.line_start + whole - self.base
        self.collector.feed(self.buffer, self.base, stop, self.line_start, self.fresh)
        self._drop(stop - OVERLAP, fresh=OVERLAP)

    def _drop(self, count: int, *, fresh: int) -> None:
        rest = self.filled - count
        self.buffer[:rest] = self.buffer[count : self.filled]
        self.base += count
        self.filled = rest
        self.fresh = fresh


class SpanReader:
    """What one thread needs to scan: a gate (with its scratch) and a buffer, both used again for every span."""

    def __init__(self, gate: Gate, writer: WriterKey, chunk_bytes: int, generic: frozenset[int] = frozenset()) -> None:
        self.gate = gate
        self.writer = writer
        self.generic = generic
        self.buffer = bytearray(max(chunk_bytes, _MIN_CHUNK))

    def span(self, fd: int, start: int, size: int) -> Collector:
        """Scan the lines of `fd` that start in [start, start + SPAN); the last one is finished beyond."""
        collector = Collector(self.gate, self.writer, self.generic)
        stop = min(start + SPAN, size)
        begin = _first_line(fd, start, stop)
        if begin is None:
            return collector
        feeder = Feeder(collector, self.buffer, begin)
        position, end = begin, stop
        while position < end:
            room = feeder.room()
            count = os.preadv(fd, [room[: end - position]], position)
            position += count
            if count == 0 or position >= end:
                end = _line_end(fd, position, stop, size) if count and end == stop else position
            feeder.advance(count, final=position >= end)
        return collector

    def stream(self, stream: BinaryIO) -> Scanned:
        """Scan all of a stream that cannot be read again, keeping windows around its hits."""
        return _StreamScan(self).run(stream)


def _first_line(fd: int, start: int, stop: int) -> int | None:
    """The first line that starts in [start, stop), or None."""
    if start == 0:
        return 0
    position = start - 1
    while position < stop:
        data = os.pread(fd, min(1 << 16, stop - position), position)
        if not data:
            return None
        at = data.find(b"\n")
        if at >= 0:
            begin = position + at + 1
            return begin if begin < stop else None
        position += len(data)
    return None


def _line_end(fd: int, position: int, stop: int, size: int) -> int:
    """Where the line that is open at `position` (the end of a span) ends: after its newline, or the end of the file."""
    if os.pread(fd, 1, position - 1) == b"\n" or position < stop:
        return position
    while position < size:
        data = os.pread(fd, 1 << 16, position)
        if not data:
            return position
        at = data.find(b"\n")
        if at >= 0:
            return position + at + 1
        position += len(data)
    return position


class _StreamScan:
    """One stream, read once: cells around hits are kept packed, newlines are counted on the way."""

    MAX_PACKED = 1 << 26

    def __init__(self, reader: SpanReader) -> None:
        self.collector = Collector(reader.gate, reader.writer, reader.generic)
        self.touched = self.collector.touched = set[int]()
        self.feeder = Feeder(self.collector, reader.buffer, 0)
        self.raw: dict[int, bytes] = {}  # cells that may still be wanted
        self.windows: dict[int, bytes] = {}
        self.packed = 0
        self.dropped = 0

    def run(self, stream: BinaryIO) -> Scanned:
        size = lines = 0
        head = tail = b""
        newlines: list[tuple[int, int]] = []
        for number, cell in enumerate(_cells(stream)):
            self.raw[number] = cell
            head = head or cell[:HEAD]
            tail = (tail + cell)[-TAIL:]
            newlines.append((size, lines))
            lines += cell.count(b"\n")
            size += len(cell)
            self._put(cell)
            self._keep(self.feeder.base // CELL - 2)
        self.feeder.advance(0, final=True)
        self._keep(size // CELL + 1)
        hits, matched = merge([self.collector.kinds])
        windows = tuple(Window(number * CELL, packed) for number, packed in sorted(self.windows.items()))
        return Scanned(hits, size, head, tail, self.collector.sampled, matched, windows, tuple(newlines), self.dropped)

    def _put(self, cell: bytes) -> None:
        position = 0
        while position < len(cell):
            room = self.feeder.room()
            count = min(len(room), len(cell) - position)
            room[:count] = cell[position : position + count]
            room.release()
            self.feeder.advance(count)
            position += count

    def _keep(self, last: int) -> None:
        """Decide on the raw cells up to number `last`: all lines that could want them were fed."""
        for number in [number for number in self.raw if number <= last]:
            cell = self.raw.pop(number)
            if self.touched.isdisjoint(range(number - 2, number + 2)):
                continue
            packed = zlib.compress(cell, 1)
            if self.packed + len(packed) > self.MAX_PACKED:
                self._prune()
            if self.packed + len(packed) > self.MAX_PACKED:
                self.dropped += 1
                continue
            self.windows[number] = packed
            self.packed += len(packed)

    def _prune(self) -> None:
        """Let go of cells around hits that were since displaced by later ones of their kind."""
        hits, _ = merge([self.collector.kinds])
        wanted = {
            cell + step for hit in hits for cell in (hit.start // CELL, hit.end // CELL) for step in (-1, 0, 1, 2)
        }
        for number in [number for number in self.windows if number not in wanted]:
            self.packed -= len(self.windows.pop(number))


def _cells(stream: BinaryIO) -> Iterator[bytes]:
    """The stream in full cells; the last may be shorter."""
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
