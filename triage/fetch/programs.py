"""Run the client program of a cluster, and return what it prints."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from triage.base.errors import InputError

SECONDS = 600.0


def run_program(command: Sequence[str], *, may_fail: bool = False) -> str:
    """Return the output of a program. Raises InputError if it is missing or, unless `may_fail`, fails."""
    if shutil.which(command[0]) is None:
        raise InputError(
            f"the program {command[0]} is not installed here", hint="run this where the cluster's client is"
        )
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{command[0]} could not be run: {error}", hint="try the command by hand") from None
    if done.returncode and not may_fail:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(
            f"{command[0]} failed: {reason[-1] if reason else f'exit status {done.returncode}'}",
            hint=f"try it by hand: {' '.join(command)}",
        )
    return done.stdout.decode("utf-8", "replace") if not done.returncode else ""
