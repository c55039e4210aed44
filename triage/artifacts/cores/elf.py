"""Reader of core files: ELF headers and notes with struct alone, in milliseconds whatever the size.

Layouts: <linux/elfcore.h>, <asm/siginfo.h>, fs/binfmt_elf.c; 64-bit little-endian x86-64 and aarch64. Every count and
offset in the file is checked before it is used; what is damaged is left out and named in `Core.notes`.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from triage.artifacts.cores.model import Core, CoreError, Mapping, Module, Registers, Segment, find_segment

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_PT_LOAD, _PT_NOTE = 1, 4
_NT_PRSTATUS, _NT_PRPSINFO, _NT_AUXV, _NT_SIGINFO, _NT_FILE = 1, 3, 6, 0x53494749, 0x46494C45
_AT_PHDR, _AT_ENTRY, _AT_EXECFN = 3, 9, 31
_MACHINES = {62: "x86-64", 183: "aarch64"}
_MAX_SEGMENTS = 1 << 20
_MAX_NOTES = 1 << 28
_MAX_MAPPINGS = 1 << 20
_MAX_THREADS = 1 << 16
_HINT = "copy it again, and check that the disk and `ulimit -c` allow the whole file"


Header = tuple[int, int, int, int, int, int, int, int]


class Bytes(Protocol):
    """The bytes of a core file."""

    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset; fewer at the end of the file."""
        ...


class FileBytes:
    """The bytes of a file, read in place."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset; fewer at the end of the file."""
        return os.pread(self._fd, length, offset) if 0 <= offset < 1 << 62 and length > 0 else b""

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class Memory:
    """The memory of the process, as far as the core holds it."""

    def __init__(self, data: Bytes, segments: tuple[Segment, ...]) -> None:
        self._data = data
        self._segments = segments

    def read(self, address: int, length: int) -> bytes:
        """Return the bytes at an address; fewer where the core does not hold them."""
        segment = self.segment_at(address)
        if segment is None:
            return b""
        skipped = address - segment.start
        return (
            self._data.read(segment.offset + skipped, min(length, segment.stored_size - skipped))
            if skipped < segment.stored_size
            else b""
        )

    def segment_at(self, address: int) -> Segment | None:
        """Return the segment that holds an address."""
        return find_segment(self._segments, address)

    def segment_above(self, address: int) -> Segment | None:
        """Return the next segment that starts after an address."""
        index = bisect_right(self._segments, address, key=lambda segment: segment.start)
        return self._segments[index] if index < len(self._segments) else None

    def string(self, address: int, limit: int = 4096) -> str:
        """Return the text at an address, up to its NUL."""
        return self.read(address, limit).partition(b"\0")[0].decode("utf-8", "replace")


@dataclass
class _Notes:
    """The contents of the notes, filled in while they are read."""

    threads: list[Registers] = field(default_factory=list)
    mappings: list[Mapping] = field(default_factory=list)
    auxv: dict[int, int] = field(default_factory=dict)
    signal: int = 0
    code: int | None = None
    address: int | None = None
    sender: int | None = None
    pid: int | None = None
    command: str = ""
    damage: list[str] = field(default_factory=list)


def parse_core(data: Bytes) -> Core:
    """Parse a core file.

    Raises CoreError for other files, for cores of other machines, and for cores that end before their notes.
    """
    machine, headers = _headers(data)
    segments = tuple(
        sorted((_segment(header) for header in headers if header[0] == _PT_LOAD), key=lambda segment: segment.start)
    )
    notes = _read_notes(data, machine, headers)
    if not notes.threads:
        raise CoreError("the core file ends before its notes, so not even the signal is known", hint=_HINT)
    memory = Memory(data, segments)
    modules = _modules(notes.mappings, memory)
    return Core(
        machine=machine,
        size=data.size,
        expected_size=max((header[2] + header[5] for header in headers if header[2] + header[5] < 1 << 60), default=0),
        pid=notes.pid if notes.pid else notes.threads[0].tid,
        command=notes.command,
        program=memory.string(notes.auxv[_AT_EXECFN]) if notes.auxv.get(_AT_EXECFN) else "",
        signal=notes.signal,
        code=notes.code,
        address=notes.address,
        sender=notes.sender,
        threads=tuple(notes.threads),
        segments=segments,
        mappings=tuple(notes.mappings),
        modules=modules,
        executable=_executable(modules, notes),
        notes=tuple(dict.fromkeys(notes.damage)),
    )


def _read_notes(data: Bytes, machine: str, headers: list[Header]) -> _Notes:
    notes = _Notes()
    for header in headers:
        if header[0] == _PT_NOTE and header[5] > _MAX_NOTES:
            notes.damage.append("a note segment of impossible size was left out")
        elif header[0] == _PT_NOTE:
            for kind, desc in _notes(data, header[2], header[5], notes.damage):
                _take(notes, machine, kind, desc)
    return notes


def notes_end(head: bytes) -> int:
    """Return the offset at which the notes of a core end, by its first bytes; 0 when it is unknown."""
    try:
        return max((end for _, end in find_notes(_Head(head))), default=0)
    except CoreError:
        return 0


def find_notes(data: Bytes) -> list[tuple[int, int]]:
    """Return where the notes of a core start and end in the file. Raises CoreError."""
    _, headers = _headers(data)
    return [(header[2], header[2] + header[5]) for header in headers if header[0] == _PT_NOTE]


class _Head:
    """The first bytes of a file."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._bytes = data

    def read(self, offset: int, length: int) -> bytes:
        return self._bytes[offset : offset + length]


def _headers(data: Bytes) -> tuple[str, list[Header]]:
    head = data.read(0, _EHDR.size)
    if head[:4] != b"\x7fELF":
        raise CoreError("it is not an ELF file", hint="give a core file of the kernel, gcore or systemd-coredump")
    if head[4:5] == b"\x01":
        raise CoreError(
            "it is the core of a 32-bit process, which is not supported",
            hint="gdb on such a machine shows its backtrace",
        )
    if head[5:6] == b"\x02":
        raise CoreError(
            "it is the core of a big-endian machine, which is not supported", hint="gdb-multiarch shows its backtrace"
        )
    if len(head) < _EHDR.size:
        raise CoreError("the core file ends within its first header", hint=_HINT)
    _, kind, machine, _, _, phoff, shoff, _, _, phentsize, phnum, _, _, _ = _EHDR.unpack(head)
    if kind != 4:
        raise CoreError("it is an ELF file, but not a core", hint="give the core file here and the program with --exe")
    if machine not in _MACHINES:
        raise CoreError(
            f"it comes from an unsupported machine (ELF machine {machine})",
            hint="x86-64 and aarch64 are supported",
        )
    if phnum == 0xFFFF:  # PN_XNUM: the number stands in the first section header
        section = data.read(shoff, 64)
        phnum = struct.unpack_from("<I", section, 44)[0] if len(section) == 64 else 0
    if phentsize != _PHDR.size or not 0 < phnum <= _MAX_SEGMENTS:
        raise CoreError("its program headers are damaged", hint=_HINT)
    table = data.read(phoff, phnum * _PHDR.size)
    return _MACHINES[machine], list(_PHDR.iter_unpack(table[: len(table) // _PHDR.size * _PHDR.size]))


def _segment(header: Header) -> Segment:
    _, flags, offset, start, _, stored_size, size, _ = header
    return Segment(start, start + max(size, stored_size), offset, stored_size, flags)


def _notes(data: Bytes, offset: int, size: int, damage: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the type and content of each note in a segment."""
    content = data.read(offset, size)
    if len(content) < size:
        damage.append("the file ends within its notes")
    position = 0
    while position + _NOTE.size <= len(content):
        name_size, desc_size, kind = _NOTE.unpack_from(content, position)
        start = position + _NOTE.size + (name_size + 3 & ~3)
        end = start + desc_size
        if end > len(content):
            damage.append("a note reaches beyond its segment")
            return
        yield kind, content[start:end]
        position = start + (desc_size + 3 & ~3)


def _take(notes: _Notes, machine: str, kind: int, desc: bytes) -> None:
    """Fill in what one note contains."""
    if kind == _NT_PRSTATUS and len(desc) >= 328 and len(notes.threads) < _MAX_THREADS:
        if not notes.threads and not notes.signal:
            notes.signal = struct.unpack_from("<h", desc, 12)[0]
        notes.threads.append(_registers(machine, desc))
    elif kind == _NT_PRPSINFO and len(desc) >= 136:
        notes.pid = struct.unpack_from("<i", desc, 24)[0]
        name = desc[40:56].partition(b"\0")[0].decode("utf-8", "replace")
        notes.command = desc[56:136].replace(b"\0", b" ").decode("utf-8", "replace").strip() or name
    elif kind == _NT_SIGINFO and len(desc) >= 24 and notes.code is None:
        signal, _, code = struct.unpack_from("<iii", desc, 0)
        notes.signal, notes.code = signal or notes.signal, code
        if code <= 0:
            notes.sender = struct.unpack_from("<i", desc, 16)[0]
        elif code != 128 and signal in (4, 5, 7, 8, 11):
            notes.address = struct.unpack_from("<Q", desc, 16)[0]
    elif kind == _NT_AUXV and not notes.auxv:
        notes.auxv = dict(struct.iter_unpack("<QQ", desc[: len(desc) // 16 * 16]))
    elif kind == _NT_FILE and not notes.mappings:
        notes.mappings = _mappings(desc, notes.damage)


def _registers(machine: str, desc: bytes) -> Registers:
    tid = struct.unpack_from("<i", desc, 32)[0]
    if machine == "aarch64":
        values = struct.unpack_from("<33Q", desc, 112) if len(desc) >= 112 + 33 * 8 else (0,) * 33
        lock = _lock(values[8] == 98, values[0], values[1], values[2])
        return Registers(tid, pc=values[32], sp=values[31], fp=values[29], link=values[30], lock=lock)
    values = struct.unpack_from("<27Q", desc, 112)
    lock = _lock(values[15] == 202, values[14], values[13], values[12])
    return Registers(tid, pc=values[16], sp=values[19], fp=values[4], lock=lock)


def _lock(is_futex: bool, address: int, operation: int, value: int) -> int:
    """The address of a FUTEX_WAIT for a lock with waiters (2), as glibc's mutexes call it; 0 for all else."""
    return address if is_futex and not operation & 0x7F and value & 0xFFFFFFFF == 2 else 0


def _mappings(desc: bytes, damage: list[str]) -> list[Mapping]:
    """NT_FILE: count, page size, (start, end, offset in pages) each, then the names, each with its NUL."""
    if len(desc) < 16:
        return []
    count, page = struct.unpack_from("<QQ", desc, 0)
    if count > _MAX_MAPPINGS or 16 + count * 24 > len(desc) or not 0 < page <= 1 << 20:
        damage.append("the list of mapped files is damaged")
        return []
    names = desc[16 + count * 24 :].split(b"\0")
    ranges = struct.iter_unpack("<QQQ", desc[16 : 16 + count * 24])
    mappings = [
        Mapping(start, end, pages * page, name.decode("utf-8", "surrogateescape"))
        for (start, end, pages), name in zip(ranges, names, strict=False)
        if start < end
    ]
    if len(mappings) < count:
        damage.append("the list of mapped files is cut short")
    return mappings


def _modules(mappings: list[Mapping], memory: Memory) -> tuple[Module, ...]:
    """Mapped files with an ELF header in memory, or with an executable part where the first page is not stored."""
    first: dict[str, Mapping] = {}
    end: dict[str, int] = {}
    for mapping in mappings:
        if mapping.offset == 0 and mapping.path not in first:
            first[mapping.path] = mapping
        if mapping.path in first and mapping.end - first[mapping.path].start < 1 << 36:
            end[mapping.path] = max(end.get(mapping.path, 0), mapping.end)
    code = {
        mapping.path
        for mapping in mappings
        if (segment := memory.segment_at(mapping.start)) is not None and segment.is_executable
    }
    modules = []
    for path, mapping in first.items():
        if path not in end or path.startswith(("/dev/", "/SYSV", "/memfd:", "[", "socket:")):
            continue  # of impossible length, or not a program
        page = memory.read(mapping.start, 4096)
        if page[:4] != b"\x7fELF" and (page or path not in code):
            continue
        address, build_id = _parse_first_page(page)
        modules.append(Module(path, mapping.start, end[path], mapping.start - address, build_id))
    return tuple(sorted(modules, key=lambda module: module.start))


def _parse_first_page(page: bytes) -> tuple[int, str]:
    """The address that the first page of a module has in its own numbering, and its build-id."""
    if len(page) < _EHDR.size:
        return 0, ""
    phoff, count = struct.unpack_from("<Q", page, 32)[0], struct.unpack_from("<H", page, 56)[0]
    if phoff + count * _PHDR.size > len(page):
        return 0, ""
    address: int | None = None
    build_id = ""
    for kind, _, offset, vaddr, _, size, _, _ in _PHDR.iter_unpack(page[phoff : phoff + count * _PHDR.size]):
        if kind == _PT_LOAD and offset == 0 and address is None:
            address = vaddr
        elif kind == _PT_NOTE and offset + size <= len(page):
            build_id = build_id or parse_build_id(page[offset : offset + size])
    return address or 0, build_id


def parse_build_id(notes: bytes) -> str:
    """Return the build-id in a segment of notes, "" for none."""
    position = 0
    while position + _NOTE.size <= len(notes):
        name_size, desc_size, kind = _NOTE.unpack_from(notes, position)
        start = position + _NOTE.size + (name_size + 3 & ~3)
        if (
            kind == 3
            and notes[position + _NOTE.size :][:3] == b"GNU"
            and 8 <= desc_size <= 64
            and start + desc_size <= len(notes)
        ):
            return notes[start : start + desc_size].hex()
        position = start + (desc_size + 3 & ~3)
    return ""


def _executable(modules: tuple[Module, ...], notes: _Notes) -> Module | None:
    """The module that holds the program's entry point."""
    for key in (_AT_PHDR, _AT_ENTRY):
        address = notes.auxv.get(key)
        module = next((module for module in modules if address and module.start <= address < module.end), None)
        if module is not None:
            return module
    return None
