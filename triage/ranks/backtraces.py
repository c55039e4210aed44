"""Where a printed backtrace begins in a log, and which lines of the same writer belong to it. `triage.stacks` reads what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from triage.ranks.text import Line

# A quick look first: most lines hold none of these.
_HINTS = (
    "#0 ",
    " signal SIG",
    "terminated with signal",
    "Thread ",
    "Sanitizer: ",
    "Stack trace",
    "*** Error in `",
    "Stack dump:",
    "C++ Traceback",
    "crash reason:",
    "*** SIG",
    "========= Invalid __",
    "[bt] (0)",
    "TID ",
    "hread 0x",
    "Timeout (",
)
_OPENS = re.compile(
    r"\s*(?:Program (?:terminated with|received) signal|Thread \d+ \"[^\"]*\" received signal|#0 +(?:0x[0-9a-f]{4,} (?:in )?|[\w:~<(]\S* \()|"
    r"Thread \d+ \((?:Thread 0x|LWP \d|process \d)|==\d+==ERROR: \w+Sanitizer: |WARNING: ThreadSanitizer: |Stack trace (?:of thread|\(most recent)|"
    r"\*\*\* Error in `|Stack dump:|C\+\+ Traceback \(most recent call last\)|crash reason: ?|\*\*\* SIG[A-Z]+ (?:received at|\(@)|"
    r"========= Invalid __|\[bt\] \(0\)|TID \d+:$|"
    r"(?:Current t|T)hread 0x[0-9a-f]+(?: \[[^\]]*\])? \(most recent call first\):|Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$)"
)
_GOES_ON = re.compile(
    r"$|  (?:File \"|<no Python frame>|\.\.\.|Binary file)|Current thread 0x|Extension modules: |\[Inferior |\s*#\d+[ :]|\s*\*?\s*(?:frame|thread) #|Thread \d|\[New |\[Current|\[Switching|\[Thread debugging|Using host|\(gdb\)|--+Type|\s+(?:at|from|in) |"
    r"\s{3,}\S|\d+\t|warning:|Missing separate|Core was generated|Program terminated|Backtrace stopped|\(More stack|No (?:locals|symbol)|PID \d|TID \d|"
    r"\s*\[ ?\d+\]|.*@ +0x|PC: @|=+|\s*\d{1,3} {1,}\S|Stack trace|\s*\[bt\]|\S+\([^)\s]*\) ?\[0x|Segmentation fault|FatalError|Error Message|-{5,}|"
    r"\[(?:process|stack|SignalInfo|TimeInfo)\b|crash |\s*\[SignalInfo|\s*\[TimeInfo|freed by|previously allocated|READ of|WRITE of|SUMMARY:|0x[0-9a-f]+ is"
)
MOST = 4000
"""Lines of one backtrace: a dump of all threads of a large process."""


def opens(line: Line) -> bool:
    """Does a backtrace begin here?"""
    text = line.parsed.text
    return any(hint in text for hint in _HINTS) and _OPENS.match(text) is not None


def collect(first: Line, following: Iterable[Line]) -> list[Line]:
    """The lines of the backtrace that `first` opens; `following` are those of the same writer."""
    lines = [first]
    blank = 0
    for line in following:
        text = line.parsed.text
        if len(lines) >= MOST or not _GOES_ON.match(text) or (line.parsed.record and "@ " not in text):
            break
        blank = blank + 1 if not text.strip() else 0
        if blank > 3:
            break
        lines.append(line)
    while len(lines) > 1 and not lines[-1].parsed.text.strip():
        lines.pop()
    return lines
