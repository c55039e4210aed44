"""Threads of a core that wait for the mutexes of each other: the registers name the mutex, and its memory the thread
that holds it.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from triage.artifacts.cores.elf import Memory
from triage.artifacts.cores.model import Core
from triage.stacks.live import locks
from triage.stacks.live.native import process
from triage.stacks.model import Stacks

_MUTEX = struct.Struct("<iIi")  # int __lock, unsigned __count, int __owner (glibc's struct_mutex.h, x86-64 and aarch64)
_CONTENDED = 2


def owners(core: Core, memory: Memory) -> dict[int, int]:
    """The thread that holds the lock for which each thread waits, where the core holds the mutex."""
    found = {}
    tids = {registers.tid for registers in core.threads}
    for registers in core.threads:
        held = memory.read(registers.lock, _MUTEX.size) if registers.lock else b""
        if len(held) == _MUTEX.size:
            lock, _, owner = _MUTEX.unpack(held)
            if lock == _CONTENDED and owner in tids:
                found[registers.tid] = owner
    return found


def deadlock(stacks: Stacks, held: dict[int, int]) -> str:
    """A sentence about threads that wait for locks of each other, "" where none do."""
    if not held:
        return ""
    live = process(stacks)
    threads = tuple(replace(thread, owner=held.get(thread.tid or 0)) for thread in live.threads)
    return locks.sentence(locks.ring(replace(live, threads=threads)))
