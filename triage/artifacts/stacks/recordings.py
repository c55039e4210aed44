"""`py-spy record --idle` of a process that stands still: `-f raw` (a stack and its samples in each line), speedscope.

A recording of a program that moves is a profile, which says nothing of a hang. Without `--idle`, py-spy leaves out
threads that wait, so the recording of a hung process is empty.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from triage.artifacts.interface import ArtifactError
from triage.base.lazy_re import lazy_re
from triage.stacks.forms.pyspy import MAX_FRAMES, frame_of_file
from triage.stacks.live.model import Process, Thread
from triage.stacks.model import Frame

_RAW = lazy_re(
    r"(?m)(?P<stack>(?:process \d{1,9}:|thread \(\d{1,9}\): |[^;\n(]{1,300} \([^()\n;]{1,300}:\d{1,9}\))"
    r"[^\n]{0,100000}) (?P<count>\d{1,9})$"
)
_FRAME = lazy_re(r"(?P<function>.{1,1000}) \((?P<file>[^()]{1,1000}?)(?::(?P<line>\d{1,9}))?\)")
_SPEEDSCOPE = lazy_re(r'\s*\{"\$schema":"https://www\.speedscope\.app/')
# Of a process, and of its main thread, which has the same number.
_PID = lazy_re(r"(?i)(?:process (\d{1,9})\b|thread \(?(\d{1,9})\)?:? \"?MainThread\b)")
_HEADING = lazy_re(r"(?:process \d{1,9}|thread \()")
_MAIN = ("<module>", "_run_module_as_main")
_LEAST_SAMPLES, _LEAST_SHARE = 10, 0.95
_LONGEST_HEADING = 4096
_Stack = tuple[int | None, tuple[Frame, ...], int]
"""The pid, if the recording has it, the frames, the outermost first, and the number of samples."""


def parse_text(text: str, source: str) -> list[Process]:
    """Return two equal dumps of each process whose main thread stood still; [] for other texts.

    Raises ArtifactError for a recording in which none did.
    """
    is_speedscope = _SPEEDSCOPE.match(text) is not None
    if not is_speedscope and not _RAW.match(text):
        return []
    samples: dict[int | None, Counter[tuple[Frame, ...]]] = {}
    for pid, frames, count in _read_speedscope(text) if is_speedscope else _read_raw(text):
        if frames and frames[0].function in _MAIN:
            samples.setdefault(pid, Counter())[frames] += count
    processes = []
    for pid, counts in samples.items():
        (frames, most), *_ = counts.most_common(1)
        if most >= _LEAST_SAMPLES and most >= _LEAST_SHARE * counts.total():
            thread = Thread("MainThread", None, tuple(reversed(frames)))
            processes += [Process(source, "py-spy", pid, (thread,))] * 2
    if not processes:
        hint = "record a hung process with `py-spy record --idle -f raw`, or use `py-spy dump`"
        raise ArtifactError("a recording without a main thread that stands still", hint=hint)
    return processes


def _read_raw(text: str) -> Iterator[_Stack]:
    for line in text.splitlines():
        if match := _RAW.match(line):
            parts = match["stack"].split(";")
            own = [part for part in parts if not _HEADING.match(part)]
            yield _find_pid(match["stack"]), tuple(map(_read_frame, own[:MAX_FRAMES])), int(match["count"])


def _find_pid(text: str) -> int | None:
    match = _PID.search(text[:_LONGEST_HEADING])
    return int(match[1] or match[2]) if match else None


def _read_frame(text: str) -> Frame:
    match = _FRAME.fullmatch(text)
    if match is None:
        return Frame(text[:_LONGEST_HEADING])
    return frame_of_file(match["function"], match["file"], int(match["line"]) if match["line"] else None)


def _read_speedscope(text: str) -> Iterator[_Stack]:
    try:
        recording: Any = json.loads(text)
        frames = [_read_shared(frame) for frame in recording["shared"]["frames"]]
        for profile in recording["profiles"]:
            pid = _find_pid(str(profile["name"]))
            for sample in profile["samples"]:
                yield pid, tuple(frames[index] for index in sample[:MAX_FRAMES]), 1
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ArtifactError(f"not a readable recording ({type(error).__name__})", hint="record it again") from error


def _read_shared(frame: dict[str, Any]) -> Frame:
    line = frame.get("line")
    return frame_of_file(str(frame["name"]), str(frame.get("file") or ""), line if isinstance(line, int) else None)
