"""Python's frames in a core file, from the package pystack, which runs in a process of its own with the same limits.

It names the Python functions of each thread; they replace the innermost run of interpreter frames in the native stack.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from dataclasses import replace

from triage.artifacts.cores.limited_process import Limits, run_limited
from triage.artifacts.cores.local_files import LocalFiles, SearchPaths
from triage.artifacts.cores.model import Core
from triage.base.lazy_re import lazy_re
from triage.stacks.model import Frame, Thread
from triage.stacks.names import library_name, normalise_function
from triage.stacks.rules import shipped_rules

_THREAD = lazy_re(r"Traceback for thread (\d+)")
_FRAME = lazy_re(r'\s+\(Python\) File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]+)')
_MAX_FRAMES = 1 << 12


def is_python(core: Core) -> bool:
    """Return whether the process contains a Python interpreter."""
    return any(
        library_name(module.path) in ("python", "libpython") or "libpython" in module.path for module in core.modules
    )


def has_pystack() -> bool:
    """Return whether pystack is installed."""
    return importlib.util.find_spec("pystack") is not None


def add_python_frames(
    threads: tuple[Thread, ...], path: str, core: Core, files: LocalFiles, search: SearchPaths, limits: Limits
) -> tuple[tuple[Thread, ...], list[tuple[str, str]]]:
    """Return the threads with their Python frames, and a remark (code, sentence) where there are none."""
    if not has_pystack():
        message = "Python's frames were not read; `pip install 'triage-kb[cores]'` installs pystack, which reads them"
        return threads, [("python-frames", message)]
    exe = files.files.get(core.executable.path) if core.executable is not None else None
    if exe is None:
        return threads, []
    with tempfile.TemporaryDirectory(prefix="triage-pystack-") as directory:
        # pystack runs in another directory, so no path may be relative.
        command = [sys.executable, "-I", "-m", "pystack", "--no-color", "core", os.path.abspath(path)]
        command.append(os.path.realpath(exe))
        if search.sysroot:
            command += ["--lib-search-root", os.path.abspath(search.sysroot)]
        environment = {"HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "TMPDIR": directory}
        output = run_limited(command, "", limits, directory, environment)
    frames = parse_output(output.text)
    if not frames:
        reason = "it was stopped at its deadline" if output.stopped_by else _last_line(output.errors) or "it found none"
        return threads, [("python-frames", f"pystack gave no Python frames: {reason}")]
    return tuple(merge_frames(thread, frames.get(thread.tid or -1, ())) for thread in threads), []


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1][:200] if lines else ""


def parse_output(text: str) -> dict[int, tuple[Frame, ...]]:
    """Return Python frames by thread, innermost first; pystack prints the innermost last."""
    threads: dict[int, list[Frame]] = {}
    current: list[Frame] | None = None
    for line in text.split("\n"):
        thread = _THREAD.match(line)
        if thread is not None:
            current = threads.setdefault(int(thread[1]), [])
            continue
        frame = _FRAME.match(line)
        if frame is not None and current is not None and len(current) < _MAX_FRAMES:
            number = int(frame["line"]) if len(frame["line"]) < 10 else None
            current.append(Frame(frame["function"].strip(), file=frame["file"], line=number, language="python"))
    return {tid: tuple(reversed(frames)) for tid, frames in threads.items() if frames}


def merge_frames(thread: Thread, frames: tuple[Frame, ...]) -> Thread:
    """Replace the innermost interpreter frames by the Python frames; without any, append them."""
    if not frames:
        return thread
    rules = shipped_rules()
    is_interpreter = [
        (rule := rules.find(normalise_function(frame.function), library_name(frame.module))) is not None
        and rule.label == "interpreter"
        for frame in thread.frames
    ]
    if True not in is_interpreter:
        return replace(thread, frames=(*thread.frames, *frames))
    first = last = is_interpreter.index(True)
    while last < len(is_interpreter) and is_interpreter[last]:
        last += 1
    return replace(thread, frames=(*thread.frames[:first], *frames, *thread.frames[last:]))
