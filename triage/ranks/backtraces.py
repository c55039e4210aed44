"""Where a printed backtrace begins in a log, and which lines of the same writer belong to it. `triage.stacks` reads
what is in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from triage.base.lazy_re import lazy_re
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
    "frame #0: ",
    "Exception raised from ",
    "C++ CapturedTraceback:",
    "), PID: ",
    "Check failure stack trace",
    " detected ***",
    ")[0x",
    ") [0x",
    "Native frames: (",
    ") at pc=0x",
    'Exception in thread "',
    ".java:",
    ".scala:",
    "stop reason = ",
    "PLEASE submit a bug report",
    "The process died due",
    "Caught signal ",
)
_OPENS = lazy_re(
    r"\s*(?:> ?)*(?:Program (?:terminated with|received) signal|Thread \d+ \"[^\"]*\" received signal|#0 +(?:0x[0-9a-f]{4,} (?:in )?|[\w:~<(]\S* \()|"
    r"Thread \d+ \((?:Thread 0x|LWP \d|process \d)|==\d+==ERROR: \w+Sanitizer: |WARNING: ThreadSanitizer: |Stack trace (?:of thread|\(most recent)|"
    r"\*\*\* Error in `|Stack dump:|C\+\+ Traceback \(most recent call last\)|crash reason: ?|(?:\[[\d-]+ [\d:,]+ )?(?:[A-Z] \d+ \d+\] )?(?:\w+\.cc:\d+: )?\*\*\* SIG[A-Z]+ (?:received at|\(@)|"
    r"========= Invalid __|\[bt\] \(0\)|TID \d+:$|"
    r"(?:Current t|T)hread 0x[0-9a-f]+(?: \[[^\]]*\])? \(most recent call first\):|Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$|"
    r"frame #0: \S|Exception raised from \S.* at \S+:\d+ \(most recent call first\)|C\+\+ CapturedTraceback:|SIG[A-Z]+\(\d+\), PID: \d+, Thread \d+|"
    r"\*\*\* Check failure stack trace: \*\*\*|\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*|[\w./+-]+\([\w.$+~:<>,&* -]*\) ?\[0x[0-9a-f]+\]$|"
    r"Native frames: \(|# +SIG[A-Z]+ \(0x[0-9a-f]+\) at pc=|Exception in thread \"[^\"]*\" [a-z]|at [\w$.<>/]+\([\w$]+\.(?:java|scala):\d+\)|"
    r"\* thread #\d+.* stop reason = |PLEASE submit a bug report|The process died due (?:to )?receiving signal|\[[^\]\s]+:\d+ ?:\d*:\d+\] +Caught signal \d)"
)
_GOES_ON = lazy_re(
    r"\s*(?:> ?)*(?:$|#(?:$| )|  (?:File \"|<no Python frame>|\.\.\.|Binary file)|Current thread 0x|Extension modules: |\[Inferior |#\d+[ :]|\*?\s*(?:frame|thread) #|"
    r"Thread \d|\[New |\[Current|\[Switching|\[Thread debugging|Using host|\((?:gdb|lldb)\)|--+Type|Missing separate|Core was generated|"
    r"Program terminated|Backtrace stopped|\(More stack|No (?:locals|symbol)|PID \d|TID \d|(?:Write|Read|Previous \w+|Location|Mutex \w+) (?:of|is|at|\w+ created)|"
    r"(?:PC: )?@ +0x|(?:logging\.cc:\d+: )(?:PC: )?\s*@ |\.\.\. \d+ (?:more|common)|Caused by: |Suppressed: |siginfo: |[CVvJjA]  \[|Native frames|SIG[A-Z]+\(\d+\), PID: |"
    r"\((?:C|Python)\) File|Traceback for thread|\d\.\s+\S|Exception raised from |(?:thread|process) #\d|<omitting|\[\w+:\d+ ?:\d*:\d+\] )|"
    r"\s+(?:at|from|in) |\s{3,}\S|\d+\t|warning:|"
    r"\s*\[ ?\d+\]|.*@ +0x|PC: @|=+|\s*\d{1,3} {1,}\S|Stack (?:trace|dump)|\s*\[bt\]|\S+\([^)\s]*\) ?\[0x|Segmentation fault|FatalError|Error Message|-{5,}|"
    r"\[(?:process|stack|SignalInfo|TimeInfo)\b|crash |\s*\[SignalInfo|\s*\[TimeInfo|freed by|previously allocated|READ of|WRITE of|SUMMARY:|"
    r"0x[0-9a-f]+ (?:is|in) "
)
# What programs say right before their stack.
_LEADS = lazy_re(
    r"\s*(?:> ?)*(?:Program terminated|Program received|Thread \d+|Core was generated|PID \d+ - |TID \d+:|\[Current thread|\[Switching|\[New LWP|warning: |"
    r"Segmentation fault|Aborted|Bus error|SIG[A-Z]+\(|\*\*\* |PLEASE submit|Stack dump|\d\.\t|\[\S+:\d+ ?:\d*:\d+\] +Caught signal|Process \d+ stopped|\* thread #|"
    r"# +SIG[A-Z]+ \(|# +A fatal error|#$|(?:[\w$]+\.)+\w+(?:Exception|Error)(?:: |$)|Check failed: |=+ ?Backtrace|Process \d+ \()"
)
# What systemd-coredump and coredumpctl say before the stack, the list of modules included, and the only lines that they
# need be read for.
_SYSTEMD = lazy_re(r"\s*(?:Stack trace of thread \d+:|#0 +0x[0-9a-f]+ \S.* \(\S+ \+ 0x[0-9a-f]+\))")
_SYSTEMD_HEAD = lazy_re(
    r"\s*(?:$|(?:\[\S+\] )?Process \d+ \(|(?:Found )?[Mm]odule |(?:[A-Z][\w-]+ ){0,2}[A-Z][\w-]+: |ELF object)"
)
_SYSTEMD_SAYS = lazy_re(r".*\bProcess \d+ \(|\s*(?:PID|Signal|Command Line): ")
_MOST_MODULES = 400
_TORN = lazy_re(r"\s*frame #\d+: .*[^)\s]$")  # its end stands in the next line
# Lines with which nobody begins a record of his own.
_INSIDE = lazy_re(
    r"\s*(?:> ?)*(?:#\d+ |\*? *frame #\d+: |Thread \d+ \(|\* thread #|at [\w$.<>/]+\(|File \"|\((?:C|Python)\) File \"|Binary file \"|"
    r"(?:Current t|T)hread 0x|\[bt\] \(\d+\)|\S+\([^)\s]*\) ?\[0x[0-9a-f]+\]|(?:PC: )?@ +0x|[CVvJjA]  \[|\[\d+\] .*\+0x|"
    r"(?:\[[^\]\s]+:\d+\] )?\[ ?\d+\] \S|=========  +|\d{1,3} +(?:0x[0-9a-f]{4}|\S+\(\S*\) ?\[0x|[A-Za-z_]\w*::)|what\(\):)"
)
_NEAR = 12
_HEAD = 6
MOST = 4000
"""Lines of one backtrace: a dump of all threads of a large process."""


def opens(line: Line) -> bool:
    """Does a backtrace begin here?"""
    text = line.parsed.text
    return any(hint in text for hint in _HINTS) and _OPENS.match(text) is not None


def leads(line: Line) -> bool:
    """Does the line say what the stack below it is about?"""
    return _LEADS.match(line.parsed.text) is not None


def head(first: Line, before: Iterable[Line]) -> list[Line]:
    """The lines above a backtrace that say what it is about, topmost first; `before` are those above it, nearest first."""
    if _SYSTEMD.match(first.parsed.text):
        return _systemd_head(first, before)
    own = (line for line in before if line.parsed.writer == first.parsed.writer)
    return list(itertools.islice(itertools.takewhile(leads, own), _HEAD))[::-1]


def _systemd_head(first: Line, before: Iterable[Line]) -> list[Line]:
    """The journal puts systemd-coredump's prefix before the first line of its message only."""
    writers = {first.parsed.writer}
    found = []
    for line in itertools.islice(before, _MOST_MODULES):
        writer = line.parsed.writer
        if len(writers) == 1 and "systemd-coredump" in writer and writer.startswith(first.parsed.writer):
            writers.add(writer)
        if writer not in writers:
            continue
        if not _SYSTEMD_HEAD.match(line.parsed.text):
            break
        if _SYSTEMD_SAYS.match(line.parsed.text):
            found.append(line)
    return found[::-1]


def stamped(first: Line, following: Iterable[Line]) -> bool:
    """Has every line a stamp of its own, those inside of a stack too? Then a collector put it there, and no record
    begins with it.

    `following` are the lines of the same writer.
    """
    near = itertools.islice(following, _NEAR) if first.parsed.record else ()
    return any(line.parsed.layers == first.parsed.layers and _INSIDE.match(line.parsed.text) for line in near)


def collect(first: Line, following: Iterable[Line], stamped: bool = False) -> list[Line]:
    """The lines of the backtrace that `first` opens; `following` are those of the same writer, `stamped` whether a
    stamp opens no record.
    """
    lines = [first]
    blank = 0
    for line in following:
        text = line.parsed.text
        goes_on = _GOES_ON.match(text) or (_TORN.match(lines[-1].parsed.text) and len(text) < 400)
        apart = line.parsed.record and "@ " not in text and not stamped
        if len(lines) >= MOST or not goes_on or apart:
            break
        blank = blank + 1 if not text.strip() else 0
        if blank > 3:
            break
        lines.append(line)
    while len(lines) > 1 and not lines[-1].parsed.text.strip():
        lines.pop()
    return lines
