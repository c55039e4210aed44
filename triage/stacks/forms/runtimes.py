"""Stacks of runtimes that name no debugger: scripting languages, Julia's crashes, Intel's Fortran, XLA, V8, macOS."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.stacks.forms.lines import LineFormat, LineReader

# Frames of languages in which a frame is a function with a file and a line, innermost first. Node's own files begin
# with `node:`; Perl and Haskell print the function with the place of its call.
SCRIPT = LineReader(
    LineFormat(
        name="script",
        mark=lazy_re(
            r"^[ \t]*(?:at [^\n()]{1,200} \((?!node:)[^\n()]{1,300}:\d+:\d+\)|stack traceback:|"
            r"[\w:]{1,200}\([^\n]{0,2000}\) called at \S+ line \d+|from \S+:\d+:in [`']|in function +\w+:\w+/\d+ \(|"
            r"(?:Raised|Called) [^\n]{1,300} in file \"|\S+:\d+:\d+: 0x[0-9a-f]+ in |"
            r"[\w']+, called at \S+:\d+:\d+ in )",
            re.MULTILINE,
        ),
        frames=(
            lazy_re(
                r"\s*at (?:async |new )?(?P<func>[\w$.<>\[\] ]{1,200}?)(?: \[as \w+\])? \((?!node:)"
                r"(?P<file>[^()]{1,300}):(?P<line>\d+):\d+\)\s*$"
            ),
            lazy_re(
                r"\s*(?P<file>[^\s:]+):(?P<line>\d+): in (?:function|method|field|upvalue|local|global) "
                r"'(?P<func>[^']{1,200})'\s*$"
            ),
            lazy_re(r"\s*(?P<func>[A-Za-z_][\w:]{0,200})\(.{0,2000}\) called at \S+ line \d+\s*$"),
            lazy_re(r"\s*from (?P<file>[^\s:]+):(?P<line>\d+):in [`'](?:block in )?(?P<func>[^']{1,200})'\s*$"),
            lazy_re(r"(?P<file>[^\s:]+):(?P<line>\d+):in [`'](?:block in )?(?P<func>[^']{1,200})': .*\)\s*$"),
            lazy_re(
                r"\s*in (?:function|call from) +(?P<func>[\w:.@]{1,200})/\d+ \((?P<file>[^(),]{1,200}), line "
                r"(?P<line>\d+)\)\s*$"
            ),
            lazy_re(
                r"(?:Re-raised|Raised|Called) (?:(?:by|primitive|operation|at|from) ){1,4}(?P<func>[\w.'<>]{1,200})"
                r"(?: \(inlined\))? in file \"(?P<file>[^\"]{1,300})\"(?: \(inlined\))?, line (?P<line>\d+)"
            ),
            lazy_re(
                r"\s*(?P<file>[^\s:]+):(?P<line>\d+):\d+: (?P<addr>0x[0-9a-f]+) in (?P<func>\S{1,200}) \(\S+\)\s*$"
            ),
            lazy_re(r"\s*(?!error,)(?P<func>[\w']{1,200}), called at \S+:\d+:\d+ in \S+\s*$"),
        ),
        first_crashed=True,
    )
)

# Julia after a fatal signal: `grow at /src/index.jl:58`, then the frames of its runtime in C.
JULIA_SIGNAL = LineReader(
    LineFormat(
        name="julia-signal",
        mark=lazy_re(r"^(?:\[\d+\] )?signal \(\d+(?:\.-?\d+)?\): ", re.MULTILINE),
        frames=(
            lazy_re(
                r"(?!in expression )(?P<func>[^\s()][^\n]{0,400}?) at (?P<file>\S+):(?P<line>\d+)(?: \[inlined\])?\s*$"
            ),
            lazy_re(r"(?P<func>[^\s()][^\n]{0,400}?) at (?P<module>\S+) \(unknown line\)\s*$"),
        ),
        facts=(lazy_re(r"^(?:\[(?P<pid>\d+)\] )?signal \((?P<signal>\d+)(?:\.-?\d+)?\): "),),
        first_crashed=True,
    )
)

# The table of Intel's runtime; routines without debug information are Unknown, and names end with an underscore.
FORRTL = LineReader(
    LineFormat(
        name="forrtl",
        mark=lazy_re(r"^Image +PC +Routine +Line +Source *$", re.MULTILINE),
        frames=(
            lazy_re(
                r"(?P<module>\S+) +(?P<addr>[0-9A-Fa-f]{8,16}) +(?:(?:\w*?_mp_)?(?P<func>\w+?)_*) +"
                r"(?:(?P<line>\d+)|Unknown) +(?P<file>\S+)\s*$"
            ),
        ),
        facts=(lazy_re(r"^forrtl: severe \(\d+\): (?P<signal>SIG[A-Z]+), "),),
        first_crashed=True,
    )
)

# What TSL (XLA, TensorFlow) writes behind a failed check: names alone, behind tabs.
XLA = LineReader(
    LineFormat(
        name="xla",
        mark=lazy_re(r"^[ \t]*\*\*\* Begin stack trace \*\*\*", re.MULTILINE),
        frames=(lazy_re(r"\t(?P<func>[A-Za-z_~(][\w:~]*(?:[(<\[ ].*)?)$"),),
        thread=lazy_re(r"\s*\*\*\* Begin stack trace \*\*\*"),
        ends=lazy_re(r"\s*\*\*\* End stack trace \*\*\*"),
        facts=(lazy_re(r"(?P<error>Check failed): (?P<message>.*)"),),
        first_crashed=True,
    )
)

# V8 and Node: ` 1: 0xb8d0a node::Abort() [node]`.
V8 = LineReader(
    LineFormat(
        name="v8",
        mark=lazy_re(r"^-{5} Native stack trace -{5}", re.MULTILINE),
        frames=(
            lazy_re(r"\s*(?P<n>\d{1,3}): (?P<addr>0x[0-9a-f]+) (?P<func>\S.*?) \[(?P<module>[^\]]+)\]\s*$"),
            lazy_re(r"\s*(?P<n>\d{1,3}): (?P<addr>0x[0-9a-f]+) \[(?P<module>[^\]]+)\]\s*$"),
        ),
        facts=(lazy_re(r"(?P<error>Check failed): (?P<message>.*)"), lazy_re(r"FATAL ERROR: (?P<message>.*)")),
        first_crashed=True,
    )
)

# perf script and bpftrace print no thread, only the frames of one sample.
SAMPLE = LineReader(
    LineFormat(
        name="sample",
        mark=lazy_re(r"^[ \t]+[0-9a-f]{6,16} \S[^\n]*\+0x[0-9a-f]+ \(\S+\)$|^@\[$", re.MULTILINE),
        frames=(
            lazy_re(r"\s+(?P<addr>[0-9a-f]{6,16}) (?P<func>\S.*?)\+(?P<plus>0x[0-9a-f]+) \((?P<module>[^()]+)\)\s*$"),
            lazy_re(r"    (?P<func>[A-Za-z_~].*?)\+(?P<plus>\d+)\s*$"),
        ),
    )
)

# The report of macOS.
MACOS = LineReader(
    LineFormat(
        name="macos",
        mark=lazy_re(r"^Thread \d+ Crashed:", re.MULTILINE),
        frames=(
            lazy_re(
                r"(?P<n>\d{1,4}) +(?P<module>\S+)\s+(?P<addr>0x[0-9a-f]+) (?P<func>\S.*?) \+ \d+"
                r"(?: \((?P<file>[^():]+):(?P<line>\d+)\))?\s*$"
            ),
        ),
        thread=lazy_re(r"Thread (?P<id>\d+)(?P<crashed> Crashed)?:"),
        facts=(
            lazy_re(r"^Exception Type: +\w+ \((?P<signal>SIG[A-Z]+)\)"),
            lazy_re(r"^Process: +(?P<command>\S+) \[(?P<pid>\d+)\]"),
        ),
    )
)
