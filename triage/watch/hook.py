"""A command of the user's, run once an event with its JSON on standard input, beside the watch so that a slow one holds
nothing up.
"""

from __future__ import annotations

import queue
import shlex
import subprocess
import threading
from collections.abc import Callable

from triage.base.errors import OptionError

SECONDS = 60.0


class Hook:
    """Events go to the command one after the other, in order; what fails is a warning. No shell is involved."""

    def __init__(self, command: str, warn: Callable[[str], None], seconds: float = SECONDS) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise OptionError(f"--exec cannot be read: {error}", hint="quote the command as for a shell") from None
        if not self._arguments:
            raise OptionError("--exec is empty", hint="give a command, for example --exec 'notify-the-team --stdin'")
        self._warn = warn
        self._seconds = seconds
        self._events: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __call__(self, event: str) -> None:
        """Hand over one event."""
        self._events.put(event)

    def wait(self) -> None:
        """Until all were run."""
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
            self._warn(f"--exec {self._arguments[0]} ended with {done.returncode}")
