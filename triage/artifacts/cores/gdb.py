"""gdb as an unwinder, driven through its machine interface; no code in or next to the files that it reads can run.

`--nx` alone is not enough: with `set auto-load safe-path /` a script section of the binary and PROGRAM-gdb.py still
run. So auto-loading is switched off before any file is read, the environment and the working directory are empty, and
gdb sees only files with the build-id of the core: they are linked into a directory that is its sysroot.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage.artifacts.cores.limited_process import Limits, run_limited
from triage.artifacts.cores.local_files import LocalFiles, SearchPaths, soname_of
from triage.artifacts.cores.model import Core
from triage.base.lazy_re import lazy_re
from triage.stacks.model import HANDLER, Frame, Thread

_SETTINGS = (
    "auto-load off",
    "auto-load safe-path /nonexistent",
    "debuginfod enabled off",
    "index-cache enabled off",
    "auto-load local-gdbinit off",
    "pagination off",
    "confirm off",
    "width 0",
    "height 0",
    "style enabled off",
    "print frame-arguments none",
    "print entry-values no",
    "print elements 64",
    "max-value-size 4096",
    "backtrace limit 256",
    "backtrace past-main off",
    "startup-with-shell off",
    "history save off",
    "may-call-functions off",
)
# Warnings that help no user; the report names missing libraries itself.
_NOISE = (
    "reg-xstate",
    "auto-loading",
    "Unable to find libthread_db",
    "not a symbol",
    "mapping note processing",
    "Could not load shared library symbols",
    "exec file is newer than core",
)
# The grammar of an answer, with each text empty and what is in brackets replaced by a text, the innermost first.
_TEXT = lazy_re(r'"(?:[^"\\]|\\.)*"')
_PAIR = r'[A-Za-z_][\w-]*=""'
_IN_BRACKETS = lazy_re(rf'\{{(?:{_PAIR}(?:,{_PAIR})*)?\}}|\[(?:(?:""|{_PAIR})(?:,(?:""|{_PAIR}))*)?\]')
_ANSWER = lazy_re(rf"\d*\^[\w-]+(?:,{_PAIR})*")
_MOST_BRACKETS = 8
_MAX_FRAMES, _MAX_OTHER_FRAMES = 256, 64
_MAX_THREADS, _MAX_WARNINGS = 1024, 8


@dataclass(frozen=True, slots=True)
class Unwound:
    """The threads that gdb unwound, and remarks on what may be missing."""

    threads: tuple[Thread, ...]
    remarks: tuple[str, ...]


def find_gdb(machine: str = "") -> str | None:
    """Return the path of a gdb for cores of a machine (this one by default), None when it is not installed."""
    own = {"arm64": "aarch64", "x86_64": "x86-64"}.get(platform.machine(), platform.machine())
    return shutil.which("gdb") if machine in ("", own) else shutil.which("gdb-multiarch")


def command_line(gdb: str) -> list[str]:
    """Return the hardened command line; an older gdb ignores the settings that it does not know."""
    settings = [part for setting in _SETTINGS for part in ("-iex", f"set {setting}")]
    return [gdb, "-q", "--nx", "--nh", "--interpreter=mi3", "-iex", "maint set worker-threads 0", *settings]


_ENVIRONMENT = {"HOME": "/nonexistent", "DEBUGINFOD_URLS": "", "LC_ALL": "C", "PATH": "/usr/bin:/bin"}


def unwind(
    gdb: str, path: str, core: Core, files: LocalFiles, search: SearchPaths, limits: Limits = Limits()
) -> Unwound:
    """Unwind every thread with gdb. Failures of gdb become remarks, never exceptions."""
    with tempfile.TemporaryDirectory(prefix="triage-gdb-") as directory:
        exe = link_files(Path(directory), core, files)
        plain = Path(directory) / "core"  # gdb takes the rest of the line as the name, without quotes
        plain.symlink_to(os.path.abspath(path))
        script = _script(str(plain), core, exe, directory, search)
        empty = Path(directory) / "empty"
        empty.mkdir()
        output = run_limited(command_line(gdb), script, limits, str(empty), {**_ENVIRONMENT, "TMPDIR": str(empty)})
    threads, remarks = parse_output(output.text, core)
    if output.stopped_by:
        limit = f"{limits.seconds:g} s" if output.stopped_by == "deadline" else f"{limits.output:,} bytes of output"
        remarks = (*remarks, f"gdb was stopped after {limit}; {len(threads)} of {len(core.threads)} threads were read")
    elif not threads:
        remarks = (*remarks, f"gdb gave no frames (exit status {output.status})")
    return Unwound(threads, remarks)


def link_files(directory: Path, core: Core, files: LocalFiles) -> str | None:
    """Link the verified files and return the path of the program.

    They are linked under `root` at the paths of the core and under `flat` by their names, because the linker knows some
    by other paths.
    """
    root, flat = directory / "root", directory / "flat"
    root.mkdir()
    flat.mkdir()
    for path, file in files.files.items():
        names = {os.path.basename(path), os.path.basename(soname_of(file)) or os.path.basename(path)}
        for link in (root / path.lstrip("/"), *(flat / name for name in sorted(names))):
            link.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(link):
                link.symlink_to(os.path.realpath(file))
    for name in ("lib", "lib64", "bin"):
        if (root / "usr" / name).is_dir() and not (root / name).exists():
            (root / name).symlink_to(root / "usr" / name)
    executable = core.executable
    if executable is None or executable.path not in files.files:
        return None
    return str(root / executable.path.lstrip("/"))


def _script(path: str, core: Core, exe: str | None, root: str, search: SearchPaths) -> str:
    """The commands for gdb. Values of `set` and the name of the core reach to the end of the line, without quotes."""
    lines = [f"-gdb-set sysroot {root}/root", f"-gdb-set solib-search-path {root}/flat"]
    if search.debug_dir and "\n" not in search.debug_dir:
        lines.append(f"-gdb-set debug-file-directory {os.path.abspath(search.debug_dir)}")
    if exe:
        lines.append(f"-file-exec-and-symbols {_quoted(exe)}")
    lines += [f"-target-select core {path}", "-thread-info"]
    for number in range(1, min(len(core.threads), _MAX_THREADS) + 1):
        limit = _MAX_FRAMES if number == 1 else _MAX_OTHER_FRAMES
        lines.append(f"{number}-stack-list-frames --thread {number} 0 {limit - 1}")
    return "\n".join([*lines, "-gdb-exit", ""])


def _quoted(text: str) -> str:
    """A C string, the form of arguments in MI."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def parse_output(text: str, core: Core) -> tuple[tuple[Thread, ...], tuple[str, ...]]:
    """Return the threads in gdb's answers, and its warnings that matter."""
    from pygdbmi import gdbmiparser

    threads: dict[int, Thread] = {}
    ids: dict[str, tuple[int | None, str]] = {}
    lines = [line for line in text.split("\n") if line and line[0] not in "=*("]
    warnings = [line for line in lines if line[0] in "~&@" and "warning: " in line][:_MAX_WARNINGS]
    for line in lines:
        record: dict[str, Any] = gdbmiparser.parse_response(line) if _is_whole(line) else {}
        payload = record.get("payload")
        if not isinstance(payload, dict):
            continue
        if isinstance(payload.get("threads"), list):
            ids = {
                str(item.get("id")): (_tid(str(item.get("target-id", ""))), str(item.get("name", "")))
                for item in payload["threads"]
            }
        stack, token = payload.get("stack"), record.get("token")
        if isinstance(stack, list) and isinstance(token, int):
            threads[token] = _thread(token, stack, core, ids)
    return tuple(threads[number] for number in sorted(threads)), tuple(
        dict.fromkeys(filter(None, map(_warning, warnings)))
    )


def _is_whole(line: str) -> bool:
    """Whether a line is an answer of the machine interface: on one that is cut, the parser may search without end."""
    rest = _TEXT.sub('""', line)
    for _ in range(_MOST_BRACKETS):
        rest = _IN_BRACKETS.sub('""', rest)
    return _ANSWER.fullmatch(rest) is not None


def _warning(line: str) -> str:
    text = line[2:].rstrip('"').replace("\\n", " ").replace('\\"', '"').strip()
    return "" if any(noise in text for noise in _NOISE) else text.removeprefix("warning: ")[:200]


def _tid(target: str) -> int | None:
    _, _, rest = target.partition("LWP ")
    digits = rest.split(")")[0].split(" ")[0]
    return int(digits) if digits.isdecimal() and len(digits) <= 10 else None


def _thread(number: int, stack: list[Any], core: Core, ids: dict[str, tuple[int | None, str]]) -> Thread:
    tid, name = ids.get(str(number), (None, ""))
    registers = core.threads[number - 1] if number <= len(core.threads) else None
    frames: list[Frame] = []
    for item in stack:
        if isinstance(item, dict):
            frames.append(_frame(item, core, called=bool(frames) and frames[-1].function != HANDLER))
    crashed = number == 1 and bool(core.signal)
    return Thread(
        tuple(frames), id=str(number), tid=tid or (registers.tid if registers else None), name=name, crashed=crashed
    )


def _frame(item: dict[str, Any], core: Core, called: bool) -> Frame:
    """A frame. With `called` the address is where the call returns to, so the offset is counted back into the call."""
    function = str(item.get("func", ""))
    if function == HANDLER:
        return Frame(HANDLER)
    address = _number(item.get("addr"))
    module = core.module_at(address) if address is not None else None
    line = str(item.get("line", ""))
    return Frame(
        function="" if function == "??" else function,
        module=module.path if module else str(item.get("from", "")),
        offset=address - module.bias - called if module and address is not None else None,
        address=address,
        file=str(item.get("file", "")),
        line=int(line) if line.isdecimal() and len(line) <= 9 else None,
        build_id=module.build_id if module else "",
        trust="unwound",
    )


def _number(value: object) -> int | None:
    try:
        number = int(str(value), 16)
    except ValueError:
        return None
    return number if 0 <= number < 1 << 64 else None
