"""Where the stacks of ranks in one call part: one function reached the call at several of its lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class CallerFrame(NamedTuple):
    """One frame of a stack, with the base name of its file; `line` is empty where it is not known or compared."""

    function: str
    file: str
    line: str


def find_differing_callers(stacks: Sequence[Sequence[CallerFrame]]) -> list[str]:
    """Return `train.py:57` for each stack: the outermost frames that differ, if only their lines do; else nothing.

    Stacks, outermost frame first, that part in different functions are left alone: a driver and its workers reach the
    same call on different ways. So are those that part in the innermost frame: that is the line of the call itself.
    """
    for frames in zip(*stacks, strict=False):
        if len(set(frames)) == 1:
            continue
        is_one_function = len({(frame.function, frame.file) for frame in frames}) == 1
        if not is_one_function or not all(frame.line for frame in frames):
            return []
        return [f"{frame.file}:{frame.line}" for frame in frames]
    return []
