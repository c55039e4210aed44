"""A core file that is compressed or in an archive, copied into anonymous memory: nothing is written to a disk.

Pages of zeros become holes. Of a core that is larger than the cap only what stacks need is copied: headers, notes,
first pages of libraries, and the memory around every thread's stack pointer.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import BinaryIO

from triage.artifacts.cores import elf
from triage.artifacts.cores.model import Core, CoreError

CAP = 256 << 20
"""Bytes of memory for one core."""
_HEAD = 64 << 20
_PIECE = 1 << 20
_PAGE = 1 << 12
_STACK = 1 << 18
_ZEROS = bytes(_PAGE)


class SpooledCore:
    """A core in an anonymous file; `path` can be opened as long as this object lives."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("triage-core", os.MFD_CLOEXEC) if hasattr(os, "memfd_create") else _unlinked()
        self.path = (
            f"/proc/{os.getpid()}/fd/{self.fd}" if os.path.exists(f"/proc/self/fd/{self.fd}") else f"/dev/fd/{self.fd}"
        )
        self.is_partial = False
        self.size = 0

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.close(self.fd)


def _unlinked() -> int:
    with tempfile.TemporaryFile(prefix="triage-core-") as file:
        return os.dup(file.fileno())


def spool_core(stream: BinaryIO, cap: int = CAP) -> tuple[SpooledCore, bytes]:
    """Copy the whole stream and return it with its first bytes; a damaged stream gives a core that is cut."""
    core = SpooledCore()
    first = b""
    position = spent = 0
    wanted: list[tuple[int, int]] | None = None
    notes = 0
    while piece := stream.read(_PIECE):
        if not first:
            first, notes = piece[:_PAGE], min(_HEAD, elf.notes_end(piece))
        if position >= notes and spent + len(piece) > cap and wanted is None:
            wanted = _wanted(core, position)
            core.is_partial = True
        spent += _write(core.fd, position, piece, wanted)
        position += len(piece)
        if spent > 2 * cap + notes + _PIECE:
            break
    os.ftruncate(core.fd, position)
    core.size = position
    return core, first


def _write(fd: int, position: int, piece: bytes, wanted: list[tuple[int, int]] | None) -> int:
    """Write the wanted pages that are not zero, and return how many bytes they are."""
    spent = start = 0
    if not any(piece[:64]) and piece.count(0) == len(piece):
        return 0  # most of a core with many threads
    view = memoryview(piece)
    while start < len(piece):
        end = min(len(piece), start + _PAGE)
        page = view[start:end]
        if page != _ZEROS[: len(page)] and (wanted is None or _is_wanted(wanted, position + start, position + end)):
            os.pwrite(fd, page, position + start)
            spent += len(page)
        start = end
    return spent


def _is_wanted(wanted: list[tuple[int, int]], start: int, end: int) -> bool:
    from bisect import bisect_right

    index = bisect_right(wanted, (end, 0)) - 1
    return index >= 0 and wanted[index][1] > start


class _Head:
    """The bytes copied so far, to be parsed as a core."""

    def __init__(self, fd: int, size: int) -> None:
        self.size = size
        self._fd = fd

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, max(0, min(length, self.size - offset)), offset) if 0 <= offset < self.size else b""


def _wanted(core: SpooledCore, size: int) -> list[tuple[int, int]]:
    """The ranges of the file that stacks need, ascending; [] when the notes cannot be read."""
    try:
        parsed = elf.parse_core(_Head(core.fd, size))
    except CoreError:
        return []
    return sorted(_ranges(parsed))


def _ranges(core: Core) -> list[tuple[int, int]]:
    ranges = []
    for registers in core.threads:
        segment = core.segment_at(registers.sp) or core.segment_at(registers.sp + _STACK // 2)
        if segment is not None:
            start = max(0, registers.sp - segment.start - _PAGE)
            ranges.append((segment.offset + start, segment.offset + min(segment.stored_size, start + _STACK)))
    for module in core.modules:
        segment = core.segment_at(module.start)
        if segment is not None and segment.stored_size:
            ranges.append((segment.offset, segment.offset + min(segment.stored_size, _PAGE)))
    # The small writable parts of libraries hold the linker's lists and libc's messages.
    ranges += [
        (segment.offset, segment.offset + segment.stored_size)
        for segment in core.segments
        if segment.is_writable and segment.stored_size <= 1 << 18
    ]
    return ranges
