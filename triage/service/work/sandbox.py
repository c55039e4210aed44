"""Run one piece of work in a process with limits on memory, processor time, file size and wall time.

The process is forked from one that has a single thread and no open store, so it starts at once; it dies with its
parent. It sends its progress through a pipe, one JSON object per line.
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
from typing import Any, Literal, NoReturn

from triage.base.errors import TriageError

Report = Callable[[Mapping[str, Any]], None]
Work = Callable[[Report], None]
Heartbeat = Callable[[Mapping[str, Any] | None], bool]
HEARTBEAT_SECONDS = 0.5
REPORT_SECONDS = 0.25
DONE, REFUSED, CRASHED, OUT_OF_MEMORY = 0, 10, 11, 12  # exit codes
MAX_FILE_BYTES = 16 << 30
MAX_REPORT_BYTES = 1 << 20
_PR_SET_PDEATHSIG = 1
_OUT_OF_MEMORY_TEXTS = ("can't start new thread", "cannot allocate memory", "out of memory", "bad_alloc")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the work ended, and the error {"code", "message", "hint"} if there is one.

    `refused` means that the input cannot be used, `crashed` is a bug, `stopped` is what the heartbeat asked for.
    """

    kind: Literal["done", "refused", "crashed", "memory", "time", "killed", "stopped"]
    error: Mapping[str, str]


def run_limited(work: Work, *, memory: int, seconds: float, threads: int, heartbeat: Heartbeat) -> Outcome:
    """Do the work in its own process. `heartbeat` gets its reports twice a second, and stops it by returning False."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _run_in_child(work, writer, memory, seconds, threads, parent)
    os.close(writer)
    has_exited = False
    try:
        outcome, error = _follow(reader, seconds, heartbeat)
        if outcome is not None:
            return outcome
        _, status = os.waitpid(pid, 0)
        has_exited = True
        return _outcome_of_exit(os.waitstatus_to_exitcode(status), error)
    finally:
        os.close(reader)
        _kill_group(pid, has_exited)


def end_with_parent(parent: int, signal_number: int) -> bool:
    """Have the kernel send this process a signal when its parent dies (Linux). Returns False if it is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal_number)
    return os.getppid() == parent


def _follow(reader: int, seconds: float, heartbeat: Heartbeat) -> tuple[Outcome | None, Mapping[str, str]]:
    """Read reports until the child closes its end. Returns the outcome if it must be stopped, and its last error."""
    deadline, last_heartbeat = time.monotonic() + seconds, time.monotonic()
    buffer, is_open = b"", True
    report: dict[str, Any] | None = None
    error: Mapping[str, str] = {}
    while is_open:
        ready, _, _ = select.select([reader], [], [], HEARTBEAT_SECONDS)
        if ready:
            data = os.read(reader, 1 << 16)
            is_open = bool(data)
            *lines, buffer = (buffer + data).split(b"\n")
            buffer = buffer[:MAX_REPORT_BYTES]
            for line in lines:
                message = json.loads(line)
                error = message.get("error", {})
                report = report if error else message
        now = time.monotonic()
        if now > deadline:
            return _failure("time", f"the task took longer than {seconds:.0f} s", "tasks.seconds"), error
        if now - last_heartbeat >= HEARTBEAT_SECONDS:
            last_heartbeat = now
            if not heartbeat(report):
                return Outcome("stopped", {}), error
            report = None
    return None, error


def _failure(kind: Literal["memory", "time"], message: str, setting: str) -> Outcome:
    return Outcome(kind, {"code": kind, "message": message, "hint": f"send fewer files, or raise {setting}"})


def _outcome_of_exit(code: int, error: Mapping[str, str]) -> Outcome:
    if code == DONE:
        return Outcome("done", {})
    if code in (REFUSED, CRASHED) and error:
        return Outcome("refused" if code == REFUSED else "crashed", error)
    if code == OUT_OF_MEMORY:
        return _failure("memory", "the task needed more memory than allowed", "tasks.memory")
    if code == -signal.SIGXCPU:
        return _failure("time", "the task used too much processor time", "tasks.seconds")
    reason = signal.Signals(-code).name if code < 0 else f"status {code}"
    hint = "SIGKILL often comes from the kernel's out-of-memory killer; see the server's log"
    return Outcome("killed", {"code": "killed", "message": f"the process ended with {reason}", "hint": hint})


def _run_in_child(work: Work, writer: int, memory: int, seconds: float, threads: int, parent: int) -> NoReturn:
    """Do the work and exit; never return into the code of the parent."""
    code = CRASHED

    def report(message: Mapping[str, Any]) -> None:
        os.write(writer, json.dumps(message, default=str).encode() + b"\n")

    def report_error(code: str, message: str, hint: str) -> None:
        report({"error": {"code": code, "message": message, "hint": hint}})

    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        if not end_with_parent(parent, signal.SIGKILL):
            os._exit(CRASHED)
        _set_limits(memory, seconds, threads)
        work(_throttle(report))
        code = DONE
    except TriageError as error:
        code = REFUSED
        report_error(type(error).__name__.removesuffix("Error").lower(), str(error)[:2000], error.hint[:2000])
    except BaseException as error:
        code = OUT_OF_MEMORY if _is_out_of_memory(error) else CRASHED
        text = f"unexpected {type(error).__name__}: {error}"[:500]
        report_error("bug", text, "this is a bug in triage: report it with the file that shows it")
    finally:
        os._exit(code)


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out: some libraries raise their own errors, and threads cannot start."""
    return isinstance(error, MemoryError) or any(text in str(error).lower() for text in _OUT_OF_MEMORY_TEXTS)


def _throttle(report: Report) -> Report:
    """Return a function that reports at most four times a second, and every change of the stage."""
    last_time, last_stage = 0.0, None

    def report_sometimes(message: Mapping[str, Any]) -> None:
        nonlocal last_time, last_stage
        now = time.monotonic()
        if now - last_time >= REPORT_SECONDS or message.get("stage") != last_stage:
            last_time, last_stage = now, message.get("stage")
            report(message)

    return report_sometimes


def _set_limits(memory: int, seconds: float, threads: int) -> None:
    limits = (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, int(seconds * max(1, threads)) + 5),
        (resource.RLIMIT_FSIZE, MAX_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, limit in limits:
        hard = resource.getrlimit(kind)[1]
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (value, value))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # the kernel shall kill this process before the service


def _kill_group(pid: int, has_exited: bool) -> None:
    """Kill the child and what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if not has_exited:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it may not have its own group yet
        os.waitpid(pid, 0)
