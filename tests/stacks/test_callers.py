"""Where the stacks of ranks in one call part."""

from __future__ import annotations

import pytest

from triage.stacks.callers import CallerFrame, find_differing_callers


def frames(*texts: str) -> list[CallerFrame]:
    """Return the frames of `function file line`, outermost first."""
    return [CallerFrame(*text.split(" ")) for text in texts]


@pytest.mark.parametrize(
    ("stacks", "callers"),
    [
        ([("main t.py 9", "f t.py 3"), ("main t.py 9", "f t.py 4")], ["t.py:3", "t.py:4"]),
        ([("main t.py 9", "f t.py 3"), ("main t.py 8", "f t.py 4")], ["t.py:9", "t.py:8"]),
        ([("main t.py 9", "f t.py 3"), ("main t.py 9", "g t.py 4")], []),
        ([("main t.py 9", "f t.py 3"), ("main t.py 9", "f u.py 4")], []),
        ([("main t.py 9", "f t.py 3"), ("main t.py 9", "f t.py ")], []),
        ([("main t.py 9", "f t.py 3"), ("main t.py 9", "f t.py 3")], []),
        ([("main t.py 9", "f t.py 3"), ("main t.py 9",)], []),
        ([], []),
    ],
)
def test_only_lines_of_one_function_are_callers(stacks: list[tuple[str, ...]], callers: list[str]) -> None:
    """The outermost frames that differ count, and only if they differ in nothing but their lines."""
    assert find_differing_callers([frames(*stack) for stack in stacks]) == callers
