"""Python's frames in a core file: the package pystack, where it is installed, asked in a process of its own under the
same limits.

It names the Python functions of each thread; they take the place of the innermost run of interpreter frames of the
native stack.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from dataclasses import replace

from triage.artifacts.cores.engine import Limits, run
from triage.artifacts.cores.files import Found, Where
from triage.artifacts.cores.model import Core
from triage.base.lazy_re import lazy_re
from triage.stacks.model import Frame, Thread
from triage.stacks.names import library, normal
from triage.stacks.rules import shipped

_THREAD = lazy_re(r"Traceback for thread (\d+)")
_FRAME = lazy_re(r'\s+\(Python\) File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]+)')
_MOST = 1 << 12


def is_python(core: Core) -> bool:
    """Is there an interpreter in the process?"""
    return any(library(module.path) in ("python", "libpython") or "libpython" in module.path for module in core.modules)


def available() -> bool:
    return importlib.util.find_spec("pystack") is not None


def merge(
    threads: tuple[Thread, ...], path: str, core: Core, found: Found, where: Where, limits: Limits
) -> tuple[tuple[Thread, ...], list[tuple[str, str]]]:
    """The threads with their Python frames, and what to say where there are none."""
    if not available():
        return threads, [
            (
                "python-frames",
                "Python's frames were not read; `pip install 'triage-kb[cores]'` brings pystack, which can",
            )
        ]
    exe = found.files.get(core.executable.path) if core.executable is not None else None
    if exe is None:
        return threads, []
    with tempfile.TemporaryDirectory(prefix="triage-pystack-") as directory:
        command = [sys.executable, "-I", "-m", "pystack", "--no-color", "core", path, os.path.realpath(exe)]
        if where.sysroot:
            command += ["--lib-search-root", where.sysroot]
        output = run(
            command,
            "",
            limits,
            directory,
            {"HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "TMPDIR": directory},
        )
    frames = read(output.text)
    if not frames:
        why = "it was stopped at its deadline" if output.ended else _last(output.errors) or "it found none"
        return threads, [("python-frames", f"pystack gave no Python frames: {why}")]
    return tuple(merged(thread, frames.get(thread.tid or -1, ())) for thread in threads), []


def _last(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1][:200] if lines else ""


def read(text: str) -> dict[int, tuple[Frame, ...]]:
    """Python frames by thread, innermost first; pystack prints the innermost last."""
    found: dict[int, list[Frame]] = {}
    current: list[Frame] | None = None
    for line in text.split("\n"):
        thread = _THREAD.match(line)
        if thread is not None:
            current = found.setdefault(int(thread[1]), [])
            continue
        frame = _FRAME.match(line)
        if frame is not None and current is not None and len(current) < _MOST:
            number = int(frame["line"]) if len(frame["line"]) < 10 else None
            current.append(Frame(frame["function"].strip(), file=frame["file"], line=number, language="python"))
    return {tid: tuple(reversed(frames)) for tid, frames in found.items() if frames}


def merged(thread: Thread, frames: tuple[Frame, ...]) -> Thread:
    """The Python frames in the place of the innermost interpreter frames; at the end where there are none."""
    if not frames:
        return thread
    rules = shipped()
    marks = [
        (rule := rules.find(normal(frame.function), library(frame.module))) is not None and rule.label == "interpreter"
        for frame in thread.frames
    ]
    if True not in marks:
        return replace(thread, frames=(*thread.frames, *frames))
    first = marks.index(True)
    last = first
    while last < len(marks) and marks[last]:
        last += 1
    return replace(thread, frames=(*thread.frames[:first], *frames, *thread.frames[last:]))
