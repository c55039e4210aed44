"""The stack model that every reader of stacks shares: core files, backtraces in logs, dumps of hung processes.

Frames are innermost first. What a form does not say stays empty or None; nothing is guessed. `canonical.py` writes and
reads these as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Language = Literal["native", "python", "java"]
Trust = Literal["", "context", "unwound", "scan"]
"""How a frame was found by our own reader: the registers, frame pointers, or a word on the stack that looks like a return address."""

HANDLER = "<signal handler called>"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `function` is as printed, without arguments, "" for `??`; `names.normal` makes it comparable.

    `module` is the library's path or name as printed; `offset` is the place in the module (not in the function: that is
    `plus`).
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
    """One thread: `id` as the dump numbers it, `tid` the kernel's id (LWP), `handle` the pthread_t.

    `state` is what the dump says of it (`idle`, `active+gil`, `stop reason = …`). `crashed`: the dump says, or its
    frames show, that
    this one took the process down.
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
    """All threads of one process at one moment. `form` says who wrote it (gdb, c10, py-spy …).

    `code` is si_code; `address` the faulting address where the signal has one; `message` what the program said (what(),
    an assertion,
    glibc's words), `error` its type (`c10::Error`, `heap-use-after-free`).
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
        """The thread that took the process down, if the dump tells."""
        return next((thread for thread in self.threads if thread.crashed), None)
