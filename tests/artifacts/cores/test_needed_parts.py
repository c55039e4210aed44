"""The parts of a core that its stacks need."""

from __future__ import annotations

from tests.artifacts.cores.factories import READ_ONLY, STACK, CoreFile, CoreThread, StoredRange
from triage.artifacts.cores.needed_parts import find_stacks


def test_stack_outside_of_the_core_is_left_out() -> None:
    """A thread whose stack pointer lies in no stored range needs nothing; the other threads keep their stacks."""
    large = StoredRange(STACK, bytes(1 << 19))
    stray = CoreThread(tid=78, sp=0x1234_0000_0000)
    both = CoreFile(threads=[CoreThread(), stray], ranges=[large]).parsed()
    (stack,) = find_stacks(both)
    assert stack[1] - stack[0] == 1 << 18
    assert find_stacks(CoreFile(threads=[stray], ranges=[StoredRange(STACK, flags=READ_ONLY)]).parsed()) == []
