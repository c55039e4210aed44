"""Run a command, copy its output to the own streams and to a file, and pass signals on.

The command keeps the own standard input and process group, so that a terminal's Ctrl-C reaches it directly; only
signals that did not come from the terminal are passed on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from triage.base.errors import OptionError

PASSED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
FROM_KERNEL = 0x80  # si_code of a signal of the terminal (SI_KERNEL of Linux)
CHUNK = 1 << 16
MAX_LINE = 1 << 20
# What a process that outlives the command may still write: for this long its open pipe is waited for.
SECONDS_AFTER_END = 2.0


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How the command ended: its exit status, or the number of the signal that killed it."""

    returncode: int

    @property
    def status(self) -> int:
        """Return the exit status as shells report it: 128 + n after signal n."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    def describe(self, program: str, pid: int) -> str:
        """Return the line that a shell or GNU time would write; empty for a good end."""
        if self.returncode < 0:
            return f"triage run: line 1: {pid} {signal.strsignal(-self.returncode):<23} {program}\n"
        return f"Command exited with non-zero status {self.returncode}\n" if self.returncode else ""


def run_command(command: Sequence[str], log: IO[bytes]) -> CommandEnd:
    """Run the command to its end. `log` gets the lines of both streams in the order in which they came.

    Raises OptionError if it cannot be started. Output of Python is not buffered, so that the last lines before a
    SIGKILL are not lost.
    """
    awaited = {*PASSED_SIGNALS, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        process = _start(command, before)
        lock = threading.Lock()
        copies = [
            threading.Thread(target=_copy, args=(pipe.fileno(), target, log, lock), daemon=True)
            for pipe, target in ((process.stdout, 1), (process.stderr, 2))
            if pipe is not None
        ]
        for copy in copies:
            copy.start()
        while process.poll() is None:
            _pass_signal(process, awaited)
        for copy in copies:
            copy.join(SECONDS_AFTER_END)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    end = CommandEnd(process.returncode)
    with lock, contextlib.suppress(OSError):
        log.write(end.describe(os.path.basename(command[0]), process.pid).encode())
        log.flush()
    return end


def _start(command: Sequence[str], mask: set[signal.Signals] | set[int]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PYTHONUNBUFFERED": "1", **os.environ},
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),  # no thread exists yet
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OptionError(
            f"{command[0]} cannot be started: {reason}",
            hint="write the command behind `--` as you would without triage: triage run -- torchrun train.py",
        ) from None


def _pass_signal(process: subprocess.Popen[bytes], awaited: set[signal.Signals]) -> None:
    """Wait for one signal; pass it on unless it is of the terminal, which the command has got too."""
    info = signal.sigwaitinfo(awaited)
    if info.si_signo != signal.SIGCHLD and info.si_code != FROM_KERNEL:
        process.send_signal(info.si_signo)


def _copy(source: int, target: int, log: IO[bytes], lock: threading.Lock) -> None:
    """Copy all bytes of a pipe at once to `target`, and whole lines to the log."""
    pending = b""
    is_open = True
    while chunk := os.read(source, CHUNK):
        if is_open:
            is_open = _write_all(target, chunk)
        lines, newline, rest = (pending + chunk).rpartition(b"\n")
        pending = rest
        if len(pending) > MAX_LINE:
            lines, newline, pending = lines + newline + pending, b"", b""
        _append(log, lines + newline, lock)
    _append(log, pending and pending + b"\n", lock)


def _write_all(target: int, data: bytes) -> bool:
    """Write the bytes; return False when the reader is gone: the command goes on, and the log keeps everything."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(target, view) :]
    except OSError:
        return False
    return True


def _append(log: IO[bytes], data: bytes, lock: threading.Lock) -> None:
    """Append to the log. A full disk must not stop the command."""
    if data:
        with lock, contextlib.suppress(OSError, ValueError):
            log.write(data)
            log.flush()
