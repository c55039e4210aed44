"""Scans of bytes in memory, with constants small enough that every border is met often."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO
from unittest import mock

from hypothesis import strategies as st

from triage.model.evidence import Source
from triage.ranks import windows
from triage.scan import interface, lines, run, spans
from triage.scan.interface import Scanned
from triage.scan.run import Scan

SMALL = {
    "MAX_LINE": 64,
    "OVERLAP": 16,
    "SPAN": 256,
    "SPAN_LINES": 6,
    "SLICE": 32,
    "KEEP": 3,
    "KEEP_ALIKE": 1,
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

TIDY = st.lists(
    st.lists(
        st.sampled_from([*(literal.encode() for literal in LITERALS), b"[r1] ", b"zz", b"\xff\r"]), max_size=3
    ).map(b"".join),
    max_size=90,
).map(b"\n".join)
"""Logs in which no line is longer than MAX_LINE."""


@contextlib.contextmanager
def small(**more: int) -> Iterator[None]:
    """SMALL instead of the real constants, in every module that took them by name."""
    values = {**SMALL, **more}
    with contextlib.ExitStack() as stack:
        for module in (interface, lines, run, spans, windows):
            for name, value in values.items():
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, value))
        yield


def writer(line: bytes) -> bytes:
    """The first bracket of a line."""
    return line[: line.find(b"]") + 1]


class Dribble(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        self._inner = io.BytesIO(data)
        self._most = most

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(self._most if size < 0 else min(size, self._most))


@dataclass(frozen=True)
class Container:
    """A file as `Scan` wants it: plain when it has a path, else one stream a member."""

    name: str
    size: int
    plain: Source | None = None
    members: Mapping[str, Callable[[], BinaryIO | None]] | None = None

    def streams(self) -> Iterator[tuple[Source, BinaryIO | None]]:
        for name, open_ in (self.members or {}).items():
            yield Source(name, "text"), open_()


def plain(path: str, size: int | None = None, name: str = "log") -> Container:
    """A plain file."""
    size = os.stat(path).st_size if size is None else size
    return Container(name, size, Source(name, "text", size, path))


def streamed(data: bytes, most: int = 1 << 30, name: str = "log") -> Container:
    """The same bytes as a stream."""
    return Container(name, len(data), None, {name: lambda: Dribble(data, most)})  # type: ignore[dict-item, return-value]


@dataclass
class Told:
    """What a scan gave back and what it told on the way."""

    scanned: list[tuple[Source, Scanned]]
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
) -> Told:
    """Run a scan."""
    told = Told([], [], 0, [])

    def advance(count: int) -> None:
        told.advanced += count

    job = Scan(
        literals,
        key,
        workers=workers,
        chunk_bytes=chunk_bytes,
        windows=windows,
        generic=generic,
        engine=engine,
        fork=fork,
        advance=advance,
        failed=lambda name, error: told.failures.append((name, error)),
    )
    told.scanned, told.others = job.run(containers)
    return told


def one(container: Container, **options: object) -> Scanned:
    """Scan one source that cannot fail."""
    told = scan([container], **options)  # type: ignore[arg-type]
    assert not told.failures
    assert told.advanced == container.size
    [(_, scanned)] = told.scanned
    return scanned


@contextlib.contextmanager
def file(data: bytes) -> Iterator[str]:
    """A temporary file of `data` (hypothesis must not share pytest's between examples)."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "log")
        with open(path, "wb") as out:
            out.write(data)
        yield path


def of_plain(data: bytes, **options: object) -> Scanned:
    """Scan `data` as a plain file."""
    with file(data) as path:
        return one(plain(path), **options)


def in_line(line: bytes) -> tuple[int, ...]:
    """The literals in a line, the slow way."""
    return tuple(index for index, literal in enumerate(LITERALS) if literal.encode() in line)


def lines_of(data: bytes) -> list[tuple[int, bytes]]:
    """The lines (without their newlines) and where they start."""
    starts, at = [], 0
    for line in data.split(b"\n"):
        starts.append((at, line))
        at += len(line) + 1
    return starts
