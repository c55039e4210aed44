"""A process for one piece of work, with limits on memory, processor time, files and wall time; it dies with whoever
made it.

It is forked from a process that has one thread and no open store, so that it starts at once. Progress comes over a
pipe, a line of JSON each.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from triage.base.errors import TriageError

Work = Callable[[Callable[[Mapping[str, Any]], None]], None]
TICK = 0.5
DONE, REFUSED, BROKEN, NO_MEMORY = 0, 10, 11, 12
FILE_BYTES = 16 << 30
_PR_SET_PDEATHSIG = 1
_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended: done, refused (the input cannot be used), broken (a bug), memory, time, killed, stopped (the caller
    wanted so).
    """

    how: str
    error: Mapping[str, str]


def run(
    work: Work, *, memory: int, seconds: float, threads: int, alive: Callable[[Mapping[str, Any] | None], bool]
) -> Ended:
    """Do the work in a process of its own. `alive` is called twice a second, with news if there is any; when it says
    no, all is stopped.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _inside(work, writing, memory, seconds, threads, parent)
    os.close(writing)
    ended = False
    try:
        how = _watch(reading, seconds, alive)
        if isinstance(how, Ended):
            return how
        _, status = os.waitpid(child, 0)
        ended = True
        return _judged(os.waitstatus_to_exitcode(status), how)
    finally:
        os.close(reading)
        _kill(child, ended)


def _watch(
    reading: int, seconds: float, alive: Callable[[Mapping[str, Any] | None], bool]
) -> Ended | Mapping[str, str]:
    """Until it closes its end: the error that it told of, if it did; or why it must be stopped."""
    limit, said, rest, open_ = time.monotonic() + seconds, time.monotonic(), b"", True
    news: dict[str, Any] | None = None
    last: dict[str, Any] = {}
    while open_:
        ready, _, _ = select.select([reading], [], [], TICK)
        if ready:
            data = os.read(reading, 1 << 16)
            open_ = bool(data)
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:_LONGEST]
            for line in lines:
                last = json.loads(line)
                news = last if "error" not in last else news
        now = time.monotonic()
        if now > limit:
            return Ended(
                "time",
                {
                    "code": "time",
                    "message": f"it took longer than {seconds:.0f} s",
                    "hint": "send fewer files, or raise tasks.seconds",
                },
            )
        if now - said >= TICK:
            said = now
            if not alive(news):
                return Ended("stopped", {})
            news = None
    error: Mapping[str, str] = last.get("error", {})
    return error


def _judged(code: int, error: Mapping[str, str]) -> Ended:
    memory = {
        "code": "memory",
        "message": "it needed more memory than one task may use",
        "hint": "send fewer files, or raise tasks.memory",
    }
    if code == DONE:
        return Ended("done", {})
    if code in (REFUSED, BROKEN) and error:
        return Ended("refused" if code == REFUSED else "broken", error)
    if code == NO_MEMORY:
        return Ended("memory", memory)
    if code == -signal.SIGXCPU:
        return Ended(
            "time",
            {
                "code": "time",
                "message": "it used too much processor time",
                "hint": "send fewer files, or raise tasks.seconds",
            },
        )
    name = signal.Signals(-code).name if code < 0 else f"status {code}"
    hint = "SIGKILL is often the kernel's out-of-memory killer; look at the server's log"
    return Ended("killed", {"code": "killed", "message": f"its process ended with {name}", "hint": hint})


def _inside(work: Work, writing: int, memory: int, seconds: float, threads: int, parent: int) -> NoReturn:
    """The child's whole life."""
    code = BROKEN

    def say(news: Mapping[str, Any]) -> None:
        os.write(writing, json.dumps(news, default=str).encode() + b"\n")

    try:
        os.setsid()
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        _tie(parent)
        _limit(memory, seconds, threads)
        work(_rarely(say))
        code = DONE
    except TriageError as error:
        code = REFUSED
        said = {
            "code": type(error).__name__.removesuffix("Error").lower(),
            "message": str(error)[:2000],
            "hint": error.hint[:2000],
        }
        say({"error": said})
    except MemoryError:
        code = NO_MEMORY
    except BaseException as error:
        # A bug, or a limit that some library met in its own way.
        code = NO_MEMORY if _no_memory(error) else BROKEN
        text = f"unexpected {type(error).__name__}: {error}"[:500]
        say(
            {
                "error": {
                    "code": "bug",
                    "message": text,
                    "hint": "this is a bug in triage: report it with the file that shows it",
                }
            }
        )
    finally:
        os._exit(code)


def _no_memory(error: BaseException) -> bool:
    """Threads that cannot be started and allocations that other libraries report in words."""
    said = str(error).lower()
    return (
        "can't start new thread" in said
        or "cannot allocate memory" in said
        or "out of memory" in said
        or "bad_alloc" in said
    )


def _rarely(say: Callable[[Mapping[str, Any]], None]) -> Callable[[Mapping[str, Any]], None]:
    """At most four times a second, but every change of the stage."""
    before: list[Any] = [0.0, None]

    def told(news: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if now - before[0] >= 0.25 or news.get("stage") != before[1]:
            before[:] = [now, news.get("stage")]
            say(news)

    return told


def _tie(parent: int) -> None:
    """Die when the process that made us dies, however it does (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(BROKEN)


def _limit(memory: int, seconds: float, threads: int) -> None:
    wanted = (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, int(seconds * max(1, threads)) + 5),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    )
    for what, limit in wanted:
        hard = resource.getrlimit(what)[1]
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (value, value))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # rather this one than the service
            file.write("1000")
    except OSError:
        pass


def _kill(child: int, ended: bool) -> None:
    """It and what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)  # it may not have its group yet
        os.waitpid(child, 0)
