"""Stacks in the form that people know: gdb's. What this writes, gdb's reader takes."""

from __future__ import annotations

from collections.abc import Iterator

from triage.stacks.model import HANDLER, Frame, Stacks, Thread


def frame(shown: Frame) -> str:
    """One frame without its number."""
    if shown.language == "python":
        return f"{shown.function} () at {shown.file}:{shown.line or 0}"
    if shown.function == HANDLER:
        return HANDLER
    address = f"0x{shown.address:016x} in " if shown.address is not None else ""
    name = shown.function or "??"
    where = (
        f" at {shown.file}:{shown.line}"
        if shown.file and shown.line is not None
        else f" from {shown.module}"
        if shown.module
        else ""
    )
    return f"{address}{name} ({shown.args}){where}{_extra(shown)}"


def _extra(shown: Frame) -> str:
    """What gdb does not say: the place in the module where the function has no name, and how sure the frame is."""
    parts = []
    if not shown.function and shown.offset is not None:
        parts.append(f"+{shown.offset:#x}")
    if shown.trust == "scan":
        parts.append("scanned")
    return f" [{', '.join(parts)}]" if parts else ""


def thread(shown: Thread) -> Iterator[str]:
    """A thread with its header."""
    name = f' "{shown.name}"' if shown.name else ""
    lwp = f"LWP {shown.tid}" if shown.tid is not None else "LWP 0"
    yield f"Thread {shown.id or '0'} ({lwp}){name}:" + (" crashed" if shown.crashed else "")
    for level, item in enumerate(shown.frames):
        yield f"#{level:<2} {frame(item)}"


def text(stacks: Stacks) -> str:
    """All threads."""
    head = [f"Program terminated with signal {stacks.signal}."] if stacks.signal else []
    return "\n".join([*head, *(line for item in stacks.threads for line in ("", *thread(item)))]).strip("\n") + "\n"
