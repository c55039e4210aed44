"""The signal that a sentence about a status states: `exits with return code = -7`, `killed by signal 9`."""

from __future__ import annotations

import signal as signals

from triage.base.lazy_re import lazy_re

_STATED = lazy_re(
    r"(?i)\bsig(?:nal)?[ :=(#]{1,3}(?P<number>\d{1,2})\b|\b(?P<name>(?-i:SIG(?!NAL)[A-Z]{3,5}))\b|"
    r"\b(?:exit|return|status|code|exitcode|returncode|rc|ret)\b[ :=(]{1,8}(?P<code>-[1-9]\d?|1[2-5]\d)\b"
)
# Somebody asked the process to end, so this is no failure of its own.
_REQUESTS = frozenset(("SIGHUP", "SIGINT", "SIGTERM"))


def signal_of_status(code: int) -> str:
    """Return the name of the signal that a status stands for: -11 of Python, 139 of shells; "" for other statuses."""
    return _name(-code if code < 0 else code - 128 if 128 < code < 160 else 0)


def read_stated_signal(line: str) -> str:
    """Return the name of the signal by which a process died, as a line states it; "" for none or a request."""
    match = _STATED.search(line)
    if match is None:
        return ""
    name = match["name"] or ""
    if match["code"]:
        name = signal_of_status(int(match["code"]))
    elif not name:
        name = _name(int(match["number"]))
    return name if name in signals.Signals.__members__ and name not in _REQUESTS else ""


def _name(number: int) -> str:
    try:
        return signals.Signals(number).name if number else ""
    except ValueError:
        return ""
