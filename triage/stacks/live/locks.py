"""Mutexes that native threads wait for, and who holds them: threads that wait for each other are named, where the dump
shows it.

The lock's address is an argument of glibc's own functions (`__lll_lock_wait (futex=0x…)`, `pthread_mutex_lock
(mutex=0x…)`), which gdb prints
where it has glibc's debug information; its holder is `__owner` of the mutex, which `bt full` and `print *mutex` show
and `triage collect` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Process, State, Thread
from triage.stacks.model import Frame

_WAITS = lazy_re(r"_*(?:GI_+)?(?:pthread_mutex_(?:timed|clock)?lock\w*|lll_lock_wait\w*)|lll_mutex_lock\w*")
_ADDRESS = lazy_re(r"\b(?:futex|mutex)=(?:(?:futex|mutex)@entry=)?(?:\([^)]*\) ?)?0x([0-9a-f]{1,16})\b")
_LWP = lazy_re(r"\s*Thread \d+ \(.*?(?:LWP|process) (\d{1,9})\b")
_OWNER = lazy_re(r"\b__owner = (\d{1,9})\b")
_NEAR = 8  # frames from the innermost on


def address(frames: Iterable[Frame]) -> int | None:
    """The lock that a thread waits for, 0 where it is not printed, None where it waits for none."""
    found = [frame for frame, _ in zip(frames, range(_NEAR), strict=False) if _WAITS.fullmatch(frame.function)]
    told = (match for frame in found if (match := _ADDRESS.search(frame.args)))
    return next((int(match[1], 16) for match in told), 0) if found else None


def owners(text: str) -> dict[int, int]:
    """Who holds the mutex that each thread is in, by gdb's threads: the first `__owner` printed below the head of a
    thread.
    """
    found: dict[int, int] = {}
    tid: int | None = None
    for line in text.splitlines() if "__owner = " in text else ():
        if head := _LWP.match(line):
            tid = int(head[1])
        elif tid is not None and tid not in found and (owner := _OWNER.search(line)) and owner[1] != "0":
            found[tid] = int(owner[1])
    return found


def with_owners(process: Process, text: str) -> Process:
    """The process with the holders that the text of its dump shows, for the threads that wait."""
    known = owners(text)
    threads = (
        replace(thread, owner=known.get(thread.tid or 0)) if thread.lock is not None else thread
        for thread in process.threads
    )
    return replace(process, threads=tuple(threads)) if known else process


def ring(process: Process) -> list[Thread]:
    """Threads each of which waits for a lock that the next one holds, the last for one of the first; [] where there are
    none.
    """
    waiting: dict[int, Thread] = {}
    for thread in process.threads:  # some dumps show a thread twice
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


def told(process: Process, main: Thread, state: State) -> State | None:
    """What is to be said of the main thread's locks. `state` is what it is in; None where it waits for no lock that
    says more.
    """
    threads = ring(process)
    tids = [thread.tid for thread in threads]
    if main.tid in tids:
        at = tids.index(main.tid)
        others = ", and that one for one of ".join(map(_called, (*threads[at + 1 :], *threads[:at])))
        words = (
            f"waiting for a lock of {others}, and that one for one of the main thread"
            if others
            else "waiting for a lock that it holds itself"
        )
        return State("deadlock", words, "cycle", state.place)
    if len(threads) > 1:
        return State("deadlock", f"{state.words} while {sentence(threads)}", "cycle", state.place)
    owner = (
        next((thread for thread in process.threads if thread.tid == main.owner and thread is not main), None)
        if main.owner
        else None
    )
    if owner is not None:
        return State("lock", f"waiting for a lock that {_called(owner)} holds", state.op, state.place, state.detail)
    if main.lock and state.kind == "lock":
        too = sum(thread.lock == main.lock for thread in process.threads) - 1
        return replace(
            state,
            detail=f"lock {main.lock:#x}"
            + (f", with {too} other threads" if too > 1 else ", with another thread" if too else ""),
        )
    return None


def sentence(threads: Sequence[Thread]) -> str:
    """What the threads of a ring do, "" of none."""
    if len(threads) < 2:
        return f"{_called(threads[0])} waits for a lock that it holds itself" if threads else ""
    return f"{', '.join(map(_called, threads[:-1]))} and {_called(threads[-1])} wait for locks of each other"


def _called(thread: Thread) -> str:
    """`thread 412 (in flush)`."""
    inside = next((frame.function for frame in _outside(thread)), "")
    return f"thread {thread.tid}" + (f" (in {inside})" if inside else "")


def _outside(thread: Thread) -> list[Frame]:
    """The frames from the one on that asked for the lock."""
    last = max(
        (index for index, frame in enumerate(thread.frames[:_NEAR]) if _WAITS.fullmatch(frame.function)), default=-1
    )
    return [frame for frame in thread.frames[last + 1 :] if frame.function] if last >= 0 else []
