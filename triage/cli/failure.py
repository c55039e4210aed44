"""Report every error as one sentence and an exit status; print a traceback only if TRIAGE_DEBUG is set.

Exit status: 0 success; 1 found what --fail-on asks for (`catalog check`: errors); 2 unusable input or options; 70 a bug
in triage (sysexits.h); 130 interrupted.
"""

from __future__ import annotations

import os
import sys

from triage.base.errors import TriageError
from triage.cli.streams import write_stderr

EXIT_UNUSABLE = 2
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


def report(error: BaseException) -> int:
    """Print the error on standard error and return the exit status."""
    if isinstance(error, SystemExit):
        return _exit_status(error)
    if isinstance(error, KeyboardInterrupt):
        print_error("interrupted")
        return EXIT_INTERRUPTED
    message, hint, status = _describe(error)
    print_error(message, hint)
    if os.environ.get("TRIAGE_DEBUG", "0") not in ("", "0"):
        _print_traceback(error)
    return status


def print_error(message: str, hint: str | None = None) -> None:
    """Print `triage: message` and, with a hint, `  try: hint` on standard error."""
    from triage.render.sanitize import sanitize_line

    write_stderr(f"triage: {sanitize_line(message)}\n" + (f"  try: {sanitize_line(hint)}\n" if hint else ""))


def _describe(error: BaseException) -> tuple[str, str, int]:
    """Return message, hint and exit status of an error."""
    if isinstance(error, TriageError):
        return str(error), error.hint, EXIT_UNUSABLE
    if callable(getattr(error, "format_message", None)):  # a usage error of Typer; its class moved between releases
        path = getattr(getattr(error, "ctx", None), "command_path", "triage")
        return _usage_message(error), f"{path} --help", EXIT_UNUSABLE
    if isinstance(error, MemoryError):
        return "not enough memory", "use fewer workers (--workers 1), or give only some of the files", EXIT_BUG
    hint = "this is a bug: run the command again with TRIAGE_DEBUG=1 and send the output to the maintainers"
    return f"unexpected {type(error).__name__}: {error}", hint, EXIT_BUG


def _exit_status(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print_error(str(error.code))
    return EXIT_UNUSABLE


def _usage_message(error: BaseException) -> str:
    message: str = error.format_message()  # type: ignore[attr-defined]
    message = message.strip().rstrip(".").replace("Value error, ", "").replace("Input should", "it should")
    return message[:1].lower() + message[1:]


def _print_traceback(error: BaseException) -> None:
    import traceback

    from triage.render.sanitize import sanitize

    write_stderr(sanitize("".join(traceback.format_exception(error))))
    sys.stderr.flush()
