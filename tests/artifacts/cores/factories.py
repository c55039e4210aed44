"""Core files of x86-64, written byte by byte as Linux writes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from triage.artifacts.cores import elf
from triage.artifacts.cores.model import Core

PRSTATUS, PRPSINFO, AUXV, SIGINFO, FILE = 1, 3, 6, 0x53494749, 0x46494C45
READ_ONLY, CODE, WRITABLE = 4, 5, 6
STACK = 0x7FFF_0000_0000


@dataclass(frozen=True)
class StoredRange:
    """A range of memory; the file holds `content`, the range may be longer."""

    start: int
    content: bytes = bytes(4096)
    flags: int = WRITABLE
    size: int = 0


@dataclass(frozen=True)
class CoreThread:
    """A thread; with `lock` it waits in FUTEX_WAIT for the lock at this address."""

    tid: int = 77
    pc: int = 0x401136
    sp: int = STACK + 0x800
    lock: int = 0


@dataclass(frozen=True)
class CoreFile:
    """A core file. `mappings` are start, end, offset in pages and path; without a `code` there is no NT_SIGINFO."""

    signal: int = 11
    code: int | None = 1
    address: int = 0
    sender: int = 0
    threads: Sequence[CoreThread] = (CoreThread(),)
    ranges: Sequence[StoredRange] = (StoredRange(STACK),)
    mappings: Sequence[tuple[int, int, int, str]] = ()
    auxv: Sequence[tuple[int, int]] = ()
    more_notes: Sequence[tuple[int, bytes]] = field(default=())

    def content(self) -> bytes:
        """Return the bytes of the file."""
        notes = b"".join(_note(kind, description) for kind, description in self._descriptions())
        start = 64 + 56 * (1 + len(self.ranges))
        headers, contents = [struct.pack("<IIQQQQQQ", 4, 0, start, 0, 0, len(notes), 0, 4)], [notes]
        offset = start + len(notes)
        for each in self.ranges:
            size = each.size or len(each.content)
            headers.append(
                struct.pack("<IIQQQQQQ", 1, each.flags, offset, each.start, 0, len(each.content), size, 4096)
            )
            contents.append(each.content)
            offset += len(each.content)
        header = struct.pack(
            "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1 + len(self.ranges), 0, 0, 0
        )
        return b"".join([header, *headers, *contents])

    def parsed(self) -> Core:
        """Return the core as triage parses it."""
        return elf.parse_core(CoreBytes(self.content()))

    def _descriptions(self) -> list[tuple[int, bytes]]:
        threads = [_status(thread, self.signal) for thread in self.threads]
        process = bytearray(136)
        struct.pack_into("<i", process, 24, self.threads[0].tid)
        process[40:45], process[56:64] = b"train", b"./train "
        descriptions = [(PRSTATUS, threads[0]), (PRPSINFO, bytes(process))]
        if self.code is not None:
            information = bytearray(struct.pack("<iiii", self.signal, 0, self.code, 0) + bytes(112))
            struct.pack_into("<i" if self.code <= 0 else "<Q", information, 16, self.sender or self.address)
            descriptions.append((SIGINFO, bytes(information)))
        if self.auxv:
            descriptions.append((AUXV, b"".join(struct.pack("<QQ", *pair) for pair in self.auxv)))
        if self.mappings:
            descriptions.append((FILE, mapped_files(self.mappings)))
        return [*descriptions, *((PRSTATUS, status) for status in threads[1:]), *self.more_notes]


class CoreBytes:
    """The bytes of a core in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset; fewer at the end."""
        return self.data[offset : offset + length] if offset >= 0 and length > 0 else b""


def mapped_files(mappings: Sequence[tuple[int, int, int, str]]) -> bytes:
    """Return the description of an NT_FILE note."""
    ranges = b"".join(struct.pack("<QQQ", *mapping[:3]) for mapping in mappings)
    names = b"".join(path.encode() + b"\0" for *_, path in mappings)
    return struct.pack("<QQ", len(mappings), 4096) + ranges + names


def _note(kind: int, description: bytes) -> bytes:
    return struct.pack("<III", 5, len(description), kind) + b"CORE\0\0\0\0" + description + bytes(-len(description) % 4)


def _status(thread: CoreThread, signal: int) -> bytes:
    status = bytearray(336)
    struct.pack_into("<h", status, 12, signal)
    struct.pack_into("<i", status, 32, thread.tid)
    registers = [0] * 27
    registers[16], registers[19] = thread.pc, thread.sp
    if thread.lock:
        registers[15], registers[14], registers[12] = 202, thread.lock, 2
    struct.pack_into("<27Q", status, 112, *registers)
    return bytes(status)
