"""Threads of a core that wait for each other's mutexes, found by the registers and the memory of the mutex."""

from __future__ import annotations

import struct
from dataclasses import replace

from triage.artifacts.cores.elf import Memory
from triage.artifacts.cores.model import Core
from triage.stacks.live import locks
from triage.stacks.live.native import to_process
from triage.stacks.model import Stacks

_MUTEX = struct.Struct("<iIi")  # int __lock, unsigned __count, int __owner (glibc's struct_mutex.h, x86-64 and aarch64)
_CONTENDED = 2


def find_owners(core: Core, memory: Memory) -> dict[int, int]:
    """Return for each thread that waits for a lock the thread that holds it, where the core holds the mutex."""
    owners = {}
    tids = {registers.tid for registers in core.threads}
    for registers in core.threads:
        mutex = memory.read(registers.lock, _MUTEX.size) if registers.lock else b""
        if len(mutex) == _MUTEX.size:
            lock, _, owner = _MUTEX.unpack(mutex)
            if lock == _CONTENDED and owner in tids:
                owners[registers.tid] = owner
    return owners


def describe_deadlock(stacks: Stacks, owners: dict[int, int]) -> str:
    """Return a sentence about threads that wait for each other's locks, "" for none."""
    if not owners:
        return ""
    live = to_process(stacks)
    threads = tuple(replace(thread, owner=owners.get(thread.tid or 0)) for thread in live.threads)
    return locks.format_deadlock(locks.find_deadlock(replace(live, threads=threads)))
