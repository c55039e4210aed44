"""The stack model for core files, backtraces in logs, and dumps of hung processes.

Frames are innermost first. What a form does not print stays empty or None; nothing is guessed.
`format_frame` writes a frame in the format of gdb, which users know.
"""

from __future__ import annotations

from typing import Literal

from triage.base.lazy_dataclass import dataclass

Language = Literal["native", "python", "java"]
Trust = Literal["", "context", "unwound", "scan"]
"""How a frame of a core file is known: from the registers, an unwinder, or a return address found on the stack."""

HANDLER = "<signal handler called>"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame.

    `function` is as printed, without arguments, "" for `??`; `names.normalise_function` makes it comparable. `module`
    is the library's path or name as printed, `offset` the place in the module, `plus` the place in the function.
    """

    function: str = ""
    module: str = ""
    offset: int | None = None
    address: int | None = None
    file: str = ""
    line: int | None = None
    args: str = ""
    plus: int | None = None
    build_id: str = ""
    language: Language = "native"
    trust: Trust = ""


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread: `id` is the dump's number, `tid` the kernel's id (LWP), `handle` the pthread_t.

    `state` is what the dump prints for it (`idle`, `active+gil`, `stop reason = …`). `crashed`: the dump says, or its
    frames show, that this thread ended the process.
    """

    frames: tuple[Frame, ...] = ()
    id: str = ""
    tid: int | None = None
    handle: int | None = None
    name: str = ""
    state: str = ""
    crashed: bool = False


@dataclass(frozen=True, slots=True)
class Stacks:
    """All threads of one process at one moment. `form` is the tool that printed it (gdb, c10, py-spy …).

    `code` is si_code; `address` the faulting address where the signal has one; `message` the program's message (what(),
    an assertion, glibc's message), `error` its type (`c10::Error`, `heap-use-after-free`).
    """

    form: str
    threads: tuple[Thread, ...] = ()
    signal: str = ""
    code: int | None = None
    address: int | None = None
    message: str = ""
    error: str = ""
    pid: int | None = None
    command: str = ""

    @property
    def crashed(self) -> Thread | None:
        """The thread that ended the process, if the dump shows it."""
        return next((thread for thread in self.threads if thread.crashed), None)


def format_frame(frame: Frame) -> str:
    """Return one frame without its number; gdb reads native frames of this form back."""
    if frame.language == "python":
        return f"{frame.function} () at {frame.file}:{frame.line or 0}"
    if frame.function == HANDLER:
        return HANDLER
    address = f"0x{frame.address:016x} in " if frame.address is not None else ""
    if frame.file and frame.line is not None:
        where = f" at {frame.file}:{frame.line}"
    else:
        where = f" from {frame.module}" if frame.module else ""
    return f"{address}{frame.function or '??'} ({frame.args}){where}{_addition(frame)}"


def _addition(frame: Frame) -> str:
    """What gdb does not show: the offset in the module of a function without a name, and that a frame is scanned."""
    parts = []
    if not frame.function and frame.offset is not None:
        parts.append(f"+{frame.offset:#x}")
    if frame.trust == "scan":
        parts.append("scanned")
    return f" [{', '.join(parts)}]" if parts else ""
