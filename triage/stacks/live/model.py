"""A live process, as a dump shows it, and its state."""

from __future__ import annotations

from dataclasses import dataclass

from triage.stacks.model import Frame

KERNEL_TOOLS = frozenset(("proc", "strace"))
"""Dumps of system calls and kernel stacks; all other tools show stacks of the program."""
PYTHON_TOOLS = frozenset(("py-spy", "faulthandler", "py-bt", "pystack"))
"""Dumps with lines of the Python program."""


@dataclass(frozen=True, slots=True)
class Call:
    """A thread's system call with its file, and the kernel functions that it waits in (`wait`, innermost first).

    `run` is R, S, D, Z or T as in /proc. `since` is the stamp of the call as the tool prints it, `seconds` how long the
    tool observed it. `ended`: the call had returned when the tool stopped, so the thread moves.
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
    """A thread, with the innermost frame first.

    `status` is the tool's (active, idle); `gil`: it holds Python's global lock. `lock` is the address of a mutex that
    it waits for, 0 where that is unknown; `owner` the tid of the thread that holds the mutex.
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
    """All threads of one process at one moment, from one file; `age` are seconds since its start, if known.

    `main` is what the dump calls the main thread of a process without a pid (`thread 0x00007f01`): it tells processes
    apart, but those that were forked from one process may share it.
    """

    source: str
    tool: str
    pid: int | None
    threads: tuple[Thread, ...]
    command: str = ""
    rank: int | None = None
    host: str | None = None
    age: int | None = None
    main: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """What a process does.

    `kind` is a kind of `states.RULES` or `kernel.RULES`, `phrase` follows "is", `op` is the call if known, `place` the
    line of the user's program (`train.py:25`), `remark` what else the dump shows (a descriptor, since when).
    `beside` is the collective that another thread of the program is in while the main one waits in its own.
    """

    kind: str
    phrase: str
    op: str = ""
    place: str = ""
    remark: str = ""
    beside: str = ""


def is_native(frame: Frame) -> bool:
    """Return whether the frame is of compiled code."""
    return frame.language == "native"


def format_location(frame: Frame) -> str:
    """Return `train.py:25`, or the library."""
    name = frame.file.rsplit("/", 1)[-1]
    return f"{name}:{frame.line}" if frame.line and name else name or frame.module.rsplit("/", 1)[-1]


def format_state(state: State) -> str:
    """Return `in all_reduce at train.py:25`."""
    at = f" at {state.place}" if state.place else ""
    return f"{state.phrase}{at}" + (f" ({state.remark})" if state.remark else "")
