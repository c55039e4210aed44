"""Calls and places of the program as text: what a rank called, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.artifacts.flight.model import CallSite, Frame, Recording
from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks

_LIBRARY = lazy_re(r"(?:^|/)(?:site-packages|dist-packages|torch|torch_npu)/|/lib/python3[^/]*/|^<|^\?\?$")


def format_waiting(ranks: Iterable[int]) -> str:
    """Return `rank 3 waits` or `ranks 0-2 wait`."""
    numbers = set(ranks)
    return f"{format_ranks(numbers)} {'waits' if len(numbers) == 1 else 'wait'}"


def innermost_user_frame(stack: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the user's program; the outermost frame where all are of libraries."""
    return next((frame for frame in stack if not _LIBRARY.search(frame.file)), stack[-1] if stack else None)


def format_location(stack: Sequence[Frame]) -> str:
    """Return ` at train.py:25 in step`, or nothing without a stack."""
    frame = innermost_user_frame(stack)
    if frame is None:
        return ""
    inside = f" in {frame.name}" if frame.name not in ("<module>", "?", "") else ""
    return f" at {frame.file.rsplit('/', 1)[-1]}:{frame.line}{inside}"


def operation_name(op: str) -> str:
    """Return `all_reduce` for `nccl:all_reduce`."""
    return op.partition(":")[2] or op


def format_operation(recording: Recording, row: int) -> str:
    """Return `all_reduce #7 of default_pg` for the call in a row of the table."""
    table = recording.table
    name, group = operation_name(recording.ops[int(table.op[row])]), recording.groups[int(table.group[row])].label
    return f"{name} #{int(table.seq[row])} of {group}"


def location_of(recording: Recording, row: int) -> str:
    """Return where the call in a row of the table was made, as `format_location` does."""
    return format_location(recording.stacks[int(recording.table.stack[row])])


def call_site_of(recording: Recording, row: int, ranks: Iterable[int]) -> CallSite:
    """Return the call in a row of the table, with operation, sizes and types, as the place of these ranks."""
    table = recording.table
    shape = recording.shapes[int(table.shape[row])]
    sizes = " ".join(str(list(size)) for size in (shape.inputs or shape.outputs)[:4])
    parts = (operation_name(recording.ops[int(table.op[row])]), sizes, recording.dtypes[int(table.dtype[row])])
    return CallSite(
        tuple(sorted(ranks)), " ".join(part for part in parts if part), recording.stacks[int(table.stack[row])]
    )
