"""Mutexes that native threads wait for and the threads that hold them, to find deadlocks.

The lock's address is an argument of glibc's own functions (`__lll_lock_wait (futex=0x…)`, `pthread_mutex_lock
(mutex=0x…)`), which gdb prints where it has glibc's debug information; the thread that holds it is `__owner` of the
mutex, which `bt full` and `print *mutex` show and `triage collect` reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Process, State, Thread
from triage.stacks.model import Frame

_WAITS = lazy_re(r"_*(?:GI_+)?(?:pthread_mutex_(?:timed|clock)?lock\w*|lll_lock_wait\w*)|lll_mutex_lock\w*")
_ADDRESS = lazy_re(r"\b(?:futex|mutex)=(?:(?:futex|mutex)@entry=)?(?:\([^)]*\) ?)?0x([0-9a-f]{1,16})\b")
_LWP = lazy_re(r"\s*Thread \d+ \(.*?(?:LWP|process) (\d{1,9})\b")
_OWNER = lazy_re(r"\b__owner = (\d{1,9})\b")
_INNERMOST = 8  # frames in which a wait for a lock is looked for


def find_lock(frames: Iterable[Frame]) -> int | None:
    """Return the address of the lock that a thread waits for, 0 where it is not printed, None for no lock."""
    waits = [frame for frame in itertools.islice(frames, _INNERMOST) if _WAITS.fullmatch(frame.function)]
    addresses = (match for frame in waits if (match := _ADDRESS.search(frame.args)))
    return next((int(match[1], 16) for match in addresses), 0) if waits else None


def _parse_owners(text: str) -> dict[int, int]:
    """For each of gdb's threads the holder of its mutex: the first `__owner` printed below the head of the thread."""
    owners: dict[int, int] = {}
    tid: int | None = None
    for line in text.splitlines() if "__owner = " in text else ():
        if head := _LWP.match(line):
            tid = int(head[1])
        elif tid is not None and tid not in owners and (owner := _OWNER.search(line)) and owner[1] != "0":
            owners[tid] = int(owner[1])
    return owners


def with_owners(process: Process, text: str) -> Process:
    """Return the process with the holders of its locks, as the text of its dump shows them."""
    owners = _parse_owners(text)
    threads = (
        replace(thread, owner=owners.get(thread.tid or 0)) if thread.lock is not None else thread
        for thread in process.threads
    )
    return replace(process, threads=tuple(threads)) if owners else process


def find_deadlock(process: Process) -> list[Thread]:
    """Return threads that each wait for a lock of the next one, the last for one of the first; [] for no deadlock."""
    waiting: dict[int, Thread] = {}
    for thread in process.threads:  # some dumps contain a thread twice
        if thread.tid is not None and thread.owner is not None:
            waiting.setdefault(thread.tid, thread)
    done: set[int] = set()
    for first in waiting:
        path: list[int] = []
        tid: int | None = first
        while tid in waiting and tid not in done:
            done.add(tid)
            path.append(tid)
            tid = waiting[tid].owner
        if tid in path:
            return [waiting[each] for each in path[path.index(tid) :]]
    return []


def lock_state(process: Process, main: Thread, state: State) -> State | None:
    """Return a state that names the lock for which the main thread waits; None where no lock is known."""
    threads = find_deadlock(process)
    tids = [thread.tid for thread in threads]
    if main.tid in tids:
        index = tids.index(main.tid)
        others = ", and that one for one of ".join(map(_name, (*threads[index + 1 :], *threads[:index])))
        phrase = "waiting for a lock that it holds itself"
        if others:
            phrase = f"waiting for a lock of {others}, and that one for one of the main thread"
        return State("deadlock", phrase, "cycle", state.place)
    if len(threads) > 1:
        return State("deadlock", f"{state.phrase} while {format_deadlock(threads)}", "cycle", state.place)
    candidates = (thread for thread in process.threads if thread is not main)
    owner = next((thread for thread in candidates if main.owner and thread.tid == main.owner), None)
    if owner is not None:
        return State("lock", f"waiting for a lock that {_name(owner)} holds", state.op, state.place, state.remark)
    if main.lock and state.kind == "lock":
        count = sum(thread.lock == main.lock for thread in process.threads) - 1
        waiters = f", with {count} other threads" if count > 1 else ", with another thread" if count else ""
        return replace(state, remark=f"lock {main.lock:#x}{waiters}")
    return None


def format_deadlock(threads: Sequence[Thread]) -> str:
    """Return a sentence about the threads of a deadlock, "" for none."""
    if len(threads) < 2:
        return f"{_name(threads[0])} waits for a lock that it holds itself" if threads else ""
    return f"{', '.join(map(_name, threads[:-1]))} and {_name(threads[-1])} wait for locks of each other"


def _name(thread: Thread) -> str:
    """`thread 412 (in flush)`, with the function that asked for the lock."""
    innermost = thread.frames[:_INNERMOST]
    last = max((index for index, frame in enumerate(innermost) if _WAITS.fullmatch(frame.function)), default=-1)
    callers = thread.frames[last + 1 :] if last >= 0 else ()
    caller = next((frame.function for frame in callers if frame.function), "")
    return f"thread {thread.tid}" + (f" (in {caller})" if caller else "")
