"""Where a printed backtrace begins in a log, and which lines of the same writer belong to it. `triage.stacks` reads what is in it."""

from __future__ import annotations

from collections.abc import Iterable

from triage.lazy_re import lazy_re
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
    r"\*\*\* Error in `|Stack dump:|C\+\+ Traceback \(most recent call last\)|crash reason: ?|(?:[A-Z] \d+ \d+\] )?(?:\w+\.cc:\d+: )?\*\*\* SIG[A-Z]+ (?:received at|\(@)|"
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
    r"(?:PC: )?@ +0x|(?:logging\.cc:\d+: )(?:PC: )?\s*@ |\.\.\. \d+ (?:more|common)|Caused by: |Suppressed: |siginfo: |[CVvJjA]  \[|Native frames|"
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
_TORN = lazy_re(r"\s*frame #\d+: .*[^)\s]$")  # its end stands in the next line
# What is part of a stack even where every line carries the stamp of a record of its own.
_SURE = lazy_re(
    r"\s*(?:> ?)*(?:$|#\d+ |frame #\d+: |Thread \d+ \(|at [\w$.<>/]+\(|File \"|\[bt\] \(\d+\)|\S+\([^)\s]*\) ?\[0x[0-9a-f]+\]|(?:PC: )?@ +0x|[CVvJjA]  \[)"
)
MOST = 4000
"""Lines of one backtrace: a dump of all threads of a large process."""


def opens(line: Line) -> bool:
    """Does a backtrace begin here?"""
    text = line.parsed.text
    return any(hint in text for hint in _HINTS) and _OPENS.match(text) is not None


def leads(line: Line) -> bool:
    """Does the line say what the stack below it is about?"""
    return _LEADS.match(line.parsed.text) is not None


def collect(first: Line, following: Iterable[Line]) -> list[Line]:
    """The lines of the backtrace that `first` opens; `following` are those of the same writer."""
    lines = [first]
    blank = 0
    for line in following:
        text = line.parsed.text
        goes_on = _GOES_ON.match(text) or (_TORN.match(lines[-1].parsed.text) and len(text) < 400)
        apart = line.parsed.record and "@ " not in text and not (first.parsed.record and _SURE.match(text))
        if len(lines) >= MOST or not goes_on or apart:
            break
        blank = blank + 1 if not text.strip() else 0
        if blank > 3:
            break
        lines.append(line)
    while len(lines) > 1 and not lines[-1].parsed.text.strip():
        lines.pop()
    return lines
