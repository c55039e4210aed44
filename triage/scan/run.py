"""Scan all sources with a few processes or threads.

The automaton and the reads work without the GIL; what is done for every hit needs it.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from triage.base.addresses import is_address
from triage.base.content_digest import digest_list
from triage.base.forks import map_forked
from triage.base.lazy_dataclass import dataclass
from triage.model.evidence import Source
from triage.scan.edges import EdgeReader, Edges, FileEdges, HeldEdges, read_edges
from triage.scan.interface import SPAN, ScanResult, WriterKey
from triage.scan.known_spans import FileSpans, FindKnownSpans, KnownSpans, count_complete_spans, divide_spans
from triage.scan.lines import HitGroups, groups_from_rows, groups_to_rows, merge_spans
from triage.scan.literal_matcher import build
from triage.scan.spans import SpanReader, cells_near
from triage.sources.opened_file import OpenedFile, open_file


class Container(Protocol):
    """A file to scan: plain text, read by its path, or the streams in it."""

    @property
    def name(self) -> str:
        """The name in the report."""

    @property
    def plain(self) -> Source | None:
        """The source, if it is plain text that can be read at any offset."""

    @property
    def size(self) -> int:
        """Bytes, as they count for the progress."""

    def streams(self) -> Iterator[tuple[Source, BinaryIO | None]]:
        """Yield its sources; the stream of one that is not to be scanned is None."""


@dataclass(frozen=True, slots=True)
class _Span:
    """The hits of the lines that start in one span of a plain file, and the error that ended it early.

    `digest` is that of the bytes of the span; it is empty if none could be read.
    """

    groups: HitGroups
    sampled: int = 0
    problem: OSError | None = None
    digest: str = ""


@dataclass
class _PlainFile:
    """A file that is read by its path: what is known of its first spans, and the spans that are scanned now."""

    source: Source
    size: int
    known: FileSpans | None
    spans: dict[int, _Span] = field(default_factory=dict)

    @property
    def parts(self) -> list[KnownSpans]:
        """All spans in order, as far as they are known or scanned."""
        known = [self.known.complete, self.known.rest] if self.known else []
        new = (self.spans[number] for number in sorted(self.spans))
        return [*known, *(KnownSpans((span.digest,), span.sampled, span.groups) for span in new)]


# From so many bytes on, fitting the windows to the job pays.
_MIN_BYTES_TO_FIT = 1 << 26
# From so many bytes on, starting processes pays.
_MIN_BYTES_TO_FORK = 1 << 26
_SAMPLES = 32
_SAMPLE_BYTES = 1 << 14

OnProgress = Callable[[int], None]
OnFailure = Callable[[str, OSError], None]


class Scan:
    """One scan: tasks are given to processes or threads, and results are sorted by name.

    `fork`: the program has no other threads, so processes may be forked when there is much to read. `generic` are the
    numbers of the literals that are not specific to a signature. `cache` is the directory of compiled databases.
    `find_known` returns what an earlier scan found in a plain file, with the same literals; only the other spans are
    read. `on_progress` is called with the number of bytes that were read, `on_failure` with the name and the error of
    a source that could not be read.
    """

    def __init__(
        self,
        literals: Sequence[str],
        writer: WriterKey,
        *,
        workers: int,
        chunk_bytes: int,
        windows: Sequence[str] = (),
        generic: frozenset[int] = frozenset(),
        engine: str = "auto",
        fork: bool = False,
        cache: Path | None = None,
        find_known: FindKnownSpans = lambda path, size: None,
        on_progress: OnProgress,
        on_failure: OnFailure,
    ) -> None:
        self.literals = literals
        self.windows = windows
        self.generic = generic
        self.engine = engine
        self.writer = writer
        self.workers = workers
        self.chunk_bytes = chunk_bytes
        self.fork = fork
        self.cache = cache
        self._find_known = find_known
        self._on_progress = on_progress
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._plain: dict[str, _PlainFile] = {}
        self._streams: dict[str, tuple[Source, ScanResult]] = {}
        self._others: list[Source] = []
        self._errors: list[BaseException] = []
        self._edge_reader = EdgeReader()

    def run(self, containers: Sequence[Container]) -> tuple[list[tuple[Source, ScanResult]], list[Source]]:
        """Scan everything; return the scanned texts and the sources that are not text, each sorted by name."""
        packed = [container for container in containers if container.plain is None]
        spans = list(self._list_spans(containers))
        if packed or spans:
            sample = self._read_sample(spans)
            self._matcher = build(self.literals, self.engine, self.windows, sample, self.cache)
            if sample:
                self._matcher.prepare(sample)
        if self.fork and not packed and sum(self._span_bytes(*span) for span in spans) >= _MIN_BYTES_TO_FORK:
            self._scan_with_processes(spans)
        elif packed or spans:
            self._scan_with_threads(sorted(packed, key=lambda container: (-container.size, container.name)), spans)
        scanned = [self._streams[name] for name in self._streams] + [
            self._assemble(name, plain) for name, plain in self._plain.items()
        ]
        return sorted(scanned, key=lambda pair: pair[0].name), sorted(self._others, key=lambda source: source.name)

    def _list_spans(self, containers: Sequence[Container]) -> Iterator[tuple[str, int]]:
        """Yield (name, number) of each span of the plain files that is not known, in order."""
        for container in containers:
            if container.plain is not None:
                known = self._find_known(container.plain.path or "", container.size)
                plain = self._plain[container.name] = _PlainFile(container.plain, container.size, known)
                first = sum(len(part.digests) for part in plain.parts)
                self._on_progress(min(first * SPAN, container.size))
                yield from ((container.name, number) for number in range(first, max(1, -(-container.size // SPAN))))

    def _scan_with_processes(self, spans: Sequence[tuple[str, int]]) -> None:
        reader = functools.cache(self._reader)  # each process makes its own at its first task
        with contextlib.closing(_OpenFile()) as files:
            spans_read = map_forked(
                lambda task: self._scan_span(reader(), files, *spans[task]),
                len(spans),
                self.workers,
                _encode_span,
                _decode_span,
            )
            for (name, number), span in zip(spans, spans_read, strict=True):
                self._store_span(name, number, span)

    def _scan_with_threads(self, packed: Sequence[Container], spans: Sequence[tuple[str, int]]) -> None:
        """Scan the streams first, largest first, since they cannot be divided; then the spans of plain files."""
        tasks: Iterator[Container | tuple[str, int]] = iter([*packed, *spans])
        threads = [
            threading.Thread(target=self._run_worker, args=(tasks,), daemon=True) for _ in range(self.workers - 1)
        ]
        for thread in threads:
            thread.start()
        self._run_worker(tasks)
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _run_worker(self, tasks: Iterator[Container | tuple[str, int]]) -> None:
        try:
            reader = self._reader()
            with contextlib.closing(_OpenFile()) as files:
                while not self._errors:
                    with self._lock:
                        task = next(tasks, None)
                    if task is None:
                        break
                    if isinstance(task, tuple):
                        self._store_span(*task, self._scan_span(reader, files, *task))
                    else:
                        self._scan_streams(reader, task)
        except BaseException as error:  # errors of a thread must not be lost; `run` raises it again
            self._errors.append(error)

    def _reader(self) -> SpanReader:
        return SpanReader(self._matcher.for_thread(), self.writer, self.chunk_bytes, self.generic)

    def _scan_span(self, reader: SpanReader, files: _OpenFile, name: str, number: int) -> _Span:
        plain, collector, digest = self._plain[name], None, ""
        try:
            file = files.get(plain.source.path or "")
            collector, digest = reader.scan_span(file, number * SPAN, plain.size)
            file.forget(
                number * SPAN, min((number + 1) * SPAN, plain.size), functools.partial(cells_near, collector.groups)
            )
            if file.size() < plain.size:
                raise OSError(errno.ENODATA, "it became shorter while it was read")
        except OSError as problem:
            return _Span(collector.groups, collector.sampled, problem, digest) if collector else _Span({}, 0, problem)
        return _Span(collector.groups, collector.sampled, None, digest)

    def _store_span(self, name: str, number: int, span: _Span) -> None:
        plain = self._plain[name]
        plain.spans[number] = span
        if span.problem is not None:
            self._on_failure(name, span.problem)
        self._on_progress(self._span_bytes(name, number))

    def _span_bytes(self, name: str, number: int) -> int:
        return min(SPAN, self._plain[name].size - number * SPAN)

    def _read_sample(self, spans: Sequence[tuple[str, int]]) -> bytes:
        """Read bytes from all over these spans, if fitted windows pay for them; only the speed depends on it."""
        ends = list(itertools.accumulate(self._span_bytes(*span) for span in spans))
        if not ends or ends[-1] < max(1, _MIN_BYTES_TO_FIT):
            return b""
        parts = []
        for number in range(_SAMPLES):
            place = ends[-1] * (2 * number + 1) // (2 * _SAMPLES)
            index = bisect.bisect_right(ends, place)
            name, span = spans[index]
            start = ends[index] - self._span_bytes(name, span)
            parts.append(_read_piece(self._plain[name].source.path or "", span * SPAN + place - start))
        return b"\n".join(parts)

    def file_spans(self) -> Iterator[tuple[str, int, FileSpans]]:
        """Yield path, size and spans of each plain file of which spans were read, without any error, by `run`."""
        with contextlib.closing(_OpenFile()) as files:
            for plain in self._plain.values():
                path = plain.source.path or ""
                if not plain.spans or any(span.problem for span in plain.spans.values()):
                    continue
                with contextlib.suppress(OSError):
                    divided = divide_spans(plain.parts, count_complete_spans(files.get(path), plain.size))
                    yield from [(path, plain.size, divided)] if divided else []

    def _scan_streams(self, reader: SpanReader, container: Container) -> None:
        try:
            for source, stream in container.streams():
                if stream is None:
                    self._others.append(source)
                else:
                    self._streams[source.name] = (source, reader.scan_stream(stream))
        except OSError as error:
            self._on_failure(container.name, error)
        self._on_progress(container.size)

    def _assemble(self, name: str, plain: _PlainFile) -> tuple[Source, ScanResult]:
        parts = plain.parts
        hits, matched = merge_spans(part.groups for part in parts)
        digests = [digest for part in parts for digest in part.digests]
        digest = digest_list(digests)
        if not any(digests):
            return plain.source, ScanResult((), 0, HeldEdges(), digest=digest)
        edges: Edges = HeldEdges()
        try:
            edges = self._edges(plain.source.path or "", plain.size)
        except OSError as error:
            if not any(span.problem for span in plain.spans.values()):
                self._on_failure(name, error)
        sampled = sum(part.sampled for part in parts)
        return plain.source, ScanResult(hits, plain.size, edges, sampled, matched, digest=digest)

    def _edges(self, path: str, size: int) -> Edges:
        """Return the edges of a file: those of an object are held, since each reading is a request."""
        if is_address(path):
            return read_edges(path, size)
        open_file(path).close()  # whether it can be read is known now
        return FileEdges(path, size, self._edge_reader)


def _encode_span(span: _Span) -> list[Any]:
    """Return a span in a form that JSON can carry."""
    problem = span.problem and [span.problem.errno, span.problem.strerror]
    return [groups_to_rows(span.groups), span.sampled, problem, span.digest]


def _decode_span(packed: list[Any]) -> _Span:
    groups, sampled, problem, digest = packed
    return _Span(groups_from_rows(groups), sampled, problem and OSError(*problem), digest)


def _read_piece(path: str, offset: int) -> bytes:
    try:
        with contextlib.closing(open_file(path)) as file:
            return file.read_at(_SAMPLE_BYTES, offset)
    except OSError:
        return b""


class _OpenFile:
    """The file that a thread read last, kept open because the next span is mostly in the same file."""

    def __init__(self) -> None:
        self._path = ""
        self._file: OpenedFile | None = None

    def get(self, path: str) -> OpenedFile:
        if self._file is None or path != self._path:
            self.close()
            self._file = open_file(path, is_scanned=True)
            self._path = path
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._path, self._file = "", None
