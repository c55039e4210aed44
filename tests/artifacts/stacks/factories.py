"""Dumps of live processes for tests, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triage.artifacts.stacks.comparison import DumpState, StackComparison, compare_stacks
from triage.artifacts.stacks.reader import parse_processes
from triage.stacks.live.model import Process
from triage.stacks.live.other_threads import find_call_beside
from triage.stacks.live.states import key_of, state_of


def compare(processes: Sequence[Process]) -> StackComparison:
    """Compare one dump of each process."""
    states = [(process, state_of(process)) for process in processes]
    states = [(process, replace(state, beside=find_call_beside(process, state))) for process, state in states]
    return compare_stacks([DumpState(process, state, key_of(process)) for process, state in states])


def dump_text(*frames: str, pid: int = 100, status: str = "idle", others: tuple[str, ...] = ()) -> str:
    """Return the text of `py-spy dump` with a main thread and, with `others`, a second one."""
    lines = [
        f"Process {pid}: python -u train.py",
        "Python v3.11.7 (/usr/bin/python3.11)",
        "",
        f'Thread {pid} ({status}): "MainThread"',
    ]
    lines += [f"    {frame}" for frame in frames]
    if others:
        lines += [f'Thread {pid + 1} (idle): "writer"', *(f"    {frame}" for frame in others)]
    return "\n".join(lines) + "\n"


def one_process(*frames: str, **options: object) -> Process:
    """Return the process of one dump without a rank."""
    (process,) = parse_processes(dump_text(*frames, **options).encode(), "dump.txt")  # type: ignore[arg-type]
    return process


def ranked(*stacks: tuple[str, ...]) -> list[Process]:
    """Return one process for each stack, as rank 0, 1, …"""
    return [
        process
        for rank, stack in enumerate(stacks)
        for process in parse_processes(dump_text(*stack, pid=100 + rank).encode(), f"rank{rank}.txt")
    ]
