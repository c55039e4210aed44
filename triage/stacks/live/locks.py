"""Mutexes that native threads wait for and the threads that hold them, to find deadlocks.

The lock's address is an argument of glibc's own functions (`__lll_lock_wait (futex=0x…)`, `pthread_mutex_lock
(mutex=0x…)`), which gdb prints where it has glibc's debug information; the thread that holds it is `__owner` of the
mutex, which `bt full` and `print *mutex` show and `triage collect` reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from triage.base.lazy_re import lazy_re
from triage.stacks.live.model import Process, State, Thread
from triage.stacks.model import Frame

_WAITS = lazy_re(r"_*(?:GI_+)?(?:pthread_mutex_(?:timed|clock)?lock\w*|lll_lock_wait\w*)|lll_mutex_lock\w*")
_ADDRESS = lazy_re(r"\b(?:futex|mutex)=(?:(?:futex|mutex)@entry=)?(?:\([^)]*\) ?)?0x([0-9a-f]{1,16})\b")
_LWP = lazy_re(r"\s*Thread \d+ \(.*?(?:LWP|process) (\d{1,9})\b")
_OWNER = lazy_re(r"\b__owner = (\d{1,9})\b")
_FRAME_NUMBER = lazy_re(r"#\d{1,6} +(?:0x[0-9a-f]+ in )?")
_FUNCTION = lazy_re(r"^[\w:~]{1,200}")
_PRINTED = lazy_re(r"^\s*(?:\(gdb\) )?(?:p|print|output|inspect)\b.{0,200}0x([0-9a-f]{1,16})\b")
_INNERMOST = 8  # frames in which a wait for a lock is looked for


def find_lock(frames: Iterable[Frame]) -> int | None:
    """Return the address of the lock that a thread waits for, 0 where it is not printed, None for no lock."""
    waits = [frame for frame in itertools.islice(frames, _INNERMOST) if _WAITS.fullmatch(frame.function)]
    addresses = (match for frame in waits if (match := _ADDRESS.search(frame.args)))
    return next((int(match[1], 16) for match in addresses), 0) if waits else None


@dataclass(frozen=True, slots=True)
class _Holders:
    """Who holds mutexes, as a dump prints them: by the thread that waits, by address, and of mutexes without either."""

    by_waiter: dict[int, int]
    by_address: dict[int, int]
    others: set[int]


def _parse_holders(text: str) -> _Holders:
    """Return the holders of all mutexes that gdb printed.

    A value (`$1 = {__data = …`) is of the address in the command before it; without one of the selected frame, if that
    waits for a lock; else its mutex is not known. A mutex among the locals of a frame is that of its thread.
    """
    holders = _Holders({}, {}, set())
    tid: int | None = None
    address: int | None = None
    waits = False
    for line in text.splitlines() if "__owner = " in text else ():
        if head := _LWP.match(line):
            tid, address, waits = int(head[1]), None, False
        elif frame := _FRAME_NUMBER.match(line):
            waits = any(_WAITS.fullmatch(name) for name in _FUNCTION.findall(line[frame.end() :])[:1])
        elif printed := _PRINTED.search(line):
            address = int(printed[1], 16)
        if (owner := _OWNER.search(line)) is None or owner[1] == "0":
            continue
        if address is not None:
            holders.by_address.setdefault(address, int(owner[1]))
            address = None
        elif tid is not None and (waits or not line.startswith("$")):
            holders.by_waiter.setdefault(tid, int(owner[1]))
        else:
            holders.others.add(int(owner[1]))
    return holders


def with_owners(process: Process, text: str) -> Process:
    """Return the process with the holders of its locks, as the text of its dump shows them."""
    holders = _parse_holders(text)
    locks = {thread.tid: thread.lock for thread in process.threads if thread.tid and thread.lock is not None}
    owners = {tid: holders.by_waiter.get(tid) or holders.by_address.get(lock) for tid, lock in locks.items()}
    by_lock = {locks[tid]: owner for tid, owner in owners.items() if owner and locks[tid]}
    for tid, lock in locks.items():
        # A thread does not hold the lock that it waits for: another does, if that waits too or there is one lock.
        left = holders.others - {tid}
        is_clear = len(left) == 1 and (left <= locks.keys() or len(set(locks.values())) == 1)
        owners[tid] = owners[tid] or by_lock.get(lock) or (next(iter(left)) if is_clear else None)
    if not any(owners.values()):
        return process
    threads = (
        replace(thread, owner=owners.get(thread.tid or 0)) if thread.lock is not None else thread
        for thread in process.threads
    )
    return replace(process, threads=tuple(threads))


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
            phrase = f"waiting for a lock of {others}, and that one for one of the main thread{_caller(main)}"
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
        other = next((thread for thread in process.threads if thread.lock and thread.lock != main.lock), None)
        if other is not None:
            waiters += f"; {_name(other)} waits for lock {other.lock:#x}, so each may hold the lock of the other"
        return replace(state, remark=f"lock {main.lock:#x}{_caller(main)}{waiters}")
    return None


def format_deadlock(threads: Sequence[Thread]) -> str:
    """Return a sentence about the threads of a deadlock, "" for none."""
    if len(threads) < 2:
        return f"{_name(threads[0])} waits for a lock that it holds itself" if threads else ""
    return f"{', '.join(map(_name, threads[:-1]))} and {_name(threads[-1])} wait for locks of each other"


def _name(thread: Thread) -> str:
    """`thread 412 (in flush)`, with the function that asked for the lock."""
    return f"thread {thread.tid}{_caller(thread)}"


def _caller(thread: Thread) -> str:
    """` (in flush)`, the function that asked for the lock, where it is known."""
    innermost = thread.frames[:_INNERMOST]
    last = max((index for index, frame in enumerate(innermost) if _WAITS.fullmatch(frame.function)), default=-1)
    callers = thread.frames[last + 1 :] if last >= 0 else ()
    caller = next((frame.function for frame in callers if frame.function), "")
    return f" (in {caller})" if caller else ""
