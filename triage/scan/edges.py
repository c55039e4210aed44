"""The first and last bytes of a source: held, or read again whenever they are needed.

Of ten thousand files they are more than all that is known of these files, unless the files are small.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from dataclasses import field
from typing import Protocol

from triage.base.lazy_dataclass import dataclass
from triage.sources.opened_file import open_file

HEAD = 1 << 13
TAIL = 1 << 15
SAMPLE_BYTES = 1 << 12
_SAMPLES = 4
_MOST_HELD = 8
# Files of so many bytes are held, all together up to so many: opening a file again costs more than its bytes.
_SMALL_FILE, _MOST_SMALL_BYTES = 1 << 13, 1 << 25


def sample_offsets(size: int) -> list[int]:
    """Return where later stages read SAMPLE_BYTES of a text of `size` bytes, between its first and its last bytes."""
    tail = max(0, size - TAIL)
    return [tail * number // (_SAMPLES + 1) for number in range(1, _SAMPLES + 1)]


class Edges(Protocol):
    """The first and the last bytes of a source."""

    @property
    def head(self) -> bytes:
        """Its first HEAD bytes."""

    @property
    def tail(self) -> bytes:
        """Its last TAIL bytes."""


@dataclass(frozen=True, slots=True)
class HeldEdges:
    """Bytes that cannot be read again, or not for free."""

    head: bytes = b""
    tail: bytes = b""


class EdgeReader:
    """Reads the edges of files, and holds those of the last few and of small files."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, HeldEdges] = OrderedDict()
        self._small_bytes = 0

    def edges_of(self, path: str, size: int) -> Edges:
        """Return the edges of a file that had `size` bytes, held or to be read again. Raises OSError."""
        if size <= _SMALL_FILE and self._small_bytes + size <= _MOST_SMALL_BYTES:
            self._small_bytes += size
            return read_edges(path, size)
        open_file(path).close()  # whether it can be read is known now
        return FileEdges(path, size, self)

    def read(self, path: str, size: int) -> HeldEdges:
        """Return the edges of a file that had `size` bytes; empty if it cannot be read any more."""
        edges = self._held.get(path)
        if edges is None:
            edges = HeldEdges()
            with contextlib.suppress(OSError):
                edges = read_edges(path, size)
            self._held[path] = edges
            if len(self._held) > _MOST_HELD:
                self._held.popitem(last=False)
        return edges


def read_edges(path: str, size: int) -> HeldEdges:
    """Return the edges of a file that had `size` bytes. Raises OSError."""
    with contextlib.closing(open_file(path)) as file:
        if size <= HEAD:
            whole = file.read_at(size, 0)
            return HeldEdges(whole, whole)
        return HeldEdges(file.read_at(min(HEAD, size), 0), file.read_at(min(TAIL, size), max(0, size - TAIL)))


@dataclass(frozen=True, slots=True)
class FileEdges:
    """The edges of a file of this machine."""

    path: str
    size: int
    reader: EdgeReader = field(compare=False, repr=False)

    @property
    def head(self) -> bytes:
        """Its first HEAD bytes."""
        return self.reader.read(self.path, self.size).head

    @property
    def tail(self) -> bytes:
        """Its last TAIL bytes."""
        return self.reader.read(self.path, self.size).tail
