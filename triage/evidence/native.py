"""Native crashes as text: uncaught C++ exceptions, panics of Go and Rust, what faulthandler prints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.base.signal_texts import SIGNAL_TEXTS
from triage.evidence.backtraces import crash_fields, find_crash
from triage.evidence.exception_chains import FRAME
from triage.evidence.extractor import make_evidence
from triage.model import Block, CrashDetail, Evidence
from triage.records import panics

_FAULT_FRAME = lazy_re(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d{1,18}) in (?P<function>.+)')
# So many frames with so few different functions, and one place so often: a function that calls itself without end.
_DEEP, _FEW, _OFTEN = 40, 6, 8
# Modules within modules repeat these frames in every stack of a model.
_MODULE = "torch/nn/modules/"


def extract(block: Block) -> list[Evidence]:
    """Return the C++ exception, the panic or the fatal Python error that the block is."""
    if block.form == "terminate":
        return _terminate(block)
    if block.form == panics.FORM:
        return _panic(block)
    if block.form == "fatal-python":
        return _fatal(block)
    return []


def _terminate(block: Block) -> list[Evidence]:
    text = "\n".join(block.lines)
    kind = re.search(r"instance of '([^'\n]+)'", text)
    what = re.search(r"what\(\):\s*(.*)", text)
    if kind is None and what is None and "instance of '" in text:
        return []  # another process wrote into the line, so that neither type nor message is left
    parts = {"type": kind[1] if kind else "", "what": what[1] if what else ""}
    return [make_evidence(block, "terminate", "C++", text, None, **parts, **_crash_point(block))]


def _panic(block: Block) -> list[Evidence]:
    """Return nothing for another program's `fatal error: `, behind which there are no stacks."""
    first, *others = block.lines
    if first.startswith("thread "):
        text = "\n".join([f"{first} {others[0]}", *others[1:]] if first.endswith(":") and others else block.lines)
        return [make_evidence(block, "terminate", "Rust", text)]
    if first.startswith("fatal error: ") and not any(map(panics.GOROUTINE.match, others)):
        return []
    return [make_evidence(block, "terminate", "Go", "\n".join(line for line in block.lines if line.strip()))]


def _fatal(block: Block) -> list[Evidence]:
    head = block.lines[0].removeprefix("Fatal Python error: ").strip()
    frames = _current_thread(block.lines)
    own = next(
        (frame for frame in frames if "site-packages" not in frame["file"] and "/lib/python" not in frame["file"]), None
    )
    place = {"file": own["file"], "line": own["line"], "function": own["function"]} if own else {}
    crash = _crash_point(block)
    signal = SIGNAL_TEXTS.get(head.replace("Floating-point", "Floating point"), "")  # as Python has it
    return [
        make_evidence(
            block,
            "fatal-python",
            "Python",
            "\n".join(block.lines[:40]),
            CrashDetail(signal, crash.get("crash_kind", "")),
            signal=signal,
            depth=str(len(frames)),
            repeated="yes" if _is_endless(frames) else "",
            **{**crash, **place},
        )
    ]


def _is_endless(frames: Sequence[re.Match[str]]) -> bool:
    """Whether a few functions call each other again and again."""
    if len(frames) < _DEEP or len({frame["function"] for frame in frames}) > _FEW:
        return False
    places = Counter(frame.group("file", "line") for frame in frames if _MODULE not in frame["file"])
    return max(places.values(), default=0) >= _OFTEN


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
