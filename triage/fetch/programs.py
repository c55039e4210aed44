"""Run the client program of a cluster, and return what it prints."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence

from triage.base.errors import InputError
from triage.base.lazy_re import lazy_re

SECONDS = 600.0
TRIES = 4
# What kubectl, sacct and scontrol print when the server was busy, restarted or lost the connection.
_TEMPORARY = lazy_re(
    r"(?i)\bEOF\b|connection (?:reset|refused|timed out|was lost|to the server)|connect failure|handshake timeout|"
    r"i/o timeout|socket timed out|too ?many ?requests|try again later|unable to (?:connect|contact|handle)|"
    r"service ?unavailable|etcdserver"
)


def run_program(command: Sequence[str]) -> str:
    """Return the whole output of a program, which is run again after a temporary failure. Raises InputError."""
    if shutil.which(command[0]) is None:
        raise InputError(
            f"the program {command[0]} is not installed here", hint="run this where the cluster's client is"
        )
    for attempt in range(TRIES):
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"{command[0]} could not be run: {error}", hint="try the command by hand") from None
        if not done.returncode:
            return done.stdout.decode("utf-8", "replace")
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit status {done.returncode}"
        if attempt == TRIES - 1 or not _TEMPORARY.search(reason):
            raise InputError(f"{command[0]} failed: {reason}", hint=f"try it by hand: {' '.join(command)}")
        time.sleep(2.0**attempt)
    raise AssertionError("unreachable")
