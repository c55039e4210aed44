"""Frames in the format of gdb, which users know."""

from __future__ import annotations

from triage.stacks.model import HANDLER, Frame


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
