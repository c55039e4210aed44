"""The scan of all sources by a few processes or threads. The automaton and the reads work without the GIL, but what is
done for every hit needs it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from triage.base.forks import each
from triage.model.evidence import Source
from triage.scan.gate import build
from triage.scan.interface import HEAD, SPAN, TAIL, Scanned, WriterKey
from triage.scan.lines import Kinds, kept_of, merge, rows
from triage.scan.spans import SpanReader


class Container(Protocol):
    """A file to scan: plain text by its path, anything else by the streams it yields (None for a source not to scan)."""

    @property
    def name(self) -> str: ...

    @property
    def plain(self) -> Source | None: ...

    @property
    def size(self) -> int: ...

    def streams(self) -> Iterator[tuple[Source, BinaryIO | None]]: ...


@dataclass(frozen=True, slots=True)
class _Span:
    """What the lines that start in one span of a plain file gave, and why it could not be read to its end."""

    kinds: Kinds
    sampled: int = 0
    problem: OSError | None = None


@dataclass
class _Plain:
    source: Source
    size: int
    spans: list[_Span] = field(default_factory=list)


_WORTH_FITTING = 1 << 26
# From so many bytes on, processes are worth their start.
_WORTH_FORKING = 1 << 26
_SAMPLES = 32
_SAMPLE_BYTES = 1 << 14

Advance = Callable[[int], None]
Failed = Callable[[str, OSError], None]


class Scan:
    """One scan: tasks are handed out to processes or threads, results are put together in the order of the names.

    `fork`: the program has no other threads, so that processes may be forked where much is to be read.
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
        advance: Advance,
        failed: Failed,
    ) -> None:
        self.literals = literals
        self.windows = windows
        self.generic = generic
        self.engine = engine
        self.writer = writer
        self.workers = workers
        self.chunk_bytes = chunk_bytes
        self.fork = fork
        self._advance = advance
        self._failed = failed
        self._lock = threading.Lock()
        self._plain: dict[str, _Plain] = {}
        self._streams: dict[str, tuple[Source, Scanned]] = {}
        self._others: list[Source] = []
        self._errors: list[BaseException] = []

    def run(self, containers: Sequence[Container]) -> tuple[list[tuple[Source, Scanned]], list[Source]]:
        """Scan everything; gives the scanned texts and the sources that are not text, each sorted by name."""
        self._gate = build(self.literals, self.engine, self.windows, _sample(containers))
        packed = [container for container in containers if container.plain is None]
        spans = list(self._spans(containers))
        if self.fork and not packed and sum(plain.size for plain in self._plain.values()) >= _WORTH_FORKING:
            self._scan_by_processes(spans)
        else:
            self._scan_by_threads(sorted(packed, key=lambda container: (-container.size, container.name)), spans)
        scanned = [self._streams[name] for name in self._streams] + [
            self._put_together(name, plain) for name, plain in self._plain.items()
        ]
        return sorted(scanned, key=lambda pair: pair[0].name), sorted(self._others, key=lambda source: source.name)

    def _spans(self, containers: Sequence[Container]) -> Iterator[tuple[str, int]]:
        """The spans of plain files, each file's in order."""
        for container in containers:
            if container.plain is not None:
                count = max(1, -(-container.size // SPAN))
                self._plain[container.name] = _Plain(container.plain, container.size, [_Span({})] * count)
                yield from ((container.name, number) for number in range(count))

    def _scan_by_processes(self, spans: Sequence[tuple[str, int]]) -> None:
        reader = functools.cache(self._reader)  # each process makes its own when it has something to do
        with contextlib.closing(_OpenFile()) as files:
            found = each(
                lambda task: self._scan_span(reader(), files, *spans[task]),
                len(spans),
                self.workers,
                _packed,
                _unpacked,
            )
            for (name, number), span in zip(spans, found, strict=True):
                self._keep(name, number, span)

    def _scan_by_threads(self, packed: Sequence[Container], spans: Sequence[tuple[str, int]]) -> None:
        """Streams first (they cannot be shared out), largest first, then the spans of plain files."""
        tasks: Iterator[Container | tuple[str, int]] = iter([*packed, *spans])
        threads = [threading.Thread(target=self._work, args=(tasks,), daemon=True) for _ in range(self.workers - 1)]
        for thread in threads:
            thread.start()
        self._work(tasks)
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _work(self, tasks: Iterator[Container | tuple[str, int]]) -> None:
        try:
            reader = self._reader()
            with contextlib.closing(_OpenFile()) as files:
                while not self._errors:
                    with self._lock:
                        task = next(tasks, None)
                    if task is None:
                        break
                    if isinstance(task, tuple):
                        self._keep(*task, self._scan_span(reader, files, *task))
                    else:
                        self._scan_streams(reader, task)
        except BaseException as error:  # a thread must not die in silence; `run` raises it again
            self._errors.append(error)

    def _reader(self) -> SpanReader:
        return SpanReader(self._gate.for_thread(), self.writer, self.chunk_bytes, self.generic)

    def _scan_span(self, reader: SpanReader, files: _OpenFile, name: str, number: int) -> _Span:
        plain, collector = self._plain[name], None
        try:
            fd = files.get(plain.source.path or "")
            collector = reader.span(fd, number * SPAN, plain.size)
            if os.fstat(fd).st_size < plain.size:
                raise OSError(errno.ENODATA, "it became shorter while it was read")
        except OSError as problem:
            return _Span(collector.kinds, collector.sampled, problem) if collector else _Span({}, 0, problem)
        return _Span(collector.kinds, collector.sampled)

    def _keep(self, name: str, number: int, span: _Span) -> None:
        plain = self._plain[name]
        plain.spans[number] = span
        if span.problem is not None:
            self._failed(name, span.problem)
        self._advance(min(SPAN, plain.size - number * SPAN))

    def _scan_streams(self, reader: SpanReader, container: Container) -> None:
        try:
            for source, stream in container.streams():
                if stream is None:
                    self._others.append(source)
                else:
                    self._streams[source.name] = (source, reader.stream(stream))
        except OSError as error:
            self._failed(container.name, error)
        self._advance(container.size)

    def _put_together(self, name: str, plain: _Plain) -> tuple[Source, Scanned]:
        hits, matched = merge(span.kinds for span in plain.spans)
        head = tail = b""
        try:
            with contextlib.closing(_OpenFile()) as files:
                fd = files.get(plain.source.path or "")
                head, tail = os.pread(fd, HEAD, 0), os.pread(fd, TAIL, max(0, plain.size - TAIL))
        except OSError as error:
            if not any(span.problem for span in plain.spans):
                self._failed(name, error)
        return plain.source, Scanned(hits, plain.size, head, tail, sum(span.sampled for span in plain.spans), matched)


def _packed(span: _Span) -> list[Any]:
    """A span as JSON can carry it."""
    return [rows(span.kinds), span.sampled, span.problem and [span.problem.errno, span.problem.strerror]]


def _unpacked(packed: list[Any]) -> _Span:
    kinds, sampled, problem = packed
    return _Span(kept_of(kinds), sampled, problem and OSError(*problem))


def _sample(containers: Sequence[Container]) -> bytes:
    """Some bytes of the job, if it is large enough for a fitted gate to pay. Only the speed depends on it."""
    plain = [container for container in containers if container.plain is not None and container.plain.path]
    total = sum(container.size for container in plain)
    if total < _WORTH_FITTING:
        return b""
    parts = []
    for number in range(_SAMPLES):
        place = total * (2 * number + 1) // (2 * _SAMPLES)
        for container in plain:
            if place < container.size:
                parts.append(_piece(container, place))
                break
            place -= container.size
    return b"\n".join(parts)


def _piece(container: Container, place: int) -> bytes:
    source = container.plain
    try:
        with open(source.path if source and source.path else "", "rb") as file:
            file.seek(place)
            return file.read(_SAMPLE_BYTES)
    except OSError:
        return b""


class _OpenFile:
    """The file a thread read last: its spans follow each other mostly."""

    def __init__(self) -> None:
        self._path = ""
        self._fd = -1

    def get(self, path: str) -> int:
        if path != self._path:
            self.close()
            self._fd = os.open(
                path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
            )  # a file may be a pipe by now, which would wait for a writer
            self._path = path
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._path, self._fd = "", -1
