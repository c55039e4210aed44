"""Words for calls and places: what a rank called, and where in its program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.artifacts.flight.model import Frame, Place, Recording
from triage.base.lazy_re import lazy_re

_LIBRARY = lazy_re(r"(?:^|/)(?:site-packages|dist-packages|torch|torch_npu)/|/lib/python3[^/]*/|^<|^\?\?$")


def say(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks 0-2, 5`."""
    ordered = sorted(ranks)
    if not ordered:
        return "no known rank"
    parts: list[list[int]] = []
    for rank in ordered:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1][1:] = [rank]
        else:
            parts.append([rank])
    words = [
        "-".join(map(str, part)) if len(part) > 1 and part[1] > part[0] + 1 else ", ".join(map(str, part))
        for part in parts
    ]
    if len(words) > 12:
        words = [*words[:10], f"… ({len(ordered)} in all)"]
    return ("rank " if len(ordered) == 1 else "ranks ") + ", ".join(words)


def wait(ranks: Iterable[int]) -> str:
    """`rank 3 waits`, `ranks 0-2 wait`."""
    named = list(ranks)
    return f"{say(named)} {'waits' if len(named) == 1 else 'wait'}"


def own(stack: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's program, if the stack has one."""
    return next((frame for frame in stack if not _LIBRARY.search(frame.file)), stack[-1] if stack else None)


def at(stack: Sequence[Frame]) -> str:
    """` at train.py:25 in step`, or nothing where there is no stack."""
    frame = own(stack)
    if frame is None:
        return ""
    inside = f" in {frame.name}" if frame.name not in ("<module>", "?", "") else ""
    return f" at {frame.file.rsplit('/', 1)[-1]}:{frame.line}{inside}"


def name_of(op: str) -> str:
    return op.partition(":")[2] or op


def place(recording: Recording, row: int, ranks: Iterable[int]) -> Place:
    """Where ranks stand that made the call in this row of the table."""
    table = recording.table
    shape = recording.shapes[int(table.shape[row])]
    sizes = " ".join(str(list(size)) for size in (shape.inputs or shape.outputs)[:4])
    words = (name_of(recording.ops[int(table.op[row])]), sizes, recording.dtypes[int(table.dtype[row])])
    return Place(
        tuple(sorted(ranks)), " ".join(word for word in words if word), recording.stacks[int(table.stack[row])]
    )
