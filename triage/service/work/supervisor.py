"""Keep the processes of `triage serve` running: those that answer requests and the workers.

uvicorn can restart processes that answer requests, but not workers; one supervisor does both, and forks, so that all
processes share the memory of what is imported.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from triage.service.log import write_event
from triage.service.work.sandbox import end_with_parent

MIN_DELAY, MAX_DELAY = 0.2, 30.0  # seconds before a process is restarted
STEADY_SECONDS = 10.0  # a process that ran so long is restarted soon
STOP_SECONDS = 20.0


@dataclass(slots=True)
class ChildProcess:
    """A process to keep running. `pid` is 0 while it does not run."""

    name: str
    main: Callable[[], None]
    pid: int = 0
    started_at: float = 0.0
    restart_delay: float = MIN_DELAY
    restart_at: float = 0.0


class Supervisor:
    """Forks the processes and restarts those that end. It must have one thread and no open store.

    `check` runs once at the start, and again after a process died.
    """

    def __init__(self, children: list[ChildProcess], check: ChildProcess | None = None) -> None:
        self._children = [*children, *([check] if check is not None else [])]
        self._check = check
        self._is_stopping = False

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, then stop all processes."""
        signal.signal(signal.SIGTERM, self._request_stop)
        signal.signal(signal.SIGINT, self._request_stop)
        while not self._is_stopping:
            now = time.monotonic()
            for child in self._children:
                if not child.pid and now >= child.restart_at:
                    _start(child)
                elif child.pid:
                    self._note_end(child)
            time.sleep(0.05)
        self._stop_all()

    def _note_end(self, child: ChildProcess) -> None:
        """Plan the restart of a process that ended: the check's when another process died."""
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if not pid:
            return
        child.pid = 0
        if child is self._check:
            child.restart_at = math.inf
            return
        _plan_restart(child, pid, os.waitstatus_to_exitcode(status))
        if status and self._check is not None:
            self._check.restart_at = 0.0

    def _stop_all(self) -> None:
        for child in self._children:
            if child.pid:
                os.kill(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while any(child.pid for child in self._children):
            for child in self._children:
                if child.pid and os.waitpid(child.pid, os.WNOHANG)[0]:
                    child.pid = 0
                elif child.pid and time.monotonic() > deadline:
                    os.kill(child.pid, signal.SIGKILL)
            time.sleep(0.02)

    def _request_stop(self, _: int, __: FrameType | None) -> None:
        self._is_stopping = True


def _start(child: ChildProcess) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _run_in_child(child, parent)
    child.pid, child.started_at = pid, time.monotonic()


def _plan_restart(child: ChildProcess, pid: int, exit_code: int) -> None:
    """Log the end of a process and plan its restart."""
    is_steady = time.monotonic() - child.started_at > STEADY_SECONDS
    child.restart_delay = MIN_DELAY if is_steady else min(child.restart_delay * 2, MAX_DELAY)
    child.restart_at = time.monotonic() + child.restart_delay
    write_event("process ended", name=child.name, pid=pid, status=exit_code, again_in=child.restart_delay)


def _run_in_child(child: ChildProcess, parent: int) -> NoReturn:
    """Run the main function and exit; never return into the code of the parent."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # a terminal sends Ctrl-C to all; the supervisor stops its children
        if end_with_parent(parent, signal.SIGTERM):
            child.main()
        status = 0
    except BaseException as error:
        name = f"{type(error).__name__}: {error}"
        write_event("process failed", name=child.name, error=name, trace=traceback.format_exc(limit=8))
    finally:
        os._exit(status)
