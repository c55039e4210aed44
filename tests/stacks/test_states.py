"""triage.stacks.live.states"""

from __future__ import annotations

import pytest

from triage.stacks.live.model import Process, Thread
from triage.stacks.live.states import _MOST_FRAMES, state_of
from triage.stacks.model import Frame


@pytest.mark.parametrize(("depth", "kind"), [(_MOST_FRAMES - 1, "collective"), (_MOST_FRAMES, "running")])
def test_the_innermost_frames_decide(depth: int, kind: str) -> None:
    """Of an endless recursion only the innermost frames are looked at."""
    wait = Frame("all_reduce", file="torch/distributed/distributed_c10d.py", line=1)
    frames = (*[Frame("f", file="train.py", line=3)] * depth, wait)
    process = Process("dump.txt", "py-spy", 1, (Thread("MainThread", 1, frames, "active"),))
    assert state_of(process).kind == kind


@pytest.mark.parametrize(("work", "op"), [("SendWork", "send"), ("RecvWork", "recv")])
def test_native_frames_of_a_transfer_name_it(work: str, op: str) -> None:
    """Gloo's send and receive have a work of their own, by which they differ from a collective."""
    frames = (Frame(f"c10d::ProcessGroupGloo::{work}::wait", "libtorch_cpu.so"),)
    state = state_of(Process("dump.txt", "gdb", 1, (Thread("MainThread", 1, frames),)))
    assert (state.kind, state.op) == ("collective", op)
