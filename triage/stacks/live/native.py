"""Stacks of a process that nothing killed, as gdb, pstack, eu-stack, lldb and faulthandler print them, made a process
that can be compared.
"""

from __future__ import annotations

from dataclasses import replace

from triage.stacks.live import locks
from triage.stacks.live.model import Process, Thread
from triage.stacks.model import Frame, Stacks
from triage.stacks.model import Thread as Printed
from triage.stacks.names import normal


def process(stacks: Stacks, source: str = "", text: str = "") -> Process:
    """The same threads with comparable names; the main one is called MainThread where it is known. `text` is what they
    were read from.
    """
    main = _main(stacks)
    pid = (
        stacks.pid
        if stacks.pid is not None
        else stacks.threads[main].tid
        if main is not None and stacks.threads[main].id == "1"
        else None
    )
    threads = tuple(
        Thread(
            "MainThread" if index == main else thread.name,
            thread.tid,
            tuple(map(_frame, thread.frames)),
            thread.state,
            lock=locks.address(thread.frames),
        )
        for index, thread in enumerate(stacks.threads)
    )
    return locks.with_owners(Process(source, stacks.form, pid, threads, stacks.command), text)


def _frame(frame: Frame) -> Frame:
    return (
        frame
        if frame.language != "native"
        else replace(frame, function=normal(frame.function), args="", address=None, plus=None)
    )


def _main(stacks: Stacks) -> int | None:
    """The thread that runs the program: the one of the process's id, gdb's first, or Python's with the outermost frame
    of a module.
    """
    threads = stacks.threads
    if stacks.form == "faulthandler":
        return next(
            (index for index in reversed(range(len(threads))) if _runs_module(threads[index])),
            len(threads) - 1 if threads else None,
        )
    for index, thread in enumerate(threads):
        if thread.id == "1" or (stacks.pid is not None and thread.tid == stacks.pid):
            return index
    return 0 if len(threads) == 1 else None


def _runs_module(thread: Printed) -> bool:
    return bool(thread.frames) and thread.frames[-1].function == "<module>"
