"""What a dump of a live process holds, and what it says of it."""

from __future__ import annotations

from dataclasses import dataclass

from triage.stacks.model import Frame

KERNEL_TOOLS = frozenset(("proc", "strace"))
"""Dumps of what threads ask of the kernel; all others show stacks of the program."""
PYTHON_TOOLS = frozenset(("py-spy", "faulthandler"))
"""Dumps with the lines of the program."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a thread asks of the kernel: the system call with its file, and the kernel's functions it waits in (`wait`,
    innermost first).

    `run` is R, S, D, Z or T as /proc has it. `since` is the stamp of the call as the tool prints it, `seconds` how long
    the tool saw it last.
    `ended`: the call was over when the tool stopped, so the thread moves.
    """

    name: str = ""
    fd: int | None = None
    path: str = ""
    wait: tuple[str, ...] = ()
    run: str = ""
    since: str = ""
    seconds: float | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """`frames` innermost first. `status` as the tool says it (active, idle); `gil`: it holds Python's global lock.

    `lock`: the address of a mutex that it waits for, 0 where that is not known; `owner`: the tid of the thread that
    holds it.
    """

    name: str
    tid: int | None
    frames: tuple[Frame, ...] = ()
    status: str = ""
    gil: bool = False
    call: Call | None = None
    lock: int | None = None
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """All threads of one process at one moment, as one file has them. `age`: seconds since it began, where the dump
    tells.
    """

    source: str
    tool: str
    pid: int | None
    threads: tuple[Thread, ...]
    command: str = ""
    rank: int | None = None
    host: str | None = None
    age: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What a process was doing: `kind` is a kind of `states.RULES` or `kernel.RULES`, `words` a phrase that follows
    "was" or "is", `op` the
    call if one is known, `place` where the user's program stands (`train.py:25`), `detail` what else the dump tells (a
    descriptor, since when).
    """

    kind: str
    words: str
    op: str = ""
    place: str = ""
    detail: str = ""


def is_native(frame: Frame) -> bool:
    return frame.language == "native"


def place(frame: Frame) -> str:
    """`train.py:25`, or the library."""
    name = frame.file.rsplit("/", 1)[-1]
    return f"{name}:{frame.line}" if frame.line and name else name or frame.module.rsplit("/", 1)[-1]


def phrase(state: State) -> str:
    """`in all_reduce at train.py:25`."""
    at = f" at {state.place}" if state.place else ""
    return f"{state.words}{at}" + (f" ({state.detail})" if state.detail else "")
