"""The text of `py-spy dump`, also with --native and --locals.

`Process PID: COMMAND`, `Python vX (…)`, then for each thread `Thread TID (idle|active[+gil]): "name"` (older:
`Thread 0x7f… (idle)`) and its frames, innermost first, indented by four spaces: `function (file:line)`, native ones
`function (library.so)`. Values of locals are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from triage.base.lazy_re import lazy_re
from triage.stacks.forms.interface import parse_hex
from triage.stacks.model import Frame, Stacks, Thread

_PROCESS = lazy_re(r"Process (\d{1,9})(?:: (.*))?$")
_THREAD = lazy_re(r"Thread (0x[0-9a-fA-F]{1,16}|\d{1,9}) \(((?:active|idle)[a-z+ ]{0,40})\)(?:: \"(.*)\")?")
_FRAME = lazy_re(r" {4}(?! )(.+) \(([^()]*|.*?\.so[\w.]*)\)\s*$")
_LINE = lazy_re(r"(.*):(\d+)$")
MAX_THREADS, MAX_FRAMES = 4096, 1024


class PySpy:
    """The dump of one process."""

    name = "py-spy"
    mark = lazy_re(r"^Thread (?:0x[0-9a-fA-F]+|\d+) \((?:active|idle)", re.MULTILINE)

    def read(self, lines: Iterable[str]) -> Stacks | None:
        """Return the stacks in the lines, None for none."""
        pid, command = None, ""
        threads: list[Thread] = []
        frames: list[Frame] = []
        for line in lines:
            if process := _PROCESS.match(line):
                pid, command = int(process[1]), process[2] or ""
            elif (head := _THREAD.match(line)) and len(threads) < MAX_THREADS:
                frames = []
                threads.append(_thread(head))
            elif threads and (match := _FRAME.match(line)) and len(frames) < MAX_FRAMES:
                frames.append(_frame(match[1], match[2]))
                threads[-1] = replace(threads[-1], frames=tuple(frames))
        return Stacks(self.name, tuple(threads), pid=pid, command=command) if threads else None


def _thread(head: re.Match[str]) -> Thread:
    is_handle = head[1].startswith("0x")  # a pthread_t, not a thread id
    return Thread(
        tid=None if is_handle else int(head[1]),
        handle=parse_hex(head[1].removeprefix("0x")) if is_handle else None,
        name=head[3] or "",
        state=head[2],
    )


def _frame(function: str, where: str) -> Frame:
    line = _LINE.match(where)
    return Frame(function, module=where) if line is None else frame_of_file(function, line[1], int(line[2][:9]))


def frame_of_file(function: str, file: str, line: int | None) -> Frame:
    """Return a frame with a source file: py-spy names those of native frames too, where it has debug information."""
    is_python = file.endswith((".py", ">")) or file.startswith("<")
    return Frame(function, file=file, line=line, language="python" if is_python else "native")
