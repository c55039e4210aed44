"""Mutexes that threads wait for, and the threads that hold them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.stacks.live import locks
from triage.stacks.live.model import Process, State, Thread, format_state
from triage.stacks.live.native import to_process
from triage.stacks.live.states import state_of
from triage.stacks.model import Frame
from triage.stacks.parser import parse_stacks

WAITING = """\
Thread {number} (Thread 0x7fbe681c{number:04x} (LWP {tid}) "train"):
#0  futex_wait (private=0, expected=2, futex_word={lock} <a>) at ../sysdeps/nptl/futex-internal.h:146
#1  __GI___lll_lock_wait (futex=futex@entry={lock} <a>, private=0) at ./nptl/lowlevellock.c:49
#2  0x00007fbe68251482 in lll_mutex_lock_optimized (mutex={lock} <a>) at ./nptl/pthread_mutex_lock.c:48
#3  ___pthread_mutex_lock (mutex={lock} <a>) at ./nptl/pthread_mutex_lock.c:93
#4  0x0000561f0b87818d in {function} (x=0x0) at train.c:5
"""
MUTEX = """
Thread {number} (Thread 0x7fbe681c{number:04x} (LWP {tid}) "train"):
#3  ___pthread_mutex_lock (mutex={lock} <a>) at ./nptl/pthread_mutex_lock.c:93
$1 = {{__data = {{__lock = 2, __count = 0, __owner = {owner}, __nusers = 1, __kind = 0}}, __size = "\\002"}}
"""
# Without glibc's debug information neither arguments nor mutexes are printed.
WITHOUT_ARGUMENTS = """\
Thread 1 (Thread 0x7fbe681c2740 (LWP 11) "train"):
#0  0x00007fbe68251482 in __lll_lock_wait () from /lib64/libpthread.so.0
#1  0x00007fbe68251499 in pthread_mutex_lock () from /lib64/libpthread.so.0
#2  0x0000561f0b8781e0 in flush () from /opt/libtrain.so
"""


def describe(*threads: tuple[int, str, str], owners: str = "") -> str:
    """Return the state of a process with these threads (tid, lock, function), the main thread first."""
    text = "\n".join(
        WAITING.format(number=n, tid=tid, lock=lock, function=function)
        for n, (tid, lock, function) in enumerate(threads, 1)
    )
    [stacks] = parse_stacks(text + owners)
    return format_state(state_of(to_process(stacks, "rank0.txt", text + owners)))


def mutexes(*holders: tuple[int, str, int]) -> str:
    """Return gdb's text of mutexes, each (tid, lock, owner)."""
    return "".join(
        MUTEX.format(number=n, tid=tid, lock=lock, owner=owner) for n, (tid, lock, owner) in enumerate(holders, 1)
    )


def test_lock_without_a_known_holder() -> None:
    """Frames alone show the lock, but not its holder, so no deadlock is reported."""
    phrase = describe((11, "0x561f0b87b0a0", "flush"), (12, "0x561f0b87b060", "save"))
    assert phrase == (
        "waiting for a lock held elsewhere (lock 0x561f0b87b0a0 (in flush); "
        "thread 12 (in save) waits for lock 0x561f0b87b060, so each may hold the lock of the other)"
    )
    assert "with another thread" in describe((11, "0x561f0b87b0a0", "flush"), (12, "0x561f0b87b0a0", "save"))


def test_lock_without_arguments() -> None:
    """Frames without arguments show a lock without an address."""
    [stacks] = parse_stacks(WITHOUT_ARGUMENTS)
    assert format_state(state_of(to_process(stacks))) == "waiting for a lock held elsewhere"


@pytest.mark.parametrize("count", [2, 3])
def test_deadlock_names_its_threads(count: int) -> None:
    """Printed mutexes give the deadlock, with each thread and its function."""
    threads = [(11 + n, f"0x561f0b87b{n:x}00", f"part{n}") for n in range(count)]
    owners = mutexes(*((tid, lock, 11 + (n + 1) % count) for n, (tid, lock, _) in enumerate(threads)))
    phrase = describe(*threads, owners=owners)
    assert phrase.startswith("waiting for a lock of thread 12 (in part1)")
    assert phrase.endswith("and that one for one of the main thread (in part0)")
    assert phrase.count("thread 1") == count - 1


def test_holder_without_a_deadlock() -> None:
    """The holder of a lock is named when it waits for nothing itself."""
    threads = ((11, "0x561f0b87b0a0", "flush"), (12, "0x561f0b87b060", "save"))
    owners = mutexes((11, "0x561f0b87b0a0", 12))
    assert describe(*threads, owners=owners) == "waiting for a lock that thread 12 (in save) holds"


def test_lock_taken_twice_by_one_thread() -> None:
    """A thread that waits for its own lock is a deadlock."""
    owners = mutexes((11, "0x561f0b87b0a0", 11))
    assert describe((11, "0x561f0b87b0a0", "flush"), owners=owners) == "waiting for a lock that it holds itself"


@given(st.dictionaries(st.integers(1, 9), st.none() | st.integers(1, 9), min_size=1))
def test_deadlock_is_a_cycle(holders: dict[int, int | None]) -> None:
    """Each thread of a deadlock waits for the next; without a deadlock the chain of holders ends."""
    threads = tuple(Thread("", tid, lock=1, owner=owner) for tid, owner in holders.items())
    process = Process("x", "proc", None, threads)
    deadlock = [thread.tid for thread in locks.find_deadlock(process)]
    for tid, after in zip(deadlock, [*deadlock[1:], *deadlock[:1]], strict=True):
        assert holders[tid or 0] == after
    if not deadlock:
        for tid in holders:
            holder: int | None = tid
            for _ in range(len(holders) + 1):
                holder = holders.get(holder) if holder is not None else None
            assert holder is None
    assert (
        locks.lock_state(process, threads[0], State("futex", "in futex")) is None
        or holders[threads[0].tid or 0]
        or deadlock
    )


@given(
    st.text(),
    st.lists(st.sampled_from(["Thread 1 (LWP 1):", "__owner = 5", "__owner = 0", "Thread 2 (process 9"]), max_size=9),
)
def test_owners_in_any_text(text: str, lines: list[str]) -> None:
    """Owners that are parsed from any text are thread ids."""
    holders = locks._parse_holders("\n".join([text, *lines, text]))
    assert all(tid > 0 and owner > 0 for tid, owner in holders.by_waiter.items())
    assert all(owner > 0 for owner in (*holders.by_address.values(), *holders.others))


def test_main_thread_that_joins_deadlocked_threads() -> None:
    """A main thread that joins deadlocked threads is in a deadlock."""
    frame = Frame("join", file="/usr/lib/python3.11/threading.py", line=9, language="python")
    threads = (Thread("MainThread", 1, (frame,)), Thread("a", 2, lock=1, owner=3), Thread("b", 3, lock=2, owner=2))
    state = state_of(Process("x", "gdb", 1, threads))
    assert state.kind == "deadlock"
    assert state.phrase.endswith("while thread 2 and thread 3 wait for locks of each other")
