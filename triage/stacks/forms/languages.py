"""Stacks that runtimes of other languages and the kernel print of themselves: Rust, Julia, .NET, Linux."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.stacks.forms.lines import LineFormat, LineReader

# `RUST_BACKTRACE=1`; the place of a frame stands in the next line.
RUST = LineReader(
    LineFormat(
        name="rust",
        mark=lazy_re(r"^stack backtrace:\s*$", re.MULTILINE),
        frames=(
            lazy_re(
                r"\s{1,6}(?P<n>\d{1,4}): {1,9}(?:(?P<addr>0x[0-9a-f]{1,16}) - )?(?P<func>[A-Za-z_<{][^\n]*?)"
                r"(?:::h[0-9a-f]{16})?\s*$"
            ),
        ),
        facts=(lazy_re(r"thread '[^'\n]*'(?: \(\d+\))? (?P<error>panicked) at (?P<message>.*)"),),
        first_crashed=True,
    )
)

# The module of a frame stands in the next line; files of the language itself begin with a point.
JULIA = LineReader(
    LineFormat(
        name="julia",
        mark=lazy_re(r"^Stacktrace:\s*$", re.MULTILINE),
        start=lazy_re(r"\s{1,4}\[\d{1,4}\] \S"),
        frames=(
            lazy_re(
                r"\s{1,4}\[(?P<n>\d{1,4})\] (?P<func>top-level scope|[^\s(]+)(?:\((?P<args>[^\n]*)\))? @ "
                r"(?:(?P<module>[\w.]+) )?(?P<file>\S+?):(?P<line>\d+)(?: \[inlined\])?\s*$"
            ),
        ),
        facts=(lazy_re(r"^ERROR: (?:\w+Error: )?(?P<error>\w+(?:Error|Exception))(?:: | |$)(?P<message>.*)"),),
        first_crashed=True,
    )
)

# Of methods with sources the place is known; the runtime's own have none.
DOTNET = LineReader(
    LineFormat(
        name="dotnet",
        mark=lazy_re(r"^\s+at [\w.`+<>]+\([^()\n]*\) in \S+:line \d+\s*$", re.MULTILINE),
        frames=(
            lazy_re(
                r"\s+at (?P<func>[\w.`+<>]{1,400})\((?P<args>[^()\n]*)\)(?: in (?P<file>\S+):line (?P<line>\d+))?\s*$"
            ),
        ),
        facts=(lazy_re(r"Unhandled exception\. (?P<error>[\w.]+)(?:: (?P<message>.*))?"),),
        first_crashed=True,
    )
)

# What Linux prints of an oops, a stall or a task that hangs: the instruction pointer and the frames that the unwinder
# is sure of, which have no question mark. Its functions that wait or print the report do not matter.
KERNEL = LineReader(
    LineFormat(
        name="oops",
        mark=lazy_re(r"\b(?:RIP: 00[0-9a-f]{2}|pc ?):\s?\w[\w.]*\+0x|\bCall [Tt]race:\s*$", re.MULTILINE),
        frames=(
            lazy_re(
                r"(?:\[ *\d+\.\d+\] )?(?:RIP: 00[0-9a-f]{2}:|pc ?: ?| {1,8})"
                r"(?!(?:__|io_)?schedule|(?:__)?mutex_lock|rwsem_down|wait_for_|dump_stack|print_report|kasan_)"
                r"(?P<func>\w[\w.]*)\+"
                r"(?P<plus>0x[0-9a-f]+)/0x[0-9a-f]+(?: \[(?P<module>\w+)\])?\s*$"
            ),
        ),
        facts=(
            lazy_re(r"\bBUG: (?P<error>kernel NULL pointer dereference|unable to handle \w[\w ]*)"),
            lazy_re(r"\b(?P<error>kernel BUG) at (?P<message>\S+)"),
            lazy_re(r"\bBUG: (?P<error>KASAN: [\w-]+)"),
            lazy_re(r"\b(?P<error>general protection fault|stack guard page was hit)\b"),
        ),
        first_crashed=True,
    )
)
