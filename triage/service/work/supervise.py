"""Keeps processes alive: those that answer and those that work. One that dies is replaced; when this one is told to
stop, all stop.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from triage.service import log

_PR_SET_PDEATHSIG = 1
SOON, LATE = 0.2, 30.0
STEADY = 10.0
PATIENCE = 20.0


@dataclass(slots=True)
class Child:
    """A place for a process: what it is called, what it does, and the process that fills it now."""

    name: str
    main: Callable[[], None]
    pid: int = 0
    started: float = 0.0
    pause: float = SOON
    again_at: float = 0.0


class Supervisor:
    """Forks; so it must have one thread and no open store."""

    def __init__(self, children: list[Child]) -> None:
        self.children = children
        self.stopping = False

    def run(self) -> None:
        """Until SIGTERM or SIGINT, then until all have ended."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        while not self.stopping:
            now = time.monotonic()
            for child in self.children:
                if not child.pid and now >= child.again_at:
                    self._start(child)
            self._reap()
            time.sleep(0.05)
        self._end()

    def _start(self, child: Child) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _live(child, parent)
        child.pid, child.started = pid, time.monotonic()

    def _reap(self) -> None:
        for child in self.children:
            if not child.pid:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if not pid:
                continue
            lived = time.monotonic() - child.started
            child.pause = SOON if lived > STEADY else min(child.pause * 2, LATE)
            child.again_at = time.monotonic() + child.pause
            log.say(
                "process ended",
                name=child.name,
                pid=child.pid,
                status=os.waitstatus_to_exitcode(status),
                again_in=child.pause,
            )
            child.pid = 0

    def _end(self) -> None:
        for child in self.children:
            if child.pid:
                os.kill(child.pid, signal.SIGTERM)
        limit = time.monotonic() + PATIENCE
        while any(child.pid for child in self.children):
            for child in self.children:
                if child.pid and os.waitpid(child.pid, os.WNOHANG)[0]:
                    child.pid = 0
                elif child.pid and time.monotonic() > limit:
                    os.kill(child.pid, signal.SIGKILL)
            time.sleep(0.02)

    def _stop(self, _: int, __: FrameType | None) -> None:
        self.stopping = True


def _live(child: Child, parent: int) -> None:
    """The child's whole life: it never returns into the code of its parent."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the supervisor tells them
        if sys.platform == "linux":
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == parent:
            child.main()
        status = 0
    except BaseException as error:
        import traceback

        log.say(
            "process failed",
            name=child.name,
            error=f"{type(error).__name__}: {error}",
            trace=traceback.format_exc(limit=8),
        )
    finally:
        os._exit(status)
