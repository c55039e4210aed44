"""A debugger in a cage: an empty environment, limits, a deadline after which the whole process group is killed, a cap
on its output.
"""

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

_MEMORY = 8 << 30
_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds` until it is killed, `output` bytes that are read of it."""

    seconds: float = 30.0
    output: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Output:
    """What it said; `ended` is why it was stopped: "", deadline or output."""

    text: str
    errors: str
    ended: str
    status: int


def run(
    command: Sequence[str],
    given: str,
    limits: Limits,
    cwd: str,
    environment: dict[str, str] | None = None,
    keep: Sequence[int] = (),
) -> Output:
    """Run a command with `given` on its standard input. Nothing of it is left when this returns."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.write(given.encode("utf-8", "surrogateescape"))
        stdin.seek(0)
        process = subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=cwd,
            env=environment if environment is not None else {},
            start_new_session=True,
            pass_fds=tuple(keep),
        )
        try:
            _limit(process.pid, limits.seconds)
            out, ended = _read(process, limits)
        finally:
            _kill(process)
        stderr.seek(0)
        return Output(
            out.decode("utf-8", "replace"), stderr.read(1 << 16).decode("utf-8", "replace"), ended, process.returncode
        )


def _limit(pid: int, seconds: float) -> None:
    """Limits on memory, processor time and files; a system without prlimit goes without."""
    import resource

    if not hasattr(resource, "prlimit"):
        return
    cpu = int(seconds) + 5
    for what, limit in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, _FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.prlimit(pid, what, (limit, limit))
        except (OSError, ValueError):
            continue  # it has ended already, or the limit in force is lower


def _read(process: subprocess.Popen[bytes], limits: Limits) -> tuple[bytes, str]:
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
    """The group of the process, whether it has ended or not: a child may have stayed."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.2)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
