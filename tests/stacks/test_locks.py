"""triage.stacks.live.locks: mutexes that threads wait for, and who holds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.stacks import parse
from triage.stacks.live import locks
from triage.stacks.live.model import Process, State, Thread, phrase
from triage.stacks.live.native import process
from triage.stacks.live.states import state_of
from triage.stacks.model import Frame

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
$1 = {{__data = {{__lock = 2, __count = 0, __owner = {owner}, __nusers = 1, __kind = 0}}, __size = "\\002", __align = 2}}
"""
# Without glibc's debug information neither arguments nor mutexes are known.
BARE = """\
Thread 1 (Thread 0x7fbe681c2740 (LWP 11) "train"):
#0  0x00007fbe68251482 in __lll_lock_wait () from /lib64/libpthread.so.0
#1  0x00007fbe68251499 in pthread_mutex_lock () from /lib64/libpthread.so.0
#2  0x0000561f0b8781e0 in flush () from /opt/libtrain.so
"""


def told(*threads: tuple[int, str, str], held: str = "") -> str:
    """What the process of these threads (tid, lock, function) does; the first is the main one."""
    text = "\n".join(
        WAITING.format(number=n, tid=tid, lock=lock, function=function)
        for n, (tid, lock, function) in enumerate(threads, 1)
    )
    [stacks] = parse(text + held)
    return phrase(state_of(process(stacks, "rank0.txt", text + held)))


def mutexes(*holders: tuple[int, str, int]) -> str:
    return "".join(
        MUTEX.format(number=n, tid=tid, lock=lock, owner=owner) for n, (tid, lock, owner) in enumerate(holders, 1)
    )


def test_a_mutex_without_its_holder_is_held_elsewhere() -> None:
    """The frames say that it waits for a lock and for which, not who has it: no cycle is told."""
    words = told((11, "0x561f0b87b0a0", "flush"), (12, "0x561f0b87b060", "save"))
    assert words == "waiting for a lock held elsewhere (lock 0x561f0b87b0a0)"
    assert "with another thread" in told((11, "0x561f0b87b0a0", "flush"), (12, "0x561f0b87b0a0", "save"))


def test_frames_without_arguments_still_say_that_it_is_a_lock() -> None:
    """No address is known, and none is made up."""
    [stacks] = parse(BARE)
    assert phrase(state_of(process(stacks))) == "waiting for a lock held elsewhere"


@pytest.mark.parametrize("count", [2, 3])
def test_threads_that_hold_the_locks_of_each_other_are_a_deadlock(count: int) -> None:
    """Printed mutexes give the cycle, with each thread and its function, through any number of threads."""
    threads = [(11 + n, f"0x561f0b87b{n:x}00", f"part{n}") for n in range(count)]
    held = mutexes(*((tid, lock, 11 + (n + 1) % count) for n, (tid, lock, _) in enumerate(threads)))
    words = told(*threads, held=held)
    assert words.startswith("waiting for a lock of thread 12 (in part1)")
    assert words.endswith("and that one for one of the main thread")
    assert words.count("thread 1") == count - 1


def test_a_holder_that_waits_for_nothing_is_no_deadlock() -> None:
    """Who has the lock is told, and that is all."""
    threads = ((11, "0x561f0b87b0a0", "flush"), (12, "0x561f0b87b060", "save"))
    assert (
        told(*threads, held=mutexes((11, "0x561f0b87b0a0", 12))) == "waiting for a lock that thread 12 (in save) holds"
    )


def test_a_lock_taken_twice_by_one_thread() -> None:
    """The oldest deadlock of all has one thread."""
    held = mutexes((11, "0x561f0b87b0a0", 11))
    assert told((11, "0x561f0b87b0a0", "flush"), held=held) == "waiting for a lock that it holds itself"


@given(st.dictionaries(st.integers(1, 9), st.none() | st.integers(1, 9), min_size=1))
def test_a_ring_is_one(holders: dict[int, int | None]) -> None:
    """Each thread of a ring waits for the next; where there is none, following the holders comes to an end."""
    threads = tuple(Thread("", tid, lock=1, owner=owner) for tid, owner in holders.items())
    process = Process("x", "proc", None, threads)
    found = [thread.tid for thread in locks.ring(process)]
    for tid, after in zip(found, [*found[1:], *found[:1]], strict=True):
        assert holders[tid or 0] == after
    if not found:
        for tid in holders:
            at: int | None = tid
            for _ in range(len(holders) + 1):
                at = holders.get(at) if at is not None else None
            assert at is None
    assert locks.told(process, threads[0], State("futex", "in futex")) is None or holders[threads[0].tid or 0] or found


@given(
    st.text(),
    st.lists(st.sampled_from(["Thread 1 (LWP 1):", "__owner = 5", "__owner = 0", "Thread 2 (process 9"]), max_size=9),
)
def test_any_text_has_owners(text: str, lines: list[str]) -> None:
    """Whatever a dump holds, holders are numbers of threads and nothing raises."""
    assert all(tid > 0 and owner > 0 for tid, owner in locks.owners("\n".join([text, *lines, text])).items())


def test_a_main_thread_that_joins_threads_in_a_deadlock() -> None:
    """It waits for no lock itself; what it waits for are two that wait for each other."""
    frame = Frame("join", file="/usr/lib/python3.11/threading.py", line=9, language="python")
    threads = (Thread("MainThread", 1, (frame,)), Thread("a", 2, lock=1, owner=3), Thread("b", 3, lock=2, owner=2))
    state = state_of(Process("x", "gdb", 1, threads))
    assert state.kind == "deadlock"
    assert state.words.endswith("while thread 2 and thread 3 wait for locks of each other")
