"""The programs and libraries of a core on this machine, with their ELF symbol tables.

Files are looked for at the paths in the core, and only used with the same build-id.
"""

from __future__ import annotations

import functools
import mmap
import os
import stat
import struct
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from triage.artifacts.cores.elf import parse_build_id
from triage.artifacts.cores.model import Core, Module

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


@dataclass(frozen=True, slots=True)
class SearchPaths:
    """Paths from the user: the program, a directory that stands for `/`, a directory of debug files."""

    exe: str | None = None
    sysroot: str | None = None
    debug_dir: str | None = None


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Local files by the paths in the core, and the paths without a usable file.

    `debug` are the files with stripped symbols. `wrong` files have another build-id, `missing` ones do not exist;
    `unverified` ones are used, but the core or the file has no build-id.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    debug: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()

    def symbols(self, module: Module) -> Symbols | None:
        """Return the symbols of a module, None without a usable file."""
        path = self.files.get(module.path)
        return _symbols(path, self.debug.get(module.path, "")) if path else None


@functools.lru_cache(maxsize=64)
def _symbols(path: str, debug: str) -> Symbols | None:
    """The symbols of the debug file, or without one of the file itself, which holds the code."""
    own, stripped = load_symbols(path), load_symbols(debug) if debug else None
    if own is None or stripped is None:
        return own or stripped
    return replace(stripped, objects={**stripped.objects, **own.objects}, loads=own.loads, path=own.path)


def find_local_files(core: Core, search: SearchPaths) -> LocalFiles:
    """Look for the file of every module. A file with another build-id is never used."""
    files: dict[str, str] = {}
    debug: dict[str, str] = {}
    wrong: list[str] = []
    missing: list[str] = []
    unverified: list[str] = []
    for module in core.modules:
        path = _path_of(core, module, search)
        build_id = build_id_of(path) if path else None
        if path is None or build_id is None:
            missing.append(module.path)
        elif module.build_id and build_id and module.build_id != build_id:
            wrong.append(module.path)
        else:
            files[module.path] = path
            if debug_path := _debug_path(module.build_id, search):
                debug[module.path] = debug_path
            if not (module.build_id and build_id):
                unverified.append(module.path)
    return LocalFiles(files, debug, tuple(wrong), tuple(missing), tuple(unverified))


def _debug_path(build_id: str, search: SearchPaths) -> str:
    """The debug file of a build-id, in the directory where gdb looks for it; "" for none."""
    directory = search.debug_dir or (search.sysroot or "") + "/usr/lib/debug"
    path = f"{directory.rstrip('/')}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    return path if len(build_id) > 8 and build_id_of(path) == build_id else ""


def _path_of(core: Core, module: Module, search: SearchPaths) -> str | None:
    if search.exe is not None and module is core.executable:
        return search.exe
    if module.is_deleted or not module.path.startswith("/") or ".." in PurePosixPath(module.path).parts:
        return None
    return search.sysroot.rstrip("/") + module.path if search.sysroot else module.path
