"""Runs a debugger or another tool with an empty environment, a deadline, limited memory and limited output."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

_MAX_MEMORY = 8 << 30
_MAX_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds after which the process is killed, and the bytes of its output that are read."""

    seconds: float = 30.0
    output: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Output:
    """What the process printed; `stopped_by` is the limit that ended it: "", deadline or output."""

    text: str
    errors: str
    stopped_by: str
    status: int


def run_limited(
    command: Sequence[str],
    stdin_text: str,
    limits: Limits,
    cwd: str,
    environment: dict[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> Output:
    """Run a command with a text on its standard input; its whole process group has ended when this returns."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(stdin_text.encode("utf-8", "surrogateescape"))
        stdin.seek(0)
        process = subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=cwd,
            env=environment if environment is not None else {},
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
        try:
            _limit(process.pid, limits.seconds)
            out, stopped_by = _read(process, limits)
        finally:
            _kill(process)
        stderr.seek(0)
        errors = stderr.read(1 << 16).decode("utf-8", "replace")
        return Output(out.decode("utf-8", "replace"), errors, stopped_by, process.returncode)


def _limit(pid: int, seconds: float) -> None:
    """Limit memory, processor time and files, on systems with prlimit."""
    import resource

    if not hasattr(resource, "prlimit"):
        return
    for what, limit in (
        (resource.RLIMIT_AS, _MAX_MEMORY),
        (resource.RLIMIT_CPU, int(seconds) + 5),
        (resource.RLIMIT_FSIZE, _MAX_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.prlimit(pid, what, (limit, limit))
        except (OSError, ValueError):
            continue  # the process has ended already, or a lower limit is in force


def _read(process: subprocess.Popen[bytes], limits: Limits) -> tuple[bytes, str]:
    """The output, and the limit that ended it ("" for none)."""
    deadline = time.monotonic() + limits.seconds
    parts: list[bytes] = []
    size = 0
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                return b"".join(parts), "deadline"
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                return b"".join(parts), ""
            parts.append(piece)
            size += len(piece)
            if size > limits.output:
                return b"".join(parts), "output"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, even after the process has ended: a child may still run."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.2)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
