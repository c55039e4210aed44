"""Stacks of a live process (from gdb, pstack, eu-stack, lldb, faulthandler) → a process that can be compared."""

from __future__ import annotations

from dataclasses import replace

from triage.stacks.live import locks
from triage.stacks.live.model import Process, Thread
from triage.stacks.model import Frame, Stacks, Thread as DumpThread
from triage.stacks.names import normalise_function


def to_process(stacks: Stacks, source: str = "", text: str = "") -> Process:
    """Return the same threads with comparable names, the main one named MainThread; `text` is the dump itself."""
    main, pid = _main(stacks), stacks.pid
    if pid is None and main is not None and (stacks.threads[main].id == "1" or stacks.form == "pystack"):
        pid = stacks.threads[main].tid
    threads = tuple(
        Thread(
            "MainThread" if index == main else thread.name,
            thread.tid,
            tuple(map(_frame, thread.frames)),
            thread.state.partition("+")[0],
            "gil" in thread.state,
            lock=locks.find_lock(thread.frames),
        )
        for index, thread in enumerate(stacks.threads)
    )
    handle = stacks.threads[main].handle if main is not None and pid is None else None
    name = f"thread {handle:#x}" if handle is not None else ""
    return locks.with_owners(Process(source, stacks.form, pid, threads, stacks.command, main=name), text)


def _frame(frame: Frame) -> Frame:
    return (
        frame
        if frame.language != "native"
        else replace(frame, function=normalise_function(frame.function), args="", address=None, plus=None)
    )


def _main(stacks: Stacks) -> int | None:
    """The index of the thread that runs the program.

    It has the process's id, is gdb's first, or for faulthandler and pystack has a module as its outermost frame.
    """
    threads = stacks.threads
    if stacks.form == "py-spy":
        return None  # it names the main thread itself
    if stacks.form == "faulthandler":
        return next(
            (index for index in reversed(range(len(threads))) if _runs_module(threads[index])),
            len(threads) - 1 if threads else None,
        )
    if stacks.form == "pystack":
        return next((index for index, thread in enumerate(threads) if _runs_module(thread)), None)
    for index, thread in enumerate(threads):
        if thread.id == "1" or (stacks.pid is not None and thread.tid == stacks.pid):
            return index
    return 0 if len(threads) == 1 else None


def _runs_module(thread: DumpThread) -> bool:
    return bool(thread.frames) and thread.frames[-1].function == "<module>"
