"""Scan one span of a plain file, in this process, in a forked one or on another machine."""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Sequence
from typing import Any

from triage.base.lazy_dataclass import dataclass
from triage.scan.edges import HEAD, SAMPLE_BYTES, TAIL, sample_offsets
from triage.scan.interface import CELL, SPAN
from triage.scan.lines import HitGroups, groups_from_rows, groups_to_rows, list_hits
from triage.scan.spans import SpanReader, cells_near
from triage.sources.opened_file import OpenedFile, open_file

_SAMPLE_BYTES = 1 << 14


@dataclass(frozen=True, slots=True)
class Span:
    """The hits of the lines that start in one span of a plain file, and the error that ended it early.

    `digest` is that of the bytes of the span; it is empty if none could be read.
    """

    groups: HitGroups
    sampled: int = 0
    problem: OSError | None = None
    digest: str = ""


def scan_span(reader: SpanReader, files: OneOpenFile, path: str, number: int, size: int) -> Span:
    """Scan span `number` of the file at a path that had `size` bytes when it was listed."""
    collector, digest = None, ""
    try:
        file = files.get(path)
        collector, digest = reader.scan_span(file, number * SPAN, size)
        needed = functools.partial(cells_read_later, collector.groups, size)
        file.forget(number * SPAN, min((number + 1) * SPAN, size), needed)
        if file.size() < size:
            raise OSError(errno.ENODATA, "it became shorter while it was read")
    except OSError as problem:
        return Span(collector.groups, collector.sampled, problem, digest) if collector else Span({}, 0, problem)
    return Span(collector.groups, collector.sampled, None, digest)


def cells_read_later(groups: HitGroups, size: int) -> set[int]:
    """Return the numbers of the cells of a file that later stages read, as far as its hits in one span tell.

    They read around hits, both ends, and samples between the ends where the end is unusual. Without a hit at its end a
    file of one span is taken for usual.
    """
    cells = cells_near(groups) | cells_between(0, HEAD) | cells_between(size - TAIL, size)
    is_usual = size <= SPAN and all(hit.end <= size - TAIL for hit in list_hits(groups)[0])
    samples = () if is_usual else sample_offsets(size)
    return cells.union(*(cells_between(offset, offset + SAMPLE_BYTES) for offset in samples))


def cells_between(start: int, stop: int) -> set[int]:
    """Return the numbers of the cells with the bytes between two offsets."""
    return set(range(max(0, start) // CELL, -(-stop // CELL)))


def encode_span(span: Span) -> list[Any]:
    """Return a span in a form that JSON can carry."""
    problem = span.problem and [span.problem.errno, span.problem.strerror]
    return [groups_to_rows(span.groups), span.sampled, problem, span.digest]


def decode_span(packed: list[Any]) -> Span:
    """Return the span that `encode_span` encoded."""
    groups, sampled, problem, digest = packed
    return Span(groups_from_rows(groups), sampled, problem and OSError(*problem), digest)


def read_sample(places: Sequence[tuple[str, int]]) -> bytes:
    """Return some bytes at each (path, offset); only the speed of the scan depends on them."""
    return b"\n".join(_read_piece(path, offset) for path, offset in places)


def _read_piece(path: str, offset: int) -> bytes:
    try:
        with contextlib.closing(open_file(path)) as file:
            return file.read_at(_SAMPLE_BYTES, offset)
    except OSError:
        return b""


class OneOpenFile:
    """The file that a thread read last, kept open because the next span is mostly in the same file."""

    def __init__(self) -> None:
        self._path = ""
        self._file: OpenedFile | None = None

    def get(self, path: str) -> OpenedFile:
        """Return the file at a path, opened. Raises OSError."""
        if self._file is None or path != self._path:
            self.close()
            self._file = open_file(path, is_scanned=True)
            self._path = path
        return self._file

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()
        self._path, self._file = "", None
