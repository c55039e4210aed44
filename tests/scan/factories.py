"""Scans of bytes in memory, with constants so small that every border is met often."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO
from unittest import mock

from hypothesis import strategies as st

from triage.base import forks
from triage.model.evidence import Source
from triage.records import saved_cells
from triage.scan import edges, interface, known_spans, lines, one_span, run, spans
from triage.scan.edges import HeldEdges
from triage.scan.interface import ScanResult
from triage.scan.run import Scan

SMALL = {
    "MAX_LINE": 64,
    "OVERLAP": 16,
    "SPAN": 256,
    "SPAN_LINES": 6,
    "SPAN_KINDS": 5,
    "SLICE": 32,
    "KEEP_PER_END": 3,
    "KEEP_PER_END_ALIKE": 1,
    "WRITER_BYTES": 8,
    "CELL": 64,
    "LOOK_BACK": 64,
    "LOOK_AHEAD": 128,
    "HEAD": 32,
    "TAIL": 48,
    "_MIN_CHUNK": 2 * 64 + 2 * 16,
}
"""The constants of `triage.scan.interface` in the same order of size, and the smallest chunk that follows from them."""

LITERALS = ("boom", "oomph", "err: 7", "Zug", "ababa", "bab", "überlauf", "a longish one")
"""Some overlap, one holds another's end, one is not ASCII; none is longer than OVERLAP."""

_TOKENS = st.one_of(
    st.sampled_from([literal.encode() for literal in LITERALS]),
    st.sampled_from([literal.encode()[:-1] for literal in LITERALS]),
    st.sampled_from(
        [b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\0", b"\xff\xfe", b"\xc3", b"[r1] ", b"[r2] ", b" ", b"ab"]
    ),
    st.integers(1, 90).map(lambda count: b"z" * count),
)
TEXTS = st.lists(_TOKENS, max_size=120).map(b"".join)
"""Logs in miniature: literals, halves of them, newlines of all sorts, bytes that are no text, and lines too long."""

SHORT_LINES = st.lists(
    st.lists(
        st.sampled_from([*(literal.encode() for literal in LITERALS), b"[r1] ", b"zz", b"\xff\r"]), max_size=3
    ).map(b"".join),
    max_size=90,
).map(b"\n".join)
"""Logs in which no line is longer than MAX_LINE."""


@contextlib.contextmanager
def small_limits(**more: int) -> Iterator[None]:
    """Use the constants of SMALL in every module that imports them by name."""
    values = {**SMALL, **more}
    with contextlib.ExitStack() as stack:
        for module in (edges, interface, known_spans, lines, one_span, run, spans, saved_cells):
            for name, value in values.items():
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, value))
        yield


def writer(line: bytes) -> bytes:
    """Return the first bracket of a line."""
    return line[: line.find(b"]") + 1]


class SlowStream(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, max_bytes: int) -> None:
        self._inner = io.BytesIO(data)
        self._most = max_bytes

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(self._most if size < 0 else min(size, self._most))


@dataclass(frozen=True)
class Container:
    """A file as `Scan` takes it: plain when it has a path, else one stream per member."""

    name: str
    size: int
    plain: Source | None = None
    members: Mapping[str, Callable[[], BinaryIO | None]] | None = None

    def streams(self) -> Iterator[tuple[Source, BinaryIO | None]]:
        for name, open_ in (self.members or {}).items():
            yield Source(name, "text"), open_()


def plain_container(path: str, size: int | None = None, name: str = "log") -> Container:
    """Return a container for a plain file."""
    size = os.stat(path).st_size if size is None else size
    return Container(name, size, Source(name, "text", size, path))


def stream_container(data: bytes, max_bytes: int = 1 << 30, name: str = "log") -> Container:
    """Return a container with the bytes as a stream."""
    return Container(name, len(data), None, {name: lambda: SlowStream(data, max_bytes)})  # type: ignore[dict-item, return-value]


@dataclass
class ScanOutcome:
    """The result of a scan, and its progress and failures."""

    scanned: list[tuple[Source, ScanResult]]
    others: list[Source]
    advanced: int
    failures: list[tuple[str, OSError]]


def scan(
    containers: Sequence[Container],
    *,
    literals: Sequence[str] = LITERALS,
    workers: int = 1,
    chunk_bytes: int = 1 << 16,
    engine: str = "hyperscan",
    windows: Sequence[str] = (),
    generic: frozenset[int] = frozenset(),
    key: Callable[[bytes], bytes] = writer,
    fork: bool = False,
) -> ScanOutcome:
    """Run a scan, by forked processes if it is large."""
    outcome = ScanOutcome([], [], 0, [])

    def advance(count: int) -> None:
        outcome.advanced += count

    job = Scan(
        literals,
        key,
        workers=workers,
        chunk_bytes=chunk_bytes,
        windows=windows,
        generic=generic,
        engine=engine,
        **({"sharer": forks.LocalProcesses(workers)} if fork else {}),
        on_progress=advance,
        on_failure=lambda name, error: outcome.failures.append((name, error)),
    )
    outcome.scanned, outcome.others = job.run(containers)
    return outcome


def scan_one(container: Container, **options: object) -> ScanResult:
    """Scan one source that cannot fail."""
    outcome = scan([container], **options)  # type: ignore[arg-type]
    assert not outcome.failures
    assert outcome.advanced == container.size
    [(_, scanned)] = outcome.scanned
    return scanned


@contextlib.contextmanager
def temporary_file(data: bytes) -> Iterator[str]:
    """A temporary file of `data` (hypothesis must not share pytest's between examples)."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "log")
        with open(path, "wb") as out:
            out.write(data)
        yield path


def scan_bytes(data: bytes, **options: object) -> ScanResult:
    """Scan `data` as a plain file."""
    with temporary_file(data) as path:
        result = scan_one(plain_container(path), **options)
        return dataclasses.replace(result, edges=HeldEdges(result.head, result.tail))


def literals_in(line: bytes) -> tuple[int, ...]:
    """Return the literals in a line, found one by one."""
    return tuple(index for index, literal in enumerate(LITERALS) if literal.encode() in line)


def split_lines(data: bytes) -> list[tuple[int, bytes]]:
    """Return the lines, without newlines, and where they start."""
    starts, at = [], 0
    for line in data.split(b"\n"):
        starts.append((at, line))
        at += len(line) + 1
    return starts
