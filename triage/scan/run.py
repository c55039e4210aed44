"""The scan of all sources with a few threads. Threads, not processes: the automaton and the reads work without the GIL."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from triage.model import Source
from triage.scan.gate import build
from triage.scan.interface import HEAD, SPAN, TAIL, Scanned, WriterKey
from triage.scan.lines import Collector, merge
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


@dataclass
class _Plain:
    source: Source
    size: int
    spans: list[Collector | None] = field(default_factory=list)
    head: bytes = b""
    tail: bytes = b""


_WORTH_FITTING = 1 << 26
_SAMPLES = 32
_SAMPLE_BYTES = 1 << 14

Advance = Callable[[int], None]
Failed = Callable[[str, OSError], None]


class Scan:
    """One scan: tasks are handed out from a shared iterator, results are put together in the order of the names."""

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
        tasks = iter(self._tasks(containers))
        threads = [threading.Thread(target=self._work, args=(tasks,), daemon=True) for _ in range(self.workers - 1)]
        for thread in threads:
            thread.start()
        self._work(tasks)
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        scanned = [self._streams[name] for name in self._streams] + [self._put_together(plain) for plain in self._plain.values()]
        return sorted(scanned, key=lambda pair: pair[0].name), sorted(self._others, key=lambda source: source.name)

    def _tasks(self, containers: Sequence[Container]) -> list[tuple[Container, int | None]]:
        """Streams first (they cannot be shared out), largest first, then the spans of plain files."""
        packed = [container for container in containers if container.plain is None]
        tasks: list[tuple[Container, int | None]] = [(container, None) for container in sorted(packed, key=lambda c: (-c.size, c.name))]
        for container in containers:
            if container.plain is not None:
                count = max(1, -(-container.size // SPAN))
                self._plain[container.name] = _Plain(container.plain, container.size, [None] * count)
                tasks.extend((container, number) for number in range(count))
        return tasks

    def _work(self, tasks: Iterator[tuple[Container, int | None]]) -> None:
        try:
            reader = SpanReader(self._gate.for_thread(), self.writer, self.chunk_bytes, self.generic)
            files = _OpenFile()
            while not self._errors:
                with self._lock:
                    task = next(tasks, None)
                if task is None:
                    break
                container, number = task
                if number is None:
                    self._scan_streams(reader, container)
                else:
                    self._scan_span(reader, files, container.name, number)
            files.close()
        except BaseException as error:  # a thread must not die in silence; `run` raises it again
            self._errors.append(error)

    def _scan_span(self, reader: SpanReader, files: _OpenFile, name: str, number: int) -> None:
        plain = self._plain[name]
        try:
            fd = files.get(plain.source.path or "")
            plain.spans[number] = reader.span(fd, number * SPAN, plain.size)
            if number == 0:
                plain.head = os.pread(fd, HEAD, 0)
            if number == len(plain.spans) - 1:
                plain.tail = os.pread(fd, TAIL, max(0, plain.size - TAIL))
            if os.fstat(fd).st_size < plain.size:
                raise OSError(errno.ENODATA, "it became shorter while it was read")
        except OSError as error:
            self._failed(name, error)
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

    def _put_together(self, plain: _Plain) -> tuple[Source, Scanned]:
        spans = [span for span in plain.spans if span is not None]
        hits, matched = merge(span.kinds for span in spans)
        sampled = sum(span.sampled for span in spans)
        return plain.source, Scanned(hits, plain.size, plain.head, plain.tail, sampled, matched)


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
            self._fd = os.open(path, os.O_RDONLY)
            self._path = path
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._path, self._fd = "", -1
