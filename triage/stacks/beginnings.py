"""The one list of lines with which a printed stack begins in a log.

The scan looks for TRIGGERS, `records.backtraces` checks HINTS and then PATTERN, and `parser` reads what follows.
"""

from __future__ import annotations

from typing import NamedTuple

from triage.base.lazy_re import lazy_re


class Beginning(NamedTuple):
    """One kind of first line.

    `pattern` matches its text from the start, every match contains one of the `hints`, and the scan looks for the
    `triggers`, which may also stand in the lines after it. Without triggers another line of the stack has one.
    """

    pattern: str
    hints: tuple[str, ...]
    triggers: tuple[str, ...] = ()


BEGINNINGS: tuple[Beginning, ...] = (
    # gdb and lldb
    Beginning(r"#0 +(?:0x[0-9a-f]{4,} (?:in )?|[\w:~<(]\S* \()", ("#0 ",), ("#0  0x", "#0 0x")),
    Beginning(r"Thread \d+ \((?:Thread 0x|LWP \d|process \d)", ("Thread ",), (" (LWP ",)),
    Beginning(r"Thread \d+ \"[^\"]*\" received signal", ("Thread ",), (" received signal SIG",)),
    Beginning(
        r"Program (?:terminated with|received) signal",
        (" signal SIG", "terminated with signal"),
        ("terminated with signal", "Program received signal"),
    ),
    Beginning(r"\* thread #\d+.* stop reason = ", ("stop reason = ",), ("stop reason = ",)),
    # py-spy, py-bt of gdb, Python's faulthandler and pystack
    Beginning(
        r"Thread (?:0x[0-9a-fA-F]+|\d+) \((?:active|idle)(?:\+gil)?\)(?:: \"|$)",
        ("(active", "(idle"),
        ('(idle): "', '(active): "', '(active+gil): "'),
    ),
    Beginning(
        r"(?:Current t|T)hread 0x[0-9a-f]+(?: \[[^\]]*\])? \(most recent call first\):", ("hread 0x",), ("hread 0x",)
    ),
    Beginning(
        r"Stack \(most recent call first\):$", ("Stack (most recent call first)",), ("Stack (most recent call first)",)
    ),
    Beginning(
        r"Traceback \(most recent call first\):$",
        ("Traceback (most recent call first)",),
        ("Traceback (most recent call first)",),
    ),
    Beginning(r"Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$", ("Timeout (",)),
    Beginning(r"The process died due (?:to )?receiving signal", ("The process died due",), ("The process died due",)),
    # c10 (PyTorch) and paddle
    Beginning(r"frame #0: \S", ("frame #0: ",), ("frame #0: ",)),
    Beginning(r"Exception raised from \S.* at \S+:\d+ \(most recent call first\)", ("Exception raised from ",)),
    Beginning(r"C\+\+ CapturedTraceback:", ("C++ CapturedTraceback:",), ("C++ CapturedTraceback:",)),
    Beginning(r"SIG[A-Z]+\(\d+\), PID: \d+, Thread \d+", ("), PID: ",), ("), PID: ",)),
    Beginning(r"C\+\+ Traceback \(most recent call last\)", ("C++ Traceback",), ("C++ Traceback (most recent",)),
    # glog, Abseil, backward-cpp, LLVM
    Beginning(
        r"\*\*\* Check failure stack trace: \*\*\*", ("Check failure stack trace",), ("Check failure stack trace",)
    ),
    Beginning(
        r"(?:\[[\d-]+ [\d:,]+ )?(?:[A-Z] \d+ \d+\] )?(?:\w+\.cc:\d+: )?\*\*\* SIG[A-Z]+ (?:received at|\(@)",
        ("*** SIG",),
        (" received at time=",),
    ),
    Beginning(r"\*\*\* Signal \d+ \(SIG[A-Z]+\) ", ("*** Signal ",), ("*** Signal ",)),
    Beginning(r"Stack trace \(most recent", ("Stack trace",), ("Stack trace (most",)),
    Beginning(r"Stack dump:", ("Stack dump:",), ("Stack dump:",)),
    Beginning(r"PLEASE submit a bug report", ("PLEASE submit a bug report",), ("PLEASE submit a bug report",)),
    # Boost and std::stacktrace, libgfortran, .NET
    Beginning(r" {0,4}0# \S.* (?:at \S+:\d+|in \S+)$", ("0# ",), (" 0# ",)),
    Beginning(r"Program received signal SIG[A-Z]+: ", ("Program received signal SIG",)),
    Beginning(r"Unhandled exception\. [\w.]+", ("Unhandled exception. ",), ("Unhandled exception. ",)),
    # Julia and Intel's Fortran after a signal, XLA and TensorFlow, macOS
    Beginning(
        r"(?:\[\d+\] )?signal \((?:[4678]|1[01])(?:\.-?\d+)?\): [A-Z]",
        ("signal (",),
        ("signal (1", "signal (4", "signal (6", "signal (7", "signal (8"),
    ),
    Beginning(r"forrtl: severe \(\d+\): SIG[A-Z]+, ", ("forrtl: severe (",), ("forrtl: severe (",)),
    Beginning(r"\*\*\* Begin stack trace \*\*\*", ("*** Begin stack trace",), ("*** Begin stack trace",)),
    Beginning(r"Exception Type: +\w+ \(SIG", ("Exception Type: ",), ("Exception Type: ",)),
    # glibc, MXNet, UCX
    Beginning(r"\*\*\* Error in `", ("*** Error in `",), ("*** Error in `",)),
    Beginning(r"\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*", (" detected ***",)),
    Beginning(r"[\w./+-]+\([\w.$+~:<>,&* -]*\) ?\[0x[0-9a-f]+\]$", (")[0x", ") [0x"), (")[0x", ") [0x")),
    Beginning(r"\[bt\] \(0\)", ("[bt] (0)",)),
    Beginning(
        r"\[[^\]\s]+:\d+ ?:\d*:\d+\] +Caught signal \d", ("Caught signal ",), ("Caught signal ", "==== backtrace")
    ),
    # sanitizers
    Beginning(r"==\d+==\s?ERROR: \w+Sanitizer: ", ("Sanitizer: ",), ("AddressSanitizer: ", "LeakSanitizer: ")),
    Beginning(r"==\d+==\s?WARNING: MemorySanitizer: ", ("Sanitizer: ",), ("MemorySanitizer: ",)),
    Beginning(r"WARNING: ThreadSanitizer: ", ("Sanitizer: ",), ("ThreadSanitizer: ",)),
    Beginning(r"========= Invalid __", ("========= Invalid __",), ("========= Invalid __",)),
    Beginning(r"========= Uninitialized __", ("========= Uninit",), ("========= Uninitialized __",)),
    Beginning(r"========= Barrier error detected", ("========= Barrier",), ("========= Barrier error",)),
    # systemd-coredump, eu-stack, CANN's stackcore
    Beginning(r"Stack trace of thread", ("Stack trace",), ("Stack trace of thread",)),
    Beginning(r"TID \d+:$", ("TID ",)),
    Beginning(r"crash reason: ?", ("crash reason:",), ("crash reason:",)),
    # JVM
    Beginning(r"Native frames: \(", ("Native frames: (",), ("Native frames: (",)),
    Beginning(r"# +SIG[A-Z]+ \(0x[0-9a-f]+\) at pc=", (") at pc=0x",), (") at pc=0x",)),
    Beginning(r"Exception in thread \"[^\"]*\" [a-z]", ('Exception in thread "',), ('Exception in thread "',)),
    Beginning(r"at [\w$.<>/]+\([\w$]+\.(?:java|scala):\d+\)", (".java:", ".scala:"), (".java:", ".scala:")),
)

HINTS: tuple[str, ...] = tuple(dict.fromkeys(hint for each in BEGINNINGS for hint in each.hints))
"""Quick check before PATTERN: most lines of a log contain none of them."""
PATTERN = lazy_re(r"\s*(?:> ?)*(?:" + "|".join(each.pattern for each in BEGINNINGS) + ")")
"""Matches the first line of a printed stack, also in quoted text."""
TRIGGERS: tuple[str, ...] = tuple(dict.fromkeys(trigger for each in BEGINNINGS for trigger in each.triggers))
"""What the scan of a log looks for."""


def is_beginning(line: str) -> bool:
    """Return whether a printed stack begins with this line."""
    return any(hint in line for hint in HINTS) and PATTERN.match(line) is not None
