"""The programs and libraries of a core on this machine: looked for where the core says, and believed only by their
build-id.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from triage.artifacts.cores.model import Core, Module
from triage.artifacts.cores.symbols import Symbols, build_id_of, load


@dataclass(frozen=True, slots=True)
class Where:
    """What the user says about places: the program, a directory that stands for `/`, a directory of debug files."""

    exe: str | None = None
    sysroot: str | None = None
    debug_dir: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Local files by the paths in the core. `wrong` have another build-id, `missing` are not there, `unproved` have
    none in the core.

    `debug`: the files with the symbols that were stripped from some of them.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    debug: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()

    def symbols(self, module: Module) -> Symbols | None:
        path = self.files.get(module.path)
        return symbols(path, self.debug.get(module.path, "")) if path else None


@functools.lru_cache(maxsize=64)
def symbols(path: str, debug: str = "") -> Symbols | None:
    """Those of the debug file where there is one; the code is in the file itself."""
    own, apart = load(path), load(debug) if debug else None
    if own is None or apart is None:
        return own or apart
    return replace(apart, objects={**apart.objects, **own.objects}, loads=own.loads, path=own.path)


def find(core: Core, where: Where) -> Found:
    """Look for every module. A file with another build-id is never used."""
    files: dict[str, str] = {}
    debug: dict[str, str] = {}
    wrong: list[str] = []
    missing: list[str] = []
    unproved: list[str] = []
    for module in core.modules:
        path = _place(core, module, where)
        build_id = build_id_of(path) if path else None
        if path is None or build_id is None:
            missing.append(module.path)
        elif module.build_id and build_id and module.build_id != build_id:
            wrong.append(module.path)
        else:
            files[module.path] = path
            if apart := _debug(module.build_id, where):
                debug[module.path] = apart
            if not (module.build_id and build_id):
                unproved.append(module.path)
    return Found(files, debug, tuple(wrong), tuple(missing), tuple(unproved))


def _debug(build_id: str, where: Where) -> str:
    """The debug file of a build-id, where gdb looks for it too."""
    place = where.debug_dir or (where.sysroot or "") + "/usr/lib/debug"
    path = f"{place.rstrip('/')}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    return path if len(build_id) > 8 and build_id_of(path) == build_id else ""


def _place(core: Core, module: Module, where: Where) -> str | None:
    if where.exe is not None and module is core.executable:
        return where.exe
    if module.deleted or not module.path.startswith("/") or ".." in PurePosixPath(module.path).parts:
        return None
    return where.sysroot.rstrip("/") + module.path if where.sysroot else module.path
