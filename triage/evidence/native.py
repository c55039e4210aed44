"""Native crashes as text: uncaught C++ exceptions, glibc's words before an abort, faulthandler's dumps, c10 stacks."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.evidence.backtraces import crash_of, fields
from triage.evidence.interface import evidence
from triage.evidence.python import FRAME
from triage.model.evidence import Block, Evidence

_FAULT_FRAME = lazy_re(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)')
_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating-point exception": "SIGFPE",
}
# So many frames of which so few differ: a function that calls itself without end.
_DEEP, _FEW = 40, 6


def read(block: Block) -> list[Evidence]:
    if block.form == "terminate":
        return _terminate(block)
    if block.form == "fatal-python":
        return _fatal(block)
    return []


def _terminate(block: Block) -> list[Evidence]:
    text = "\n".join(block.lines)
    kind = re.search(r"instance of '([^']+)'", text)
    what = re.search(r"what\(\):\s*(.*)", text)
    return [
        evidence(
            block, "terminate", "C++", text, type=kind[1] if kind else "", what=what[1] if what else "", **_crash(block)
        )
    ]


def _fatal(block: Block) -> list[Evidence]:
    head = block.lines[0].removeprefix("Fatal Python error: ").strip()
    frames = _current_thread(block.lines)
    functions = {frame["function"] for frame in frames}
    own = next(
        (frame for frame in frames if "site-packages" not in frame["file"] and "/lib/python" not in frame["file"]), None
    )
    place = {"file": own["file"], "line": own["line"], "function": own["function"]} if own else {}
    return [
        evidence(
            block,
            "fatal-python",
            "Python",
            "\n".join(block.lines[:40]),
            signal=_SIGNALS.get(head, ""),
            depth=str(len(frames)),
            repeated="yes" if len(frames) >= _DEEP and len(functions) <= _FEW else "",
            **{**_crash(block), **place},
        )
    ]


def _crash(block: Block) -> dict[str, str]:
    """The crash point of the stack in the block, where there is one."""
    found = crash_of(block.lines)
    return fields(found[1]) if found is not None and found[1].key else {}


def _current_thread(lines: tuple[str, ...]) -> list[re.Match[str]]:
    frames: list[re.Match[str]] = []
    current = False
    for line in lines:
        if line.startswith(("Thread 0x", "Current thread 0x")):
            current = line.startswith("Current")
        match = _FAULT_FRAME.match(line) if current else None
        if match is not None:
            frames.append(match)
    return frames


__all__ = ["FRAME", "read"]
