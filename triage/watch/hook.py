"""Run the user's `--exec` command for every event, in a thread of its own so that a slow command delays nothing."""

from __future__ import annotations

import queue
import shlex
import subprocess
import threading
from collections.abc import Callable

from triage.base.errors import OptionError

TIMEOUT = 60.0


class Hook:
    """Runs the command once per event, in order, with the event on standard input. Failures become warnings.

    No shell is involved. A run may take `seconds`.
    """

    def __init__(self, command: str, warn: Callable[[str], None], seconds: float = TIMEOUT) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise OptionError(
                f"--exec cannot be read: {error}", hint="quote the command as you would in a shell"
            ) from None
        if not self._arguments:
            raise OptionError("--exec is empty", hint="give a command, for example --exec 'notify-the-team --stdin'")
        self._warn = warn
        self._seconds = seconds
        self._events: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __call__(self, event: str) -> None:
        """Queue one event."""
        self._events.put(event)

    def wait(self) -> None:
        """Wait until the command ran for all queued events."""
        self._events.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (event := self._events.get()) is not None:
            self._run(event)

    def _run(self, event: str) -> None:
        try:
            done = subprocess.run(
                self._arguments, input=event.encode(), timeout=self._seconds, stdout=subprocess.DEVNULL, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._warn(f"--exec {self._arguments[0]} could not be run: {error}")
            return
        if done.returncode:
            self._warn(f"--exec {self._arguments[0]} exited with status {done.returncode}")
