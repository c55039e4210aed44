"""One core file, read: the notes by our own reader, the frames by gdb where it can, Python's frames by pystack where it
is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triage.artifacts.cores import elf, fault, gdb, locks, python
from triage.artifacts.cores.engine import Limits
from triage.artifacts.cores.files import Found, Where, find
from triage.artifacts.cores.model import Core, Module
from triage.artifacts.cores.walk import Walker, abort_message
from triage.stacks import Crash, Stacks, Thread, reduce
from triage.stacks.signature import Note

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Report:
    """What a core file tells. `engine` is gdb or notes; `remarks` are (code, sentence) pairs the reader must know."""

    name: str
    core: Core
    stacks: Stacks
    crash: Crash
    meaning: fault.Meaning
    engine: str
    files: Found
    remarks: tuple[tuple[str, str], ...]

    @property
    def code(self) -> str:
        return fault.code_name(self.core.signal, self.core.code)


def read(
    path: str,
    name: str,
    where: Where = Where(),
    use_gdb: bool = True,
    use_python: bool = True,
    limits: Limits = Limits(),
) -> Report:
    """Read the core file at `path`, called `name`. Raises CoreError for what is none, OSError when it cannot be opened."""
    with elf.FileBytes(path) as data:
        core = elf.read(data)
        memory = elf.Memory(data, core.segments)
        found = find(core, where)
        remarks = _remarks(core, found, where)
        message = abort_message(core, memory, found)
        walked = Walker(core, memory, found).threads()
        held = locks.owners(core, memory)
    meant = fault.meaning(core)
    threads = walked
    engine = "notes"
    facts = Stacks(
        "core-notes",
        signal=fault.signal_name(core.signal),
        code=core.code,
        address=core.address,
        message=message,
        pid=core.pid,
        command=core.command,
    )
    if use_gdb:
        unwound, why = _unwind(path, core, found, where, limits)
        if _better(replace(facts, threads=unwound), replace(facts, threads=walked)):
            threads, engine = unwound, "gdb"
        elif unwound:
            why.append(("gdb", "gdb lost the stack, so the frames of the notes are shown"))
        remarks += why
    if engine == "notes" and len(walked[0].frames) > 1:
        remarks.append(
            (
                "stack-scanned",
                "the frames below the first are a scan of the stack, not an unwinding: old ones may stand among them",
            )
        )
    if use_python and python.is_python(core):
        threads, why = python.merge(threads, path, core, found, where, limits)
        remarks += why
    stacks = replace(facts, form="core" if engine == "gdb" else "core-notes", threads=threads)
    if blocked := locks.deadlock(stacks, held):
        remarks.append(("core-deadlock", blocked))
    crash = reduce(stacks)
    if meant.word == "stack-overflow" and crash.kind == "segv":
        crash = _as_overflow(stacks, crash)
    return Report(name, core, stacks, crash, meant, engine, found, tuple(dict.fromkeys(remarks)))


def _as_overflow(stacks: Stacks, crash: Crash) -> Crash:
    """The address says so, even where the frames do not fill the stack with one function."""
    again = reduce(replace(stacks, signal="SIGSEGV"), kind="stack-overflow")
    return replace(
        again,
        notes=(Note(None, "", "kind stack-overflow", "the faulting address lies right below the stack"), *again.notes),
    )


def _unwind(
    path: str, core: Core, found: Found, where: Where, limits: Limits
) -> tuple[tuple[Thread, ...], list[tuple[str, str]]]:
    program = gdb.program(core.machine)
    if program is None and gdb.program() is not None:
        return (), [
            (
                "gdb-missing",
                f"gdb here does not know {core.machine}, so the stack was not unwound; install gdb-multiarch and read it again",
            )
        ]
    if program is None:
        return (), [
            ("gdb-missing", "gdb is not installed, so the stack was not unwound; install gdb and read the core again")
        ]
    if core.executable is not None and core.executable.path not in found.files:
        return (), []  # said already: without the program gdb shows only ??
    done = gdb.unwind(program, path, core, found, where, limits)
    return done.threads, [("gdb", remark) for remark in done.remarks]


def _better(unwound: Stacks, walked: Stacks) -> bool:
    """An unwinder's frames go before scanned ones, unless it has named nothing."""
    if not unwound.threads or not any(frame.function for frame in unwound.threads[0].frames):
        return False
    return bool(reduce(unwound).key) or not reduce(walked).key


def _remarks(core: Core, found: Found, where: Where) -> list[tuple[str, str]]:
    remarks: list[tuple[str, str]] = []
    if core.truncated:
        remarks.append(
            (
                "core-truncated",
                f"the core file is cut: {core.size:,} of {core.expected_size:,} bytes are there, so stacks may be incomplete",
            )
        )
    remarks += [("core-damaged", f"damaged: {note}") for note in core.notes]
    executable = core.executable
    if executable is None:
        remarks.append(("core-program", "the core does not say which program it was"))
    elif executable.path in found.wrong:
        place = where.exe or executable.path
        remarks.append(
            (
                "build-id-mismatch",
                f"{place} is not the program of this core (its build-id differs from {executable.build_id}); it was not used",
            )
        )
    elif executable.path in found.missing:
        remarks.append(
            (
                "core-program",
                f"the program {where.exe or executable.path} is not here; give it with --exe, or its root directory with --sysroot",
            )
        )
    for code, words, paths in (
        ("build-id-mismatch", "of another build than in the core (build-ids differ), not used", found.wrong),
        ("core-libraries", "not on this machine, so functions in there have no names", found.missing),
        ("core-unproved", "without a build-id to compare, used unproved", found.unproved),
    ):
        others = [path for path in paths if executable is None or path != executable.path]
        if others:
            remarks.append(
                (code, f"{len(others)} {'library' if len(others) == 1 else 'libraries'} {words}: {_few(others)}")
            )
    return remarks


def _few(paths: Sequence[str]) -> str:
    return ", ".join(path or "(no name)" for path in paths[:_SHOWN]) + (
        f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    )


def frame_module(report: Report) -> Module | None:
    """The module of the crash frame."""
    frame = report.crash.frame
    return next((module for module in report.core.modules if frame is not None and module.path == frame.module), None)
