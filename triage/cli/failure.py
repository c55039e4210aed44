"""Whatever goes wrong ends as one sentence and an exit status; a traceback only when TRIAGE_DEBUG asks for one.

0 it worked, 1 with --fail-on when it was found (and `catalog check` with errors), 2 the input or the options cannot be
used, 70 a bug in triage (sysexits.h), 130 interrupted.
"""

from __future__ import annotations

import os
import sys

from triage.base.errors import TriageError

FOUND = 1
UNUSABLE = 2
BUG = 70
INTERRUPTED = 130
ISSUES = "report it to the maintainers with what it prints"


def report(error: BaseException) -> int:
    """Say it on standard error and return the exit status."""
    if isinstance(error, SystemExit):
        return _status(error)
    if isinstance(error, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, TriageError):
        say(str(error), error.hint)
        status = UNUSABLE
    elif _is_usage(error):
        say(_sentence(error), _usage_hint(error))
        status = UNUSABLE
    elif isinstance(error, MemoryError):
        say(
            "the machine has no memory left for this", "use fewer workers (--workers 1), or give it a part of the files"
        )
        status = BUG
    else:
        say(
            f"unexpected {type(error).__name__}: {error}",
            f"this is a bug: run it again with TRIAGE_DEBUG=1, and {ISSUES}",
        )
        status = BUG
    if os.environ.get("TRIAGE_DEBUG", "0") not in ("", "0"):
        _traceback(error)
    return status


def say(message: str, hint: str | None = None) -> None:
    """`triage: message` and `  try: hint` on standard error, where there is one."""
    from triage.cli.streams import to_stderr
    from triage.render.safe import safe_line

    to_stderr(f"triage: {safe_line(message)}\n" + (f"  try: {safe_line(hint)}\n" if hint else ""))


def _status(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    say(str(error.code))
    return UNUSABLE


def _is_usage(error: BaseException) -> bool:
    """Typer's usage errors, by the method they share: the class moved between its releases."""
    return callable(getattr(error, "format_message", None))


def _sentence(error: BaseException) -> str:
    message: str = error.format_message()  # type: ignore[attr-defined]
    message = message.strip().rstrip(".").replace("Value error, ", "").replace("Input should", "it should")
    return message[:1].lower() + message[1:]


def _usage_hint(error: BaseException) -> str:
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "triage")
    return f"{path} --help"


def _traceback(error: BaseException) -> None:
    import traceback

    from triage.cli.streams import to_stderr
    from triage.render.safe import safe

    to_stderr(safe("".join(traceback.format_exception(error))))
    sys.stderr.flush()
