"""Where in a text the dump of one process ends and that of the next begins, as ranks share a file or a terminal.

- A heading of a tool begins a dump: `Process 4711: python train.py`, `Timeout (0:05:00)!`, `[New LWP 12]`.
- faulthandler prints the main thread, the oldest one, last: a thread after it, or one that is there already, is of
  another dump. `pthread_t` differs between processes, except between those that were forked from one process.
- pystack prints the main thread last, too: its outermost frame comes first, and a thread after it is of another dump.
- gdb numbers the threads of one process: the same number of another thread is of another process. Its `py-bt` alone
  prints one thread.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from triage.base.lazy_re import lazy_re

_HEADING = lazy_re(
    r"\s*(?:Process \d+(?:: \S| stopped)|PID \d+ - process|Attaching to (?:program|process)|\[New LWP \d+\]|"
    r"\[Thread debugging using|Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!|Fatal Python error: |"
    r"Stack \(most recent call first\):)"
)
_PYTHON_THREAD = lazy_re(r"\s*(?:Current t|T)hread (0x[0-9a-f]+)(?: \[[^\]]*\])? \(most recent call first\)")
_GDB_THREAD = lazy_re(r"\s*Thread (\d+) \(((?:Thread 0x|LWP |process )[^)]{1,80})\)")
_PYSTACK_THREAD = lazy_re(r"\s*Traceback for thread \d+ ")
_PYSTACK_FRAME = lazy_re(r'\s*\((?:C|Python)\) File "[^"]{0,4096}", line \d+, in (?P<function>.*\S)')
_PY_BT = lazy_re(r"\s*Traceback \(most recent call first\):")
_FRAME = lazy_re(
    r'\s*(?:#\d+ |File "[^"]{1,4096}", line \d+,? in (?P<function>.*)|frame #\d+|\S.{0,500} \([^()]{1,4096}:\d+\)$)'
)
_NAMED_PROCESS = lazy_re(
    r" {0,3}(?!\s)[\s=#*>+$|.:~_\[(-]{0,40}(?:(?:dump|stacks?|threads?) of |global[ _-]|"
    r"local[ _-]?rank[ _:=#-]{0,3}\d{1,7}[ ,/|]{1,5}|\S{0,200}/|[\w.-]{1,60}[\])]? ?[|:,] ?)?"
    r"(?:rank[ _:=#-]{0,3}\d{1,7}\b|pid[ _:=#-]{0,3}\d{1,9}\b|(?:host|node)[ :=]{1,3}[\w.-]{1,100}[ ,:/]{1,3}rank|"
    r"(?:sudo )?(?:\S{0,200}/)?(?:py-spy|gdb|pstack|eu-stack|pystack) [^\"]{0,200}\d)[^\"]{0,200}$",
    re.IGNORECASE,
)
_RANK = lazy_re(r"(?i)(?<!local[ _-])(?<!node[ _-])rank[ _:=#-]{0,3}(\d{1,7})\b")
_PID = lazy_re(r"(?i)(?:\bpid[ _:=#-]{0,3}|-p |(?:pstack|gdb .{0,100}) )(\d{1,9})\b")
_HOST = lazy_re(r"(?i)\b(?:host|node)[ :=]{1,3}(?!rank)([a-z][\w.-]{0,100})")
# `python train.py --rank 2`, as py-spy prints the command line.
_COMMAND_RANK = lazy_re(r"(?m)^Process \d+: [^\n]{0,4000}? --(?:global[-_])?rank[= ](\d{1,7})(?:\s|$)")
_DETACHED = lazy_re(r"(?m)^\[Inferior \d+ \(process (\d{1,9})\) detached\]")
_OUTERMOST = frozenset(("<module>", "_run_module_as_main"))


class DumpBoundaries:
    """Reads the lines of dumps in their order, without prefixes, and knows where the dump of a process begins.

    `has_frames`: the dump has frames so far.
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._threads: dict[str, str] = {}
        self.has_frames = False
        self._ends_main = False

    def begins_dump(self, line: str) -> bool:
        """Read the next line; return whether it is the first one of a further dump."""
        python, gdb = _PYTHON_THREAD.match(line), _GDB_THREAD.match(line)
        begins = self.has_frames and (
            _HEADING.match(line) is not None
            or (python is not None and (self._ends_main or python[1] in self._threads))
            or (gdb is not None and self._threads.get(gdb[1], gdb[2]) != gdb[2])
            or (self._ends_main and (_PY_BT.match(line) or _PYSTACK_THREAD.match(line)) is not None)
        )
        if begins:
            self._start()
        if python is not None:
            self._threads[python[1]] = ""
        elif gdb is not None:
            self._threads[gdb[1]] = gdb[2]
            self._ends_main = False
        elif (frame := _PYSTACK_FRAME.match(line)) is not None:
            self.has_frames = True
            self._ends_main = self._ends_main or frame["function"] in _OUTERMOST
        elif (frame := _FRAME.match(line)) is not None:
            self.has_frames = True
            self._ends_main = frame["function"] in _OUTERMOST
        return begins


class Section(NamedTuple):
    """The dump of one process in a text, and what the headings above it say of the process."""

    text: str
    rank: int | None = None
    pid: int | None = None
    host: str | None = None


def split_dumps(text: str) -> list[Section]:
    """Return the dumps of a text in their order, each of one process at one moment.

    Headings are what people and scripts print above a dump: `=== rank 2 (pid 4711) ===`, `$ py-spy dump --pid 4711`.
    """
    sections: list[Section] = []
    boundaries = DumpBoundaries()
    lines: list[str] = []
    heading: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        is_heading = is_dump_heading(line)
        if boundaries.begins_dump(line) or (is_heading and boundaries.has_frames):
            sections.append(_section(lines, heading))
            heading, lines = [], []
            if is_heading:
                boundaries = DumpBoundaries()
        if is_heading:
            heading.append(line)
        lines.append(line)
    return [*sections, _section(lines, heading)]


def is_dump_heading(line: str) -> bool:
    """Return whether a line names the process whose dump follows."""
    return _NAMED_PROCESS.match(line) is not None


def _section(lines: list[str], heading: list[str]) -> Section:
    above, text = "\n".join(heading), "\n".join(lines)
    rank, host = _RANK.search(above) or _COMMAND_RANK.search(text), _HOST.search(above)
    pid = _PID.search(above) or _DETACHED.search(text)
    return Section(text, int(rank[1]) if rank else None, int(pid[1]) if pid else None, host[1] if host else None)
