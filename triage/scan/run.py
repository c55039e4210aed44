"""Scan all sources with a few processes or threads.

The automaton and the reads work without the GIL; what is done for every hit needs it.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from triage.base.addresses import is_address
from triage.base.content_digest import digest_list
from triage.base.forks import LocalThreads, RemoteUnits, SharedWork, WorkSharer
from triage.base.lazy_dataclass import dataclass
from triage.model.evidence import Source
from triage.scan.edges import EdgeReader, Edges, HeldEdges, read_edges
from triage.scan.interface import FILE_KINDS, SPAN, LiteralMatcher, ScanResult, WriterKey
from triage.scan.known_spans import (
    FileSpans,
    FindKnownSpans,
    KnownSpans,
    SpanMerger,
    count_complete_spans,
    divide_spans,
    merge_parts,
)
from triage.scan.lines import list_hits
from triage.scan.literal_matcher import build
from triage.scan.one_span import OneOpenFile, Span, decode_span, encode_span, read_sample, scan_span
from triage.scan.spans import SpanReader
from triage.sources.opened_file import describe_file


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


@dataclass
class _PlainFile:
    """A file that is read by its path: what is known of its first spans, and the spans that are scanned now."""

    source: Source
    size: int
    known: list[KnownSpans]
    spans: dict[int, Span] = field(default_factory=dict)
    problem: OSError | None = None
    _merger: SpanMerger | None = None
    _kinds: int = 0

    @property
    def parts(self) -> list[KnownSpans]:
        """All spans in order, as far as they are known or scanned."""
        first = [self._merger.result()] if self._merger else self.known
        return [*first, *(_as_known(self.spans[number]) for number in sorted(self.spans))]

    def add(self, number: int, span: Span) -> None:
        """Add a span that was scanned; they may come in any order."""
        self.spans[number] = span
        self.problem = self.problem or span.problem
        self._kinds += len(span.groups)
        if self._kinds > FILE_KINDS:
            self._merge_first_spans()

    def _merge_first_spans(self) -> None:
        """Merge the spans that follow each other, so that a large storm does not fill the memory.

        The last span of the file is left, since it changes when the file grows.
        """
        if self._merger is None:
            self._merger = SpanMerger()
            for part in self.known:
                self._merger.add(part)
        while (number := len(self._merger.digests)) in self.spans and (number + 1) * SPAN < self.size:
            self._merger.add(_as_known(self.spans.pop(number)))


def _as_known(span: Span) -> KnownSpans:
    return KnownSpans((span.digest,), span.sampled, span.groups)


# From so many bytes on, fitting the windows to the job pays.
_MIN_BYTES_TO_FIT = 1 << 26
# From so many bytes on, or so many files or pieces of files, starting processes pays: threads wait for each other at
# each file that they open.
_MIN_BYTES_TO_FORK, _MIN_SPANS_TO_FORK = 1 << 26, 128
_SAMPLES = 32

ScanRemotely = Callable[[Any, Any], Any]
"""Scans one span on another machine, as `remote_spans.scan_unit` does."""
OnProgress = Callable[[int], None]
OnFailure = Callable[[str, OSError], None]


class Scan:
    """One scan: tasks are given to processes or threads, and results are sorted by name.

    `sharer`: who scans plain files instead of threads where there is much to read; other machines call
    `scan_remotely`. `generic` are the numbers of the literals that are not specific to a signature. `cache` is the
    directory of compiled databases. `find_known` returns what an earlier scan found in a plain file, with the same
    literals; only the other spans are read. `on_progress` is called with the number of bytes that were read,
    `on_failure` with the name and the error of a source that could not be read.
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
        sharer: WorkSharer | None = None,
        scan_remotely: ScanRemotely | None = None,
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
        self.sharer = sharer
        self.cache = cache
        self._scan_remotely = scan_remotely
        self._find_known = find_known
        self._on_progress = on_progress
        self._on_failure = on_failure
        self._plain: dict[str, _PlainFile] = {}
        self._streams: dict[str, tuple[Source, ScanResult]] = {}
        self._others: list[Source] = []
        self._sample_places: list[tuple[str, int]] = []
        self._made_matcher: LiteralMatcher | None = None
        self._edge_reader = EdgeReader()

    def run(self, containers: Sequence[Container]) -> tuple[list[tuple[Source, ScanResult]], list[Source]]:
        """Scan everything; return the scanned texts and the sources that are not text, each sorted by name."""
        packed = [container for container in containers if container.plain is None]
        spans = list(self._list_spans(containers))
        self._sample_places = self._choose_sample(spans)
        if self._is_shared(packed, spans):
            self._share(spans)
            spans = []
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
                parts = [known.complete, known.rest] if known else []
                plain = self._plain[container.name] = _PlainFile(container.plain, container.size, parts)
                first = sum(len(part.digests) for part in plain.parts)
                self._on_progress(min(first * SPAN, container.size))
                yield from ((container.name, number) for number in range(first, max(1, -(-container.size // SPAN))))

    def _is_shared(self, packed: Sequence[Container], spans: Sequence[tuple[str, int]]) -> bool:
        """Whether plain files are scanned by `sharer`: always on other machines, else where processes pay."""
        if self.sharer is None or self.sharer.is_remote:
            return bool(self.sharer and spans)
        is_much = (
            len(spans) >= _MIN_SPANS_TO_FORK or sum(self._span_bytes(*span) for span in spans) >= _MIN_BYTES_TO_FORK
        )
        return not packed and is_much

    def _share(self, spans: Sequence[tuple[str, int]]) -> None:
        assert self.sharer is not None
        reader = functools.cache(self._reader)  # each process makes its own at its first task
        if not self.sharer.is_remote:
            self._matcher()  # processes inherit it
        with contextlib.closing(OneOpenFile()) as files:
            work = SharedWork(
                lambda task: self._scan_span(reader(), files, *spans[task]),
                len(spans),
                encode_span,
                decode_span,
                lambda: self._describe(spans),
            )
            for (name, number), span in zip(spans, self.sharer.map(work), strict=True):
                self._store_span(name, number, span)

    def _describe(self, spans: Sequence[tuple[str, int]]) -> RemoteUnits:
        """Return how another machine scans these spans. It reads the sample itself."""
        assert self._scan_remotely is not None
        files = functools.cache(lambda name: describe_file(self._plain[name].source.path or ""))
        shared = {
            "literals": self.literals,
            "windows": self.windows,
            "generic": sorted(self.generic),
            "engine": self.engine,
            "chunk_bytes": self.chunk_bytes,
            "sample": [[describe_file(path), offset] for path, offset in self._sample_places],
        }
        units = [[files(name), number, self._plain[name].size] for name, number in spans]
        return RemoteUnits(self._scan_remotely, shared, units, [self._span_bytes(*span) for span in spans])

    def _scan_with_threads(self, packed: Sequence[Container], spans: Sequence[tuple[str, int]]) -> None:
        """Scan the streams first, largest first, since they cannot be divided; then the spans of plain files."""
        tasks: list[Container | tuple[str, int]] = [*packed, *spans]
        if not tasks:
            return
        self._matcher()
        own = threading.local()
        with contextlib.ExitStack() as opened:

            def scan(number: int) -> None:
                if not hasattr(own, "reader"):
                    own.reader, own.files = self._reader(), opened.enter_context(contextlib.closing(OneOpenFile()))
                task = tasks[number]
                if isinstance(task, tuple):
                    self._store_span(*task, self._scan_span(own.reader, own.files, *task))
                else:
                    self._scan_streams(own.reader, task)

            for _ in LocalThreads(self.workers).map(SharedWork(scan, len(tasks))):
                pass

    def _reader(self) -> SpanReader:
        return SpanReader(self._matcher().for_thread(), self.writer, self.chunk_bytes, self.generic)

    def _matcher(self) -> LiteralMatcher:
        """Return the matcher, made at its first use: before there are threads, except where workers were lost."""
        if self._made_matcher is None:
            sample = read_sample(self._sample_places)
            self._made_matcher = build(self.literals, self.engine, self.windows, sample, self.cache)
            if sample:
                self._made_matcher.prepare(sample)
        return self._made_matcher

    def _scan_span(self, reader: SpanReader, files: OneOpenFile, name: str, number: int) -> Span:
        plain = self._plain[name]
        return scan_span(reader, files, plain.source.path or "", number, plain.size)

    def _store_span(self, name: str, number: int, span: Span) -> None:
        self._plain[name].add(number, span)
        if span.problem is not None:
            self._on_failure(name, span.problem)
        self._on_progress(self._span_bytes(name, number))

    def _span_bytes(self, name: str, number: int) -> int:
        return min(SPAN, self._plain[name].size - number * SPAN)

    def _choose_sample(self, spans: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return (path, offset) of bytes from all over these spans, if fitted windows pay for them."""
        ends = list(itertools.accumulate(self._span_bytes(*span) for span in spans))
        if not ends or ends[-1] < max(1, _MIN_BYTES_TO_FIT):
            return []
        places = []
        for number in range(_SAMPLES):
            place = ends[-1] * (2 * number + 1) // (2 * _SAMPLES)
            index = bisect.bisect_right(ends, place)
            name, span = spans[index]
            start = ends[index] - self._span_bytes(name, span)
            places.append((self._plain[name].source.path or "", span * SPAN + place - start))
        return places

    def file_spans(self) -> Iterator[tuple[str, int, FileSpans]]:
        """Yield path, size and spans of each plain file of which spans were read, without any error, by `run`."""
        with contextlib.closing(OneOpenFile()) as files:
            for plain in self._plain.values():
                path = plain.source.path or ""
                if not plain.spans or plain.problem:
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
        whole = merge_parts(plain.parts)
        hits, matched = list_hits(whole.groups)
        digest = digest_list(whole.digests)
        if not any(whole.digests):
            return plain.source, ScanResult((), 0, HeldEdges(), digest=digest)
        edges: Edges = HeldEdges()
        try:
            edges = self._edges(plain.source.path or "", plain.size)
        except OSError as error:
            if not plain.problem:
                self._on_failure(name, error)
        return plain.source, ScanResult(hits, plain.size, edges, whole.sampled, matched, digest=digest)

    def _edges(self, path: str, size: int) -> Edges:
        """Return the edges of a file: those of an object are held, since each reading is a request."""
        return read_edges(path, size) if is_address(path) else self._edge_reader.edges_of(path, size)
