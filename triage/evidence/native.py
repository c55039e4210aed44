"""Native crashes as text: uncaught C++ exceptions, and what faulthandler prints (`Fatal Python error`)."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.evidence.backtraces import crash_fields, find_crash
from triage.evidence.extractor import make_evidence
from triage.evidence.python import FRAME
from triage.model import Block, CrashDetail, Evidence

_FAULT_FRAME = lazy_re(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)')
_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating-point exception": "SIGFPE",
}
# So many frames with so few different functions: a function that calls itself without end.
_DEEP, _FEW = 40, 6


def extract(block: Block) -> list[Evidence]:
    """Return the C++ exception or the fatal Python error that the block is."""
    if block.form == "terminate":
        return _terminate(block)
    if block.form == "fatal-python":
        return _fatal(block)
    return []


def _terminate(block: Block) -> list[Evidence]:
    text = "\n".join(block.lines)
    kind = re.search(r"instance of '([^']+)'", text)
    what = re.search(r"what\(\):\s*(.*)", text)
    parts = {"type": kind[1] if kind else "", "what": what[1] if what else ""}
    return [make_evidence(block, "terminate", "C++", text, None, **parts, **_crash_point(block))]


def _fatal(block: Block) -> list[Evidence]:
    head = block.lines[0].removeprefix("Fatal Python error: ").strip()
    frames = _current_thread(block.lines)
    functions = {frame["function"] for frame in frames}
    own = next(
        (frame for frame in frames if "site-packages" not in frame["file"] and "/lib/python" not in frame["file"]), None
    )
    place = {"file": own["file"], "line": own["line"], "function": own["function"]} if own else {}
    crash = _crash_point(block)
    signal = _SIGNALS.get(head, "")
    return [
        make_evidence(
            block,
            "fatal-python",
            "Python",
            "\n".join(block.lines[:40]),
            CrashDetail(signal, crash.get("crash_kind", "")),
            signal=signal,
            depth=str(len(frames)),
            repeated="yes" if len(frames) >= _DEEP and len(functions) <= _FEW else "",
            **{**crash, **place},
        )
    ]


def _crash_point(block: Block) -> dict[str, str]:
    """Return the crash point of the stack in the block, if it has one, as fields."""
    pair = find_crash(block.lines)
    return crash_fields(pair[1]) if pair is not None and pair[1].key else {}


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


__all__ = ["FRAME", "extract"]
