"""The programs and libraries of a core on this machine: at the paths in the core, and only with the same build-id."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from triage.artifacts.cores.model import Core, Module
from triage.artifacts.cores.symbols import Symbols, build_id_of, load_symbols


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
