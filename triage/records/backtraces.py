"""Find printed backtraces in a log: their first line, and the lines of the same writer that belong to them.

`triage.stacks` parses them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.records.text import Line
from triage.stacks.beginnings import is_beginning
from triage.stacks.live.boundaries import DumpBoundaries

_CONTINUES = lazy_re(
    r"\s*(?:> ?)*(?:$|#(?:$| )| (?:File \"|<no Python frame>|\.\.\.|Binary file)|Current thread 0x|"
    r"Traceback \(most recent call first|Unable to locate python|  (?:<built-in |Garbage-collect|Waiting for the GIL)|"
    r"Extension modules: |\[Inferior |#\d+[ :]|\*?\s*(?:frame|thread) #|"
    r"Thread \d|\[New |\[Current|\[Switching|\[Thread debugging|Using host|\((?:gdb|lldb)\)|--+Type|Missing separate|"
    r"Core was generated|"
    r"Program terminated|Backtrace stopped|\(More stack|No (?:locals|symbol)|PID \d|TID \d|(?:Write|Read|Previous \w+|"
    r"Location|Mutex \w+) (?:of|is|at|\w+ created)|"
    r"(?:PC: )?@ +0x|(?:logging\.cc:\d+: )(?:PC: )?\s*@ |\.\.\. \d+ (?:more|common)|Caused by: |Suppressed: |"
    r"siginfo: |[CVvJjA]  \[|Native frames|SIG[A-Z]+\(\d+\), PID: |"
    r"\((?:C|Python)\) File|Traceback for thread|\d\.\s+\S|Exception raised from |(?:thread|process) #\d|<omitting|"
    r"\[\w+:\d+ ?:\d*:\d+\] )|"
    r"\s+(?:at|from|in) |\s{3,}\S|\d+\t|warning:|"
    r"\s*\[ ?\d+\]|.*@ +0x|PC: @|=+|\s*\d{1,3} {1,}\S|Stack (?:trace|dump)|\s*\[bt\]|\S+\([^)\s]*\) ?\[0x|"
    r"Segmentation fault|FatalError|Error Message|-{5,}|"
    r"\[(?:process|stack|SignalInfo|TimeInfo)\b|crash |\s*\[SignalInfo|\s*\[TimeInfo|freed by|previously allocated|"
    r"READ of|WRITE of|SCARINESS:|(?:Direct|Indirect) leak of |SUMMARY:|"
    r"0x[0-9a-f]+ (?:is|in) |\t[A-Za-z_~(][\w:~]|\*\*\* End stack trace|in expression starting at |"
    r"[\w!#.]{1,200} at (?:\S+\.\w+:\d+(?: \[inlined\])?|\S+ \(unknown line\))$|unknown function \(ip|"
    r"Image +PC |\S+ +[0-9A-F]{16} +\w+ +(?:\d+|Unknown) +\S+\s*$|"
    r"(?:Exception|Termination) \w+: "
)
# Lines that programs write directly before a stack.
_HEADING = lazy_re(
    r"\s*(?:> ?)*(?:Program terminated|Program received|Thread \d+|Core was generated|PID \d+ - |TID \d+:|"
    r"\[Current thread|\[Switching|\[New LWP|warning: |Timeout \(\d+:\d\d:\d\d|"
    r"Segmentation fault|Aborted|Bus error|SIG[A-Z]+\(|\*\*\* |PLEASE submit|Stack dump|\d\.\t|"
    r"\[\S+:\d+ ?:\d*:\d+\] +Caught signal|Process \d+ stopped|\* thread #|"
    r"# +SIG[A-Z]+ \(|# +A fatal error|#$|(?:[\w$]+\.)+\w+(?:Exception|Error)(?:: |$)|"
    r"(?:F(?:0000 00:00:\d+\.\d+ +\d+)? \S+\] )?Check failed: |=+ ?Backtrace|"
    r"Process \d+ \()"
)
# The lines of systemd-coredump and coredumpctl before the stack, with their list of modules, and the useful ones.
_SYSTEMD = lazy_re(r"\s*(?:Stack trace of thread \d+:|#0 +0x[0-9a-f]+ \S.* \(\S+ \+ 0x[0-9a-f]+\))")
_SYSTEMD_HEAD = lazy_re(
    r"\s*(?:$|(?:\[\S+\] )?Process \d+ \(|(?:Found )?[Mm]odule |(?:[A-Z][\w-]+ ){0,2}[A-Z][\w-]+: |ELF object)"
)
_SYSTEMD_USEFUL = lazy_re(r".*\bProcess \d+ \(|\s*(?:PID|Signal|Command Line): ")
# py-spy prints the process, the version, and an empty line.
_PY_SPY = lazy_re(r"Thread \S+ \((?:active|idle)")
_PY_SPY_HEADING = lazy_re(r"$|Python v\d|Process \d+: \S|\s*(?:```|~~~)")
# `## Rank 2`, `Rank 2 hangs. py-spy shows:`; a line of a log that only begins with a rank is no heading.
_RANK_HEADING = lazy_re(
    r"(?i)[#=*-]{1,10} ?\*{0,2}(?:global[ _-]?)?rank[ _:=#-]{0,3}\d{1,7}\b[^\n]{0,100}$"
    r"|(?:on |of )?rank[ _:=#-]{0,3}\d{1,7}\b[^\n]{0,150}\b(?:py-spy|stacks?|dump)\b[^\n]{0,100}$"
)
_MOST_MODULES = 400
_OPEN_FRAME = lazy_re(r"\s*frame #\d+: .*[^)\s]$")  # it ends on the next line
# Lines inside a stack: no program begins a record with them.
_INSIDE = masked_re(
    r"\A\s*(?:> ?)*(?:#\d+ |\*? *frame #\d+: |Thread \d+ \(|\* thread #|at [\w$.<>/]+\(|File \"|\((?:C|"
    r"Python)\) File \"|Binary file \"|"
    r"(?:Current t|T)hread 0x|\[bt\] \(\d+\)|\S+\([^)\s]*\) ?\[0x[0-9a-f]+\]|(?:PC: )?@ +0x|[CVvJjA]  \[|"
    r"\[\d+\] .*\+0x|"
    r"(?:\[[^\]\s]+:\d+\] )?\[ ?\d+\] \S|=========  +|\d{1,3} +(?:0x[0-9a-f]{4}|\S+\(\S*\) ?\[0x|[A-Za-z_]\w*::)|"
    r"what\(\):| {4}\S.{0,2000} \((?:[^()\s]{1,300}:\d+|[^()\s]{1,300}\.so[\d.]{0,20})\)$)"
)
_NEAR = 12
_HEADING_LINES = 6
_MOST_LINES = 4000  # a dump of all threads of a large process


def opens_backtrace(line: Line) -> bool:
    """Does a backtrace begin with this line?"""
    return is_beginning(line.parsed.text)


def read_heading(first: Line, before: Iterable[Line]) -> list[Line]:
    """Return the lines above a backtrace that say what it is about, topmost first. `before` are nearest first."""
    if _SYSTEMD.match(first.parsed.text):
        return _read_systemd_heading(first, before)
    own = (line for line in before if line.parsed.writer == first.parsed.writer)
    pattern = _PY_SPY_HEADING if _PY_SPY.match(first.parsed.text) else _HEADING
    heading: list[Line] = []
    for line in itertools.islice(own, _HEADING_LINES):
        is_rank = pattern is _PY_SPY_HEADING and _RANK_HEADING.match(line.parsed.text) is not None
        if not is_rank and not pattern.match(line.parsed.text):
            break
        heading.append(line)
        if is_rank:
            break
    return heading[::-1]


def _read_systemd_heading(first: Line, before: Iterable[Line]) -> list[Line]:
    """Return the useful lines above. The journal puts systemd-coredump's prefix only before the first of them."""
    writers = {first.parsed.writer}
    heading = []
    for line in itertools.islice(before, _MOST_MODULES):
        writer = line.parsed.writer
        if len(writers) == 1 and "systemd-coredump" in writer and writer.startswith(first.parsed.writer):
            writers.add(writer)
        if writer not in writers:
            continue
        if not _SYSTEMD_HEAD.match(line.parsed.text):
            break
        if _SYSTEMD_USEFUL.match(line.parsed.text):
            heading.append(line)
    return heading[::-1]


def has_stamp_on_every_line(first: Line, following: Iterable[Line]) -> bool:
    """Has every line a timestamp, those inside a stack too? Then a collector wrote it, and it opens no record.

    `following` are the lines of the same writer.
    """
    near = itertools.islice(following, _NEAR) if first.parsed.opens_record else ()
    return any(line.parsed.layers == first.parsed.layers and _INSIDE.search(line.parsed.text) for line in near)


def collect(first: Line, following: Iterable[Line], is_stamped: bool = False) -> list[Line]:
    """Return the lines of the backtrace that `first` opens.

    `following` are the lines of the same writer. `is_stamped`: every line has a timestamp, so that one opens no record.
    The dump of another process is a backtrace of its own.
    """
    lines = [first]
    blank = 0
    boundaries = DumpBoundaries()
    boundaries.begins_dump(first.parsed.text)
    for line in following:
        text = line.parsed.text
        belongs = _CONTINUES.match(text) or (_OPEN_FRAME.match(lines[-1].parsed.text) and len(text) < 400)
        opens_record = line.parsed.opens_record and "@ " not in text and not is_stamped
        if len(lines) >= _MOST_LINES or not belongs or opens_record or boundaries.begins_dump(text):
            break
        blank = blank + 1 if not text.strip() else 0
        if blank > 3:
            break
        lines.append(line)
    while len(lines) > 1 and not lines[-1].parsed.text.strip():
        lines.pop()
    return lines
