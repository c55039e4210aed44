"""Functions of a program or library on this machine, from its ELF symbol tables."""

from __future__ import annotations

import mmap
import os
import stat
import struct
from bisect import bisect_right
from dataclasses import dataclass

from triage.artifacts.cores.elf import parse_build_id

_SHDR = struct.Struct("<IIQQQQIIQQ")
_SYM = struct.Struct("<IBBHQQ")
_SYMTAB, _DYNAMIC, _DYNSYM = 2, 6, 11
_DT_SONAME = 14
_MAX_SYMBOLS = 4_000_000
_MAX_SECTIONS = 1 << 16
_ELF_64_LITTLE = b"\x7fELF\x02\x01"


@dataclass(frozen=True, slots=True)
class Symbols:
    """Functions in the order of their addresses, some objects by name, and the parts of the file that hold code."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    names: tuple[str, ...]
    objects: dict[str, int]
    loads: tuple[tuple[int, int, int], ...]
    path: str

    def at(self, address: int) -> tuple[str, int] | None:
        """Return the function that holds an address (in the file's own numbering) and the offset in it."""
        index = bisect_right(self.starts, address) - 1
        if index < 0 or not (self.starts[index] <= address < max(self.ends[index], self.starts[index] + 1)):
            return None
        return self.names[index], address - self.starts[index]

    def code_before(self, address: int, length: int) -> bytes:
        """Return the code right before an address."""
        for offset, vaddr, size in self.loads:
            if vaddr + length <= address <= vaddr + size:
                with open(self.path, "rb") as file:
                    file.seek(offset + address - vaddr - length)
                    return file.read(length)
        return b""


def _is_regular(path: str) -> bool:
    """Whether it is a file: a pipe or a device that a hostile core names must not be opened."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def build_id_of(path: str) -> str | None:
    """Return the build-id of a file, "" if it has none, None for other files than readable 64-bit ELF files."""
    if not _is_regular(path):
        return None
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:6] != _ELF_64_LITTLE:
                return None
            phoff, count = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<H", head, 56)[0]
            file.seek(phoff)
            table = file.read(count * 56)
            for kind, _, offset, _, _, size, _, _ in struct.iter_unpack("<IIQQQQQQ", table[: len(table) // 56 * 56]):
                if kind == 4 and size < 1 << 16:
                    file.seek(offset)
                    if build_id := parse_build_id(file.read(size)):
                        return build_id
    except (OSError, ValueError, struct.error):
        return None
    return ""


def soname_of(path: str) -> str:
    """Return the name by which the linker knows a library, "" when it has none."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[:6] != _ELF_64_LITTLE:
                return ""
            shoff, shnum = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
            sections = list(_SHDR.iter_unpack(data[shoff : shoff + shnum * _SHDR.size]))
            dynamic = next(
                (section for section in sections if section[1] == _DYNAMIC and section[6] < len(sections)), None
            )
            if dynamic is None:
                return ""
            entries = data[dynamic[4] : dynamic[4] + dynamic[5] // 16 * 16]
            place = next((value for tag, value in struct.iter_unpack("<QQ", entries) if tag == _DT_SONAME), None)
            start = sections[dynamic[6]][4]
            name = b"" if place is None else data[start + place : start + place + 256].partition(b"\0")[0]
            return name.decode("utf-8", "replace")
    except (OSError, ValueError, struct.error):
        return ""


def load_symbols(path: str) -> Symbols | None:
    """Return the symbols of a file, None when it has none that can be read."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _load(path, data)
    except (OSError, ValueError, struct.error):
        return None


def _load(path: str, data: mmap.mmap) -> Symbols | None:
    if data[:6] != _ELF_64_LITTLE:
        return None
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phnum, _, shnum = struct.unpack_from("<HHH", data, 56)
    if shnum > _MAX_SECTIONS or shoff + shnum * _SHDR.size > len(data):
        return None
    sections = list(_SHDR.iter_unpack(data[shoff : shoff + shnum * _SHDR.size]))
    loads = tuple(
        (offset, vaddr, size)
        for kind, _, offset, vaddr, _, size, _, _ in struct.iter_unpack("<IIQQQQQQ", data[phoff : phoff + phnum * 56])
        if kind == 1
    )
    functions: dict[int, tuple[int, str]] = {}
    objects: dict[str, int] = {}
    for section in sections:
        if section[1] in (_SYMTAB, _DYNSYM) and section[6] < len(sections):
            _add_symbols(data, section, sections[section[6]], functions, objects)
    if not functions:
        return None
    starts = tuple(sorted(functions))
    return Symbols(
        starts,
        tuple(start + functions[start][0] for start in starts),
        tuple(functions[start][1] for start in starts),
        objects,
        loads,
        path,
    )


def _add_symbols(
    data: mmap.mmap,
    section: tuple[int, ...],
    strings: tuple[int, ...],
    functions: dict[int, tuple[int, str]],
    objects: dict[str, int],
) -> None:
    offset, size = section[4], section[5]
    if offset + size > len(data) or size // _SYM.size > _MAX_SYMBOLS or strings[4] + strings[5] > len(data):
        return
    text = data[strings[4] : strings[4] + strings[5]]
    for name, info, _, index, value, length in _SYM.iter_unpack(data[offset : offset + size // _SYM.size * _SYM.size]):
        kind = info & 15
        if not index or not value or kind not in (1, 2, 10) or name >= len(text):
            continue
        if kind == 1:
            if text.startswith(b"__abort_msg", name):
                objects["__abort_msg"] = value
            continue
        old = functions.get(value)
        if old is None or old[0] <= length:
            new = (length, text[name : text.find(b"\0", name)].decode("utf-8", "replace"))
            if old is None or old[0] < length or _plainer(new[1], old[1]):
                functions[value] = new


def _plainer(name: str, other: str) -> bool:
    """Whether a name of a function is the one that people use: `free`, not `__libc_free`."""
    return (len(name) - len(name.lstrip("_")), len(name), name) < (
        len(other) - len(other.lstrip("_")),
        len(other),
        other,
    )
