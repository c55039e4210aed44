"""One core file: its notes, the frames from gdb where possible, Python's frames from pystack, and deadlocks."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from triage.artifacts.cores import elf, gdb, python_frames, signal_meaning
from triage.artifacts.cores.limited_process import Limits
from triage.artifacts.cores.local_files import LocalFiles, SearchPaths, find_local_files
from triage.artifacts.cores.model import Core
from triage.artifacts.cores.stack_scan import StackScanner, read_abort_message
from triage.stacks.live import locks
from triage.stacks.live.native import to_process
from triage.stacks.model import Stacks
from triage.stacks.signature import Crash, Note, reduce_stacks

_INNERMOST = 8  # frames that may show the crash point
_MAX_PATHS = 6
Remark = tuple[str, str]
"""The code and the sentence of something that the user must know about a report."""
_MUTEX = struct.Struct("<iIi")  # int __lock, unsigned __count, int __owner (glibc's struct_mutex.h, x86-64 and aarch64)
_CONTENDED = 2


@dataclass(frozen=True, slots=True)
class CoreReport:
    """Everything that is known of a core file; `engine`, gdb or notes, is where its frames come from."""

    name: str
    core: Core
    stacks: Stacks
    crash: Crash
    meaning: signal_meaning.Meaning
    engine: str
    files: LocalFiles
    remarks: tuple[Remark, ...]

    @property
    def code(self) -> str:
        """The name of the signal's code, like SEGV_MAPERR."""
        return signal_meaning.code_name(self.core.signal, self.core.code)


def read_core(
    path: str,
    name: str,
    search: SearchPaths = SearchPaths(),
    use_gdb: bool = True,
    use_python: bool = True,
    limits: Limits = Limits(),
) -> CoreReport:
    """Read the core file at `path`, shown as `name`.

    Raises CoreError for other files, OSError for files that cannot be opened.
    """
    with closing(elf.FileBytes(path)) as data:
        core = elf.parse_core(data)
        memory = elf.Memory(data, core.segments)
        files = find_local_files(core, search)
        stacks = _scan_stacks(core, memory, files)
        owners = find_owners(core, memory)
    remarks = _remarks(core, files, search)
    if use_gdb:
        stacks, more = _unwind(path, core, files, search, limits, stacks)
        remarks += more
    engine = "gdb" if stacks.form == "core" else "notes"
    if engine == "notes" and len(stacks.threads[0].frames) > 1:
        message = "all frames but the first come from a scan of the stack, so some may be old; gdb unwinds it exactly"
        remarks.append(("stack-scanned", message))
    if use_python and python_frames.is_python(core):
        threads, more = python_frames.add_python_frames(stacks.threads, path, core, files, search, limits)
        stacks = replace(stacks, threads=threads)
        remarks += more
    remarks += _stripped_remarks(stacks, files)
    if deadlock := describe_deadlock(stacks, owners):
        remarks.append(("core-deadlock", deadlock))
    meaning = signal_meaning.explain_signal(core)
    return CoreReport(
        name, core, stacks, _reduce(stacks, meaning), meaning, engine, files, tuple(dict.fromkeys(remarks))
    )


def _scan_stacks(core: Core, memory: elf.Memory, files: LocalFiles) -> Stacks:
    """The stacks that the core itself shows, without a debugger."""
    return Stacks(
        "core-notes",
        StackScanner(core, memory, files).threads(),
        signal=signal_meaning.signal_name(core.signal),
        code=core.code,
        address=core.address,
        message=read_abort_message(core, memory, files),
        pid=core.pid,
        command=core.command,
    )


def _reduce(stacks: Stacks, meaning: signal_meaning.Meaning) -> Crash:
    """The crash point; a stack overflow is known by its address, even where no function fills the stack."""
    crash = reduce_stacks(stacks)
    if meaning.code != "stack-overflow" or crash.kind != "segv":
        return crash
    crash = reduce_stacks(replace(stacks, signal="SIGSEGV"), kind="stack-overflow")
    return replace(
        crash,
        notes=(Note(None, "", "kind stack-overflow", "the faulting address is right below the stack"), *crash.notes),
    )


def _unwind(
    path: str, core: Core, files: LocalFiles, search: SearchPaths, limits: Limits, scanned: Stacks
) -> tuple[Stacks, list[Remark]]:
    """The stacks from gdb, or the scanned ones where these name more, with remarks."""
    program = gdb.find_gdb(core.machine)
    if program is None:
        if gdb.find_gdb() is None:
            message = "gdb is not installed, so the stack was not unwound; install gdb and read the core again"
        else:
            message = (
                f"this gdb does not support {core.machine}, so the stack was not unwound; "
                "install gdb-multiarch and read the core again"
            )
        return scanned, [("gdb-missing", message)]
    if core.executable is not None and core.executable.path not in files.files:
        return scanned, []  # another remark names the missing program; without it gdb shows only ??
    unwound = gdb.unwind(program, path, core, files, search, limits)
    remarks = [("gdb", remark) for remark in unwound.remarks]
    if _is_better(replace(scanned, threads=unwound.threads), scanned):
        return replace(scanned, form="core", threads=unwound.threads), remarks
    if unwound.threads:
        remarks.append(("gdb", "gdb lost the stack, so the frames of the notes are shown"))
    return scanned, remarks


def _is_better(unwound: Stacks, scanned: Stacks) -> bool:
    """Whether to prefer unwound frames: always, unless the unwinder has named no function."""
    if not unwound.threads or not any(frame.function for frame in unwound.threads[0].frames):
        return False
    return bool(reduce_stacks(unwound).key) or not reduce_stacks(scanned).key


def _remarks(core: Core, files: LocalFiles, search: SearchPaths) -> list[Remark]:
    """Remarks on the core file and on the programs and libraries that it names."""
    remarks: list[Remark] = []
    if core.is_truncated:
        message = (
            f"the core file is cut: it has {core.size:,} of {core.expected_size:,} bytes, so stacks may be incomplete"
        )
        remarks.append(("core-truncated", message))
    remarks += [("core-damaged", f"damaged: {note}") for note in core.notes]
    remarks += _program_remarks(core, files, search)
    for code, problem, paths in (
        ("build-id-mismatch", "of another build than in the core (build-ids differ), not used", files.wrong),
        ("core-libraries", "not on this machine, so their functions have no names", files.missing),
        ("core-unproved", "without a build-id to compare, used unverified", files.unverified),
    ):
        others = [path for path in paths if core.executable is None or path != core.executable.path]
        if others:
            count = f"{len(others)} {'library' if len(others) == 1 else 'libraries'}"
            remarks.append((code, f"{count} {problem}: {_first_paths(others)}"))
    return remarks


def _program_remarks(core: Core, files: LocalFiles, search: SearchPaths) -> list[Remark]:
    executable = core.executable
    if executable is None:
        return [("core-program", "the core does not name its program")]
    path = search.exe or executable.path
    if executable.path in files.wrong:
        message = (
            f"{path} is not the program of this core (its build-id is not {executable.build_id}), so it was not used"
        )
        return [("build-id-mismatch", message)]
    if executable.path in files.missing:
        message = f"the program {path} is not here; give it with --exe, or its root directory with --sysroot"
        return [("core-program", message)]
    return []


def _stripped_remarks(stacks: Stacks, files: LocalFiles) -> list[Remark]:
    """Return a remark on the files of the thread that crashed whose innermost frames have no name."""
    frames = next((thread.frames for thread in stacks.threads if thread.crashed), ())
    nameless = (frame.module for frame in frames[:_INNERMOST] if not frame.function)
    stripped = sorted({path for path in nameless if path in files.files and path not in files.debug})
    if not stripped:
        return []
    message = f"without names of functions (stripped): {_first_paths(stripped)}; give its debug files with --debug-dir"
    return [("core-stripped", message)]


def _first_paths(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_PATHS} more" if len(paths) > _MAX_PATHS else ""
    return ", ".join(path or "(no name)" for path in paths[:_MAX_PATHS]) + more


def find_owners(core: Core, memory: elf.Memory) -> dict[int, int]:
    """Return for each thread that waits for a lock the thread that holds it, where the core holds the mutex."""
    owners = {}
    tids = {registers.tid for registers in core.threads}
    for registers in core.threads:
        mutex = memory.read(registers.lock, _MUTEX.size) if registers.lock else b""
        if len(mutex) == _MUTEX.size:
            lock, _, owner = _MUTEX.unpack(mutex)
            if lock == _CONTENDED and owner in tids:
                owners[registers.tid] = owner
    return owners


def describe_deadlock(stacks: Stacks, owners: dict[int, int]) -> str:
    """Return a sentence about threads that wait for each other's locks, "" for none."""
    if not owners:
        return ""
    live = to_process(stacks)
    threads = tuple(replace(thread, owner=owners.get(thread.tid or 0)) for thread in live.threads)
    return locks.format_deadlock(locks.find_deadlock(replace(live, threads=threads)))
