"""Our own reader of core files: ELF headers and notes with struct alone, in milliseconds whatever the size.

Layouts: <linux/elfcore.h>, <asm/siginfo.h>, fs/binfmt_elf.c. 64-bit little-endian x86-64 and aarch64. Every count and
offset in the file is
checked before it is used; what is damaged is left out and said.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from triage.artifacts.cores.model import Core, CoreError, Mapping, Module, Registers, Segment

_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_PT_LOAD, _PT_NOTE = 1, 4
_NT_PRSTATUS, _NT_PRPSINFO, _NT_AUXV, _NT_SIGINFO, _NT_FILE = 1, 3, 6, 0x53494749, 0x46494C45
_AT_PHDR, _AT_ENTRY, _AT_EXECFN = 3, 9, 31
_MACHINES = {62: "x86-64", 183: "aarch64"}
_MOST_SEGMENTS = 1 << 20
_MOST_NOTES = 1 << 28
_MOST_MAPPINGS = 1 << 20
_MOST_THREADS = 1 << 16
_HINT = "copy it again, and see that the disk and `ulimit -c` have room for the whole file"


class Bytes(Protocol):
    """A core file's bytes. `read` gives fewer than asked for at the end of the file."""

    size: int

    def read(self, offset: int, length: int) -> bytes: ...


class FileBytes:
    """A file read in place."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, length, offset) if 0 <= offset < 1 << 62 and length > 0 else b""

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> FileBytes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Memory:
    """The process's memory, as far as the core holds it."""

    def __init__(self, data: Bytes, segments: tuple[Segment, ...]) -> None:
        self._data = data
        self._segments = segments

    def read(self, address: int, length: int) -> bytes:
        """The bytes at an address; fewer where the core does not hold them."""
        segment = self.segment_at(address)
        if segment is None:
            return b""
        skipped = address - segment.start
        return (
            self._data.read(segment.offset + skipped, min(length, segment.kept - skipped))
            if skipped < segment.kept
            else b""
        )

    def segment_at(self, address: int) -> Segment | None:
        index = bisect_right(self._segments, address, key=lambda segment: segment.start) - 1
        found = self._segments[index] if index >= 0 else None
        return found if found is not None and address < found.end else None

    def segment_above(self, address: int) -> Segment | None:
        """The next segment that starts behind an address."""
        index = bisect_right(self._segments, address, key=lambda segment: segment.start)
        return self._segments[index] if index < len(self._segments) else None

    def string(self, address: int, most: int = 4096) -> str:
        """The text up to its NUL."""
        return self.read(address, most).partition(b"\0")[0].decode("utf-8", "replace")


@dataclass
class _Notes:
    """What the notes say, filled in as they are met."""

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


def read(data: Bytes) -> Core:
    """The facts of a core file. Raises CoreError for what is none, is of another machine, or ends before its notes."""
    machine, headers = _headers(data)
    segments = tuple(
        sorted((_segment(header) for header in headers if header[0] == _PT_LOAD), key=lambda segment: segment.start)
    )
    found = _Notes()
    for header in headers:
        if header[0] == _PT_NOTE:
            if header[5] > _MOST_NOTES:
                found.damage.append("a note segment of impossible size was left out")
                continue
            for kind, desc in _notes(data, header[2], header[5], found.damage):
                _take(found, machine, kind, desc)
    if not found.threads:
        raise CoreError("the core file ends before its notes, so not even the signal is known", hint=_HINT)
    memory = Memory(data, segments)
    modules = _modules(found.mappings, memory)
    executable = _executable(modules, found)
    return Core(
        machine=machine,
        size=data.size,
        expected_size=max((header[2] + header[5] for header in headers if header[2] + header[5] < 1 << 60), default=0),
        pid=found.pid if found.pid else found.threads[0].tid,
        command=found.command,
        program=memory.string(found.auxv.get(_AT_EXECFN, 0)) if found.auxv.get(_AT_EXECFN) else "",
        signal=found.signal,
        code=found.code,
        address=found.address,
        sender=found.sender,
        threads=tuple(found.threads),
        segments=segments,
        mappings=tuple(found.mappings),
        modules=modules,
        executable=executable,
        notes=tuple(dict.fromkeys(found.damage)),
    )


def notes_end(head: bytes) -> int:
    """Where the notes of a core end, by its first bytes; 0 when they do not tell."""
    try:
        _, headers = _headers(_Head(head))
    except CoreError:
        return 0
    return max((header[2] + header[5] for header in headers if header[0] == _PT_NOTE), default=0)


class _Head:
    """The first bytes of a file."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._bytes = data

    def read(self, offset: int, length: int) -> bytes:
        return self._bytes[offset : offset + length]


Header = tuple[int, int, int, int, int, int, int, int]


def _headers(data: Bytes) -> tuple[str, list[Header]]:
    head = data.read(0, _EHDR.size)
    if head[:4] != b"\x7fELF":
        raise CoreError("it is no ELF file", hint="give a core file as the kernel, gcore or systemd-coredump writes it")
    if head[4:5] == b"\x01":
        raise CoreError(
            "it is the core of a 32-bit process, which is not read",
            hint="gdb on a machine of that kind shows its backtrace",
        )
    if head[5:6] == b"\x02":
        raise CoreError(
            "it is the core of a big-endian machine, which is not read", hint="gdb-multiarch shows its backtrace"
        )
    if len(head) < _EHDR.size:
        raise CoreError("the core file ends within its first header", hint=_HINT)
    _, kind, machine, _, _, phoff, shoff, _, _, phentsize, phnum, _, _, _ = _EHDR.unpack(head)
    if kind != 4:
        raise CoreError("it is an ELF file, but no core", hint="give the core file here and the program with --exe")
    if machine not in _MACHINES:
        raise CoreError(
            f"it comes from a machine that is not known here (ELF machine {machine})",
            hint="x86-64 and aarch64 are read",
        )
    if phnum == 0xFFFF:  # PN_XNUM: the number stands in the first section header
        section = data.read(shoff, 64)
        phnum = struct.unpack_from("<I", section, 44)[0] if len(section) == 64 else 0
    if phentsize != _PHDR.size or not 0 < phnum <= _MOST_SEGMENTS:
        raise CoreError("its program headers are damaged", hint=_HINT)
    table = data.read(phoff, phnum * _PHDR.size)
    return _MACHINES[machine], list(_PHDR.iter_unpack(table[: len(table) // _PHDR.size * _PHDR.size]))


def _segment(header: Header) -> Segment:
    _, flags, offset, start, _, kept, size, _ = header
    return Segment(start, start + max(size, kept), offset, kept, flags)


def _notes(data: Bytes, offset: int, size: int, damage: list[str]) -> Iterator[tuple[int, bytes]]:
    """The notes in a segment: type and content."""
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


def _take(found: _Notes, machine: str, kind: int, desc: bytes) -> None:
    if kind == _NT_PRSTATUS and len(desc) >= 328 and len(found.threads) < _MOST_THREADS:
        if not found.threads and not found.signal:
            found.signal = struct.unpack_from("<h", desc, 12)[0]
        found.threads.append(_registers(machine, desc))
    elif kind == _NT_PRPSINFO and len(desc) >= 136:
        found.pid = struct.unpack_from("<i", desc, 24)[0]
        name = desc[40:56].partition(b"\0")[0].decode("utf-8", "replace")
        found.command = desc[56:136].replace(b"\0", b" ").decode("utf-8", "replace").strip() or name
    elif kind == _NT_SIGINFO and len(desc) >= 24 and found.code is None:
        signal, _, code = struct.unpack_from("<iii", desc, 0)
        found.signal, found.code = signal or found.signal, code
        if code <= 0:
            found.sender = struct.unpack_from("<i", desc, 16)[0]
        elif code != 128 and signal in (4, 5, 7, 8, 11):
            found.address = struct.unpack_from("<Q", desc, 16)[0]
    elif kind == _NT_AUXV and not found.auxv:
        found.auxv = dict(struct.iter_unpack("<QQ", desc[: len(desc) // 16 * 16]))
    elif kind == _NT_FILE and not found.mappings:
        found.mappings = _mappings(desc, found.damage)


def _registers(machine: str, desc: bytes) -> Registers:
    tid = struct.unpack_from("<i", desc, 32)[0]
    if machine == "aarch64":
        values = struct.unpack_from("<33Q", desc, 112) if len(desc) >= 112 + 33 * 8 else (0,) * 33
        lock = _lock(values[8] == 98, values[0], values[1], values[2])
        return Registers(tid, pc=values[32], sp=values[31], fp=values[29], link=values[30], lock=lock)
    values = struct.unpack_from("<27Q", desc, 112)
    lock = _lock(values[15] == 202, values[14], values[13], values[12])
    return Registers(tid, pc=values[16], sp=values[19], fp=values[4], lock=lock)


def _lock(futex: bool, address: int, operation: int, value: int) -> int:
    """The address of a FUTEX_WAIT for a lock with waiters (2), as glibc's mutexes call it; 0 for all else."""
    return address if futex and not operation & 0x7F and value & 0xFFFFFFFF == 2 else 0


def _mappings(desc: bytes, damage: list[str]) -> list[Mapping]:
    """NT_FILE: count, page size, (start, end, offset in pages) each, then the names, each with its NUL."""
    if len(desc) < 16:
        return []
    count, page = struct.unpack_from("<QQ", desc, 0)
    if count > _MOST_MAPPINGS or 16 + count * 24 > len(desc) or not 0 < page <= 1 << 20:
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
    """Mapped files whose first page is an ELF header in memory, or that have an executable part."""
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
        if (segment := memory.segment_at(mapping.start)) is not None and segment.executable
    }
    modules = []
    for path, mapping in first.items():
        if path not in end or path.startswith(("/dev/", "/SYSV", "/memfd:", "[", "socket:")):
            continue  # of impossible length, or no program
        page = memory.read(mapping.start, 4096)
        if page[:4] != b"\x7fELF" and (page or path not in code):
            continue
        address, build_id = _identity(page)
        modules.append(Module(path, mapping.start, end[path], mapping.start - address, build_id))
    return tuple(sorted(modules, key=lambda module: module.start))


def _identity(page: bytes) -> tuple[int, str]:
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
            build_id = build_id or _build_id(page[offset : offset + size])
    return address or 0, build_id


def _build_id(notes: bytes) -> str:
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


def _executable(modules: tuple[Module, ...], found: _Notes) -> Module | None:
    """The module that holds the program's entry point."""
    for key in (_AT_PHDR, _AT_ENTRY):
        address = found.auxv.get(key)
        module = next((module for module in modules if address and module.start <= address < module.end), None)
        if module is not None:
            return module
    return None
