"""Stacks printed by handlers within programs: c10, glibc, Open MPI, UCX, glog, caffe2, backward-cpp, LLVM, paddle."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from triage.base.lazy_re import lazy_re
from triage.stacks.forms.lines import LineFormat, LineReader
from triage.stacks.model import Stacks

_WHAT = lazy_re(r"^\s*what\(\):\s*(?P<message>.*\S)")
_TERMINATE = lazy_re(r"terminate called after throwing an instance of '(?P<error>[^']+)'")

# c10/util/Backtrace.cpp; with TORCH_SYMBOLIZE the frames come as `#4 f from x.cpp:12`.
_C10 = LineReader(
    LineFormat(
        name="c10",
        mark=lazy_re(r"^\s*frame #\d+: .|^Exception raised from |^C\+\+ CapturedTraceback:", re.MULTILINE),
        frames=(
            lazy_re(
                r"\s*frame #(?P<n>\d+): (?P<func>.+?)(?: \+ (?P<plus>0x[0-9a-f]+))? \((?P<addr>0x[0-9a-f]+) in "
                r"(?P<module>[^()]+)\)\s*$"
            ),
            lazy_re(r"\s*(?:frame )?#(?P<n>\d+):? (?P<func>[^`]+?) from (?P<file>\S+?):(?P<line>\d+)\s*$"),
        ),
        thread=lazy_re(r".*?\bSIG[A-Z]+\(\d+\), PID: \d+, Thread (?P<tid>\d+):"),
        facts=(
            lazy_re(r"\b(?P<signal>SIG[A-Z]+)\(\d+\), PID: (?P<pid>\d+), Thread \d+:"),
            lazy_re(r"Exception raised from (?P<raised>\S.*?) at (?P<place>\S+):\d+ \(most recent call first\)"),
            _TERMINATE,
            _WHAT,
            lazy_re(
                r"^(?P<message>(?:CUDA|CUDNN|NCCL|HCCL|ACL) error\b.*|.*\bERR\d{5}\b.*|\[PG .*|.*Watchdog caught.*)"
            ),
        ),
        start=lazy_re(r"\s*frame #\d+: "),
        first_crashed=True,
    )
)


class C10:
    """Stacks of PyTorch's c10: of an exception, or of all threads after a fatal signal."""

    name = "c10"
    mark = _C10.mark

    def read(self, lines: Iterable[str]) -> Stacks | None:
        """Return the stacks in the lines, None for none; the thread of the signal need not be the first."""
        stacks = _C10.read(lines)
        threads = stacks.threads if stacks else ()
        crashed = next(
            (thread for thread in threads if any(_HANDLER in frame.function for frame in thread.frames)), None
        )
        if stacks is None or crashed is None:
            return stacks
        return replace(stacks, threads=tuple(replace(thread, crashed=thread is crashed) for thread in threads))


_HANDLER = "FatalSignalHandler::fatalSignalHandler"
_SYMBOLS = (
    # path(symbol+0x12) [0x7f], path(+0x12)[0x7f], path() [0x7f]
    lazy_re(
        r"\s*(?:\[(?P<who>[^\]\s]+:\d+)\] ?)?(?:\[bt\] ?)?(?:[\[(] ?(?P<n>\d+)[\])]:? +)?"
        r"(?P<module>(?=[^\s(]*[A-Za-z])[^\s()\[\]:]+)\("
        r"(?P<func>[A-Za-z_.$?].*?)?(?:\+(?P<plus>0x[0-9a-f]+))?\) ?\[(?P<addr>0x[0-9a-f]+)\]\s*$"
    ),
    lazy_re(
        r"\s*(?:\[(?P<who>[^\]\s]+:\d+)\] ?)?(?:\[bt\] ?)?(?:[\[(] ?(?P<n>\d+)[\])]:? +)?"
        r"(?P<module>[\w./+-]*[A-Za-z][\w./+-]*) ?\[(?P<addr>0x[0-9a-f]+)\]\s*$"
    ),
)

OPEN_MPI = LineReader(
    LineFormat(
        name="openmpi",
        mark=lazy_re(r"\*\*\* Process received signal \*\*\*|^\[[^\]\s]+:\d+\] \[ ?\d+\] ", re.MULTILINE),
        frames=tuple(
            lazy_re(pattern.pattern.replace(r"(?:[\[(] ?(?P<n>\d+)[\])]:? +)?", r"\[ ?(?P<n>\d+)\] +"))
            for pattern in _SYMBOLS
        ),
        facts=(
            lazy_re(r"\bSignal: (?P<signal>[A-Z][a-z ]+?) \(\d+\)"),
            lazy_re(r"\bSignal code:.*?\(?(?P<code>-?\d+)\)?\s*$"),
            lazy_re(r"\bFailing at address: (?P<address>0x[0-9a-f]+|\(nil\))"),
            lazy_re(r"\[[^\]\s]+:0*(?P<pid>\d+)\] \*\*\* Process received"),
        ),
        first_crashed=True,
    )
)

GLIBC = LineReader(
    LineFormat(
        name="glibc",
        mark=lazy_re(
            r"^\s*(?:\[bt\]|[^\s()\[\]]+\([^()\s]*\) ?\[0x)|={3,} Backtrace: ={3,}|^\*\*\* Error in `", re.MULTILINE
        ),
        frames=_SYMBOLS,
        facts=(
            lazy_re(r"\*\*\* (?:Error in `(?P<command>[^']*)': )(?P<message>.*?): 0x[0-9a-f]+ \*\*\*"),
            lazy_re(r"(?P<message>\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*)"),
            lazy_re(
                r"(?P<message>(?:double free|free\(\)|malloc\(\)|corrupted size|munmap_chunk\(\)|realloc\(\))\S*: ?.*|"
                r"double free or corruption.*)"
            ),
            _TERMINATE,
            _WHAT,
            lazy_re(r"(?P<signal>Segmentation fault|Aborted|Bus error|SIG(?:SEGV|ABRT|BUS|FPE|ILL))\b"),
        ),
        ends=lazy_re(r"={3,} Memory map"),
        first_crashed=True,
    )
)

UCX = LineReader(
    LineFormat(
        name="ucx",
        mark=lazy_re(r"==== ?backtrace(?: \(tid: *\d+\))? ?====|Caught signal \d+ \("),
        frames=(
            lazy_re(
                r"\s*(?:\[[^\]\s]+\] )?(?P<n>\d+) +(?P<module>[^\s()]+)\((?P<func>[^+()]*)(?:\+"
                r"(?P<plus>0x[0-9a-f]+))?\) ?\[(?P<addr>0x[0-9a-f]+)\]\s*$"
            ),
            lazy_re(r"\s*(?P<n>\d+) +(?P<offset>0x[0-9a-f]+) (?P<func>[^\s].*?)\(\) +(?P<file>\S+):(?P<line>\d+)\s*$"),
            lazy_re(r"\s*(?P<n>\d+) +(?P<offset>0x[0-9a-f]+) (?P<func>\S.*?)\(\)\s*$"),
        ),
        thread=lazy_re(r".*==== ?backtrace(?: \(tid: *(?P<tid>\d+)\))? ?===="),
        facts=(
            lazy_re(
                r":(?P<pid>\d+):[^:\]]*:[^\]]*\] +Caught signal (?P<signal>\d+) \([^)]*?(?:at address "
                r"(?P<address>0x[0-9a-f]+|\(nil\)))?\)"
            ),
            lazy_re(r"Caught signal (?P<signal>\d+)"),
        ),
        ends=lazy_re(r"={8,}\s*$"),
        first_crashed=True,
    )
)

# glog, Abseil (Ray, JAX, TensorFlow), folly: `    @     0x7f  32  f()`, from the handler and again through the log.
GLOG = LineReader(
    LineFormat(
        name="glog",
        mark=lazy_re(r"^.*(?:\s|^)@ +(?:0x[0-9a-f]{4,}|[0-9a-f]{16})\s", re.MULTILINE),
        frames=(
            lazy_re(
                r"(?!.*\bPC: @)(?:.*\S\s)?\s*@ +(?P<addr>0x[0-9a-f]{4,16}|[0-9a-f]{16})(?: +(?:\d+|\(unknown\)))? +"
                r"(?P<func>\S.*?)\s*$"
            ),
        ),
        facts=(
            lazy_re(r"\*\*\* (?P<signal>SIG[A-Z]+) received at time="),
            lazy_re(
                r"\*\*\* (?P<signal>SIG[A-Z]+) \(@(?P<address>0x[0-9a-f]+|\(nil\))\) received by PID "
                r"(?P<pid>\d+) \(TID (?:0x[0-9a-f]+|(?P<tid>\d+))"
            ),
            lazy_re(
                r"\*\*\* Signal (?P<signal>\d+) \(SIG[A-Z]+\) \((?P<address>0x[0-9a-f]+)\) received by PID (?P<pid>\d+)"
            ),
            lazy_re(r"(?P<error>Check failed): (?P<message>.*)"),
        ),
        thread=lazy_re(r".*(?:\*\*\* (?:SIG[A-Z]+|Check failure|Aborted|Signal \d)|Check failed:)"),
        first_crashed=True,
    )
)

# Boost, and std::stacktrace of GCC: ` 4# f() at /src/x.cpp:12`.
STACKTRACE = LineReader(
    LineFormat(
        name="stacktrace",
        mark=lazy_re(r"^\s{0,4}\d+# \S[^\n]* (?:at \S+:\d+|in \S+)\s*$", re.MULTILINE),
        frames=(
            lazy_re(r"\s{0,4}(?P<n>\d{1,4})# (?P<func>\S.*?) at (?P<file>\S+):(?P<line>\d+)\s*$"),
            lazy_re(r"\s{0,4}(?P<n>\d{1,4})# (?P<func>\S.*?) in (?P<module>\S+)\s*$"),
        ),
        facts=(_TERMINATE, _WHAT, lazy_re(r"^(?P<signal>Segmentation fault|Aborted|Bus error)")),
        first_crashed=True,
    )
)

# libgfortran: the place of a frame stands in the next line; the compiler appends an underscore.
GFORTRAN = LineReader(
    LineFormat(
        name="gfortran",
        mark=lazy_re(r"^(?:Backtrace for this error:|Error termination\. Backtrace:)", re.MULTILINE),
        frames=(lazy_re(r"#(?P<n>\d{1,4}) +(?P<addr>0x[0-9a-f]+) in (?P<func>\?\?\?|\w+?)_?\s*$"),),
        facts=(
            lazy_re(r"^Program received signal (?P<signal>SIG[A-Z]+): "),
            lazy_re(r"^Fortran (?P<error>runtime error): (?P<message>.*)"),
        ),
        first_crashed=True,
    )
)

CAFFE2 = LineReader(
    LineFormat(
        name="caffe2",
        mark=lazy_re(r"^.*\[\d+\] \S[^\n]*\+0x[0-9a-f]+\(0x[0-9a-f]+\) in \S", re.MULTILINE),
        frames=(
            lazy_re(
                r".*?\[(?P<n>\d+)\] (?P<func>\S.*?)\+(?P<plus>0x[0-9a-f]+)\((?P<addr>0x[0-9a-f]+)\) in "
                r"(?P<module>\S+)\s*$"
            ),
            lazy_re(r".*?\[(?P<n>\d+)\] (?P<func>\?\?\?)\s*$"),
        ),
        facts=(
            lazy_re(
                r"(?P<signal>SIG(?:SEGV|ABRT|BUS|FPE|ILL))\((?P<num>\d+)\)[^\n]*PID: (?P<pid>\d+), Thread (?P<tid>\d+)"
            ),
            lazy_re(r"(?P<signal>SIG(?:SEGV|ABRT|BUS|FPE|ILL))\b"),
        ),
        first_crashed=True,
    )
)

BACKWARD = LineReader(
    LineFormat(
        name="backward",
        mark=lazy_re(r"^\s*#\d+ +(?:Object|Source) \"", re.MULTILINE),
        frames=(
            lazy_re(r"\s*#\d+ +Object \"(?P<module>[^\"]*)\", at (?P<addr>0x[0-9a-f]+), in (?P<func>.*?)\s*$"),
            lazy_re(
                r"\s*#\d+ +Source \"(?P<file>[^\"]*)\", line (?P<line>\d+), in (?P<func>.*?)(?: \["
                r"(?P<addr>0x[0-9a-f]+)\])?\s*$"
            ),
        ),
        facts=(
            lazy_re(
                r"^(?P<signal>Segmentation fault|Aborted|Bus error|Floating point exception|Illegal instruction)\b.*?"
                r"(?:\[(?P<address>0x[0-9a-f]+)\])?"
            ),
        ),
        thread=lazy_re(r"Stack trace \(most recent call last\)"),
        reverse=True,
        first_crashed=True,
    )
)

LLVM = LineReader(
    LineFormat(
        name="llvm",
        mark=lazy_re(
            r"^\s*#\d+ 0x[0-9a-f]{6,16} (?!in )\S[^\n]*(?:\(\S+\+0x[0-9a-f]+\)|:\d+:\d+)\s*$|^Stack dump", re.MULTILINE
        ),
        frames=(
            lazy_re(
                r"\s*#(?P<n>\d+) (?P<addr>0x[0-9a-f]{6,16}) (?!in )(?P<func>\S.*?) \((?P<module>[^()\s]+)\+"
                r"(?P<offset>0x[0-9a-f]+)\)\s*$"
            ),
            lazy_re(r"\s*#(?P<n>\d+) (?P<addr>0x[0-9a-f]{6,16}) \((?P<module>[^()\s]+)\+(?P<offset>0x[0-9a-f]+)\)\s*$"),
            lazy_re(
                r"\s*#(?P<n>\d+) (?P<addr>0x[0-9a-f]{6,16}) (?!in )(?P<func>\S.*?) (?P<file>/\S+?):"
                r"(?P<line>\d+):\d+\s*$"
            ),
        ),
        facts=(
            lazy_re(r"^(?P<signal>Segmentation fault|Aborted|Bus error)"),
            lazy_re(r"^(?P<message>.*Assertion `.*failed\.)"),
        ),
        first_crashed=True,
    )
)

PADDLE = LineReader(
    LineFormat(
        name="paddle",
        mark=lazy_re(r"C\+\+ Traceback \(most recent call last\)"),
        frames=(lazy_re(r"(?P<n>\d{1,3}) {2,}(?P<func>[A-Za-z_~?(<].*?)\s*$"),),
        facts=(
            lazy_re(
                r"\[SignalInfo: \*\*\* (?P<signal>SIG[A-Z]+) \(@(?P<address>0x[0-9a-f]+)\) received by PID (?P<pid>\d+)"
            ),
            lazy_re(r"FatalError: (?:A serious error \()?`?(?P<signal>[A-Z][a-z -]+)`?\)? is detected"),
            lazy_re(r"^(?P<error>[A-Z]\w+Error): (?P<message>.*)"),
        ),
        reverse=True,
        first_crashed=True,
    )
)
