"""Tools that print the stacks of others: sanitizers, eu-stack, lldb, systemd-coredump, CANN's stackcore, the JVM."""

from __future__ import annotations

import re

from triage.base.lazy_re import lazy_re
from triage.stacks.forms.lines import LineFormat, LineReader

SANITIZER = LineReader(
    LineFormat(
        name="asan",
        mark=lazy_re(r"(?:ERROR|WARNING): (?:\w+Sanitizer|libFuzzer): |runtime error: "),
        frames=(
            lazy_re(
                r"[\s.]*#(?P<n>\d+) (?P<addr>0x[0-9a-f]+)(?: in (?P<func>.*?))?(?:\s+\((?P<module>[^()\s]+?)(?::\w+)?\+"
                r"(?P<offset>0x[0-9a-f]+)\)"
                r"(?: \(BuildId: (?P<build>[0-9a-f]+)\))?|\s+(?P<file>(?:/|<null>|\.\.?/|\w)[^\s()]*?):(?P<line>\d+)"
                r"(?::\d+)?)?\s*$"
            ),
            lazy_re(
                r"\s*#(?P<n>\d+) (?P<func>[A-Za-z_~(<].*?) (?P<file>[^\s()]+?)(?::(?P<line>\d+))?(?::\d+)?"
                r" \((?P<module>[^()\s]+?)\+(?P<offset>0x[0-9a-f]+)\)(?: \(BuildId: (?P<build>[0-9a-f]+)\))?\s*$"
            ),
        ),
        thread=lazy_re(
            r"\s*(?:freed by thread|previously allocated by|allocated by thread|Previous (?:write|read)|"
            r"Thread T\d+ .*created by|Uninitialized value was)"
        ),
        facts=(
            lazy_re(
                r"==(?P<pid>\d+)==\s?ERROR: (?!Leak)\w+Sanitizer: (?P<error>[\w-]+)(?:.*? on (?:unknown )?address "
                r"(?P<address>0x[0-9a-f]+))?"
            ),
            lazy_re(r"WARNING: ThreadSanitizer: (?P<error>[\w -]+?) \(pid=(?P<pid>\d+)\)"),
            lazy_re(r"LeakSanitizer: detected (?P<error>memory leaks)"),
            lazy_re(r"(?:ERROR|WARNING): \w+Sanitizer: (?P<error>[\w -]+)"),
            lazy_re(r"(?P<error>runtime error): (?P<message>.*)"),
        ),
        first_crashed=True,
    )
)

# compute-sanitizer's frames have no numbers; a record ends at its empty line.
COMPUTE_SANITIZER = LineReader(
    LineFormat(
        name="memcheck",
        mark=lazy_re(
            r"^========= (?:COMPUTE-SANITIZER|CUDA-MEMCHECK|Invalid __|Program hit |Uninitialized __|Barrier error |"
            r"Error: Race reported|.*Host Frame)",
            re.MULTILINE,
        ),
        frames=(
            lazy_re(r"=========\s+at (?P<func>.+?)\+(?P<plus>0x[0-9a-f]+)(?: in (?P<file>\S+?):(?P<line>\d+))?\s*$"),
            lazy_re(
                r"=========\s+(?:Error: Race reported between|and) \w+ access at (?P<func>.+?)\+(?P<plus>0x[0-9a-f]+)"
                r"(?: in (?P<file>\S+?):(?P<line>\d+))?(?: \[\d+ hazards?\])?\s*$"
            ),
            lazy_re(r"=========\s+at (?P<plus>0x[0-9a-f]+) in (?:(?P<file>\S+?):(?P<line>\d+):)?(?P<func>.+?)\s*$"),
            lazy_re(
                r"=========\s+Host Frame: ?(?P<func>[^\[\]]*?)(?: in (?P<file>\S+?):(?P<line>\d+))? \["
                r"(?P<offset>0x[0-9a-f]+)\](?: in (?P<module>\S+))?\s*$"
            ),
            lazy_re(
                r"=========\s+Host Frame: ?(?P<module>[^\s()]+) \((?P<func>[^+()]*)?(?: ?\+ ?"
                r"(?P<plus>0x[0-9a-f]+))?\) \[(?P<offset>0x[0-9a-f]+)\]\s*$"
            ),
        ),
        facts=(
            lazy_re(
                r"========= (?P<error>Invalid __\w+__ (?:read|write|atomic)|Program hit \w+|Race reported|"
                r"Uninitialized __\w+__ memory read|Barrier error)(?P<message>.*)"
            ),
            lazy_re(r"Address (?P<address>0x[0-9a-f]+) is (?:out of bounds|misaligned)"),
        ),
        thread=lazy_re(r"=========\s*(?:Invalid __|Program hit |Race reported|Uninitialized __|Barrier error )"),
        first_crashed=True,
    )
)

EU_STACK = LineReader(
    LineFormat(
        name="eu-stack",
        mark=lazy_re(r"^TID \d+.*:$", re.MULTILINE),
        frames=(
            lazy_re(
                r"#(?P<n>\d+) +(?P<addr>0x[0-9a-f]+)(?: - \d+)?(?: (?P<func>[^\s].*?))?(?: - (?P<module>\S+?))?(?: ?\["
                r"(?P<build>[0-9a-f]{8,64})\]"
                r"(?:[^+]*\+(?P<offset>0x[0-9a-f]+))?)?\s*$"
            ),
        ),
        thread=lazy_re(r"TID (?P<tid>\d+)(?: \"?(?P<name>[^\":]*)\"?)?:$"),
        facts=(lazy_re(r"^PID (?P<pid>\d+) - core"),),
    )
)

LLDB = LineReader(
    LineFormat(
        name="lldb",
        mark=lazy_re(r"^\s*\*? *(?:thread #\d+|frame #\d+: 0x[0-9a-f]+ [^\n]*`)", re.MULTILINE),
        frames=(
            lazy_re(
                r"[\s*]*frame #(?P<n>\d+): (?P<addr>0x[0-9a-f]+) (?P<module>[^\s`]+)`(?P<func>.+?)(?: \+ "
                r"(?P<plus>\d+))?(?: at (?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?)?"
                r"(?: \[(?:opt|inlined|artificial)\])*\s*$"
            ),
            lazy_re(r"[\s*]*frame #(?P<n>\d+): (?P<addr>0x[0-9a-f]+)(?: (?P<module>\S+))?\s*$"),
        ),
        thread=lazy_re(
            r"\s*(?P<crashed>\*)? *thread #(?P<id>\d+)(?:[:,] tid = (?:0x[0-9a-f]+|(?P<tid>\d+)))?(?:, "
            r"(?:[^,']*`[^,]*, )?name = '(?P<name>[^']*)')?"
            r"(?:, queue = '[^']*')?(?:, stop reason = (?P<state>.*?))?\s*$"
        ),
        facts=(
            lazy_re(r"stop reason = signal (?P<signal>SIG\w+)(?:.*?(?:fault )?address[:=] ?(?P<address>0x[0-9a-f]+))?"),
            lazy_re(r"stop reason = (?P<signal>EXC_BAD_ACCESS)(?: \(code=\d+, address=(?P<address>0x[0-9a-f]+)\))?"),
            lazy_re(r"Process (?P<pid>\d+) stopped"),
        ),
        signals={"EXC_BAD_ACCESS": "SIGSEGV", "EXC_CRASH": "SIGABRT"},
    )
)

SYSTEMD = LineReader(
    LineFormat(
        name="systemd",
        mark=lazy_re(r"Stack trace of thread \d+:|^\s*#\d+ +0x[0-9a-f]+ \S+ \(\S+ \+ 0x[0-9a-f]+\)", re.MULTILINE),
        frames=(
            lazy_re(
                r"\s*#(?P<n>\d+) +(?P<addr>0x[0-9a-f]+) (?P<func>\S.*?) \((?P<module>\S+) \+ "
                r"(?P<offset>0x[0-9a-f]+)\)\s*$"
            ),
        ),
        thread=lazy_re(r".*Stack trace of thread (?P<tid>\d+):"),
        facts=(
            lazy_re(
                r"Process (?P<pid>\d+) \((?P<command>[^)]*)\) of user \d+ (?:dumped core|"
                r"terminated abnormally with signal (?P<signal>\d+))"
            ),
            lazy_re(r"^\s*Signal: (?P<signal>\d+) \("),
            lazy_re(r"^\s*PID: (?P<pid>\d+) "),
            lazy_re(r"^\s*Command Line: (?P<command>.*\S)"),
        ),
        first_crashed=True,
    )
)

# What Ascend's atrace writes when a process dies, and what asys makes of it.
STACKCORE = LineReader(
    LineFormat(
        name="stackcore",
        mark=lazy_re(r"^crash reason: ?(?:signal )?\d+", re.MULTILINE),
        frames=(
            lazy_re(
                r"#(?P<n>\d+) +(?:(?P<addr>0x[0-9a-f]+) +)?(?P<func>[A-Za-z_~(<?].*?)(?: in (?P<file>[^\s:]+)(?::"
                r"(?P<line>\d+))?)? from (?P<module>\S+)\s*$"
            ),
            lazy_re(r"#(?P<n>\d+) +(?P<addr>0x[0-9a-f]+)(?: +(?P<base>0x[0-9a-f]+))? +(?P<module>/\S+|\S+\.so\S*)\s*$"),
        ),
        thread=lazy_re(r"Thread (?P<id>\d+) \((?P<tid>\d+)(?:, ?(?P<name>[^)]*))?\)"),
        facts=(
            lazy_re(r"^crash reason: ?(?:signal )?(?P<signal>\d+)"),
            lazy_re(r"^crash pid: ?(?P<pid>\d+)"),
            lazy_re(r"^crash tid: ?(?P<tid>\d+)"),
            lazy_re(r"^crash task: ?(?P<command>\S+)"),
        ),
        ends=lazy_re(r"\[maps\]"),
    )
)

JVM = LineReader(
    LineFormat(
        name="jvm",
        mark=lazy_re(r"^\s+at [\w$.<>/]+\([^()\n]*\)\s*$|^# Problematic frame:", re.MULTILINE),
        frames=(
            lazy_re(
                r"\s+at (?:[\w.-]+/)?(?P<func>[\w$.<>]+)\((?:(?P<file>[\w$]+\.\w+)(?::(?P<line>\d+))?|[^()]*)\)"
                r"(?: ~?\[[^\]]*\])?\s*$"
            ),
        ),
        thread=lazy_re(
            r"(?:Caused by: |Exception in thread \"(?P<name>[^\"]*)\" |\"(?P<id>[^\"]+)\" (?:daemon |prio=|#\d+))"
        ),
        facts=(
            lazy_re(
                r"^(?:Exception in thread \"[^\"]*\" )?(?P<error>[a-z][\w$]*(?:\.[\w$]+)+(?:Exception|Error))(?:: "
                r"(?P<message>.*))?$"
            ),
            lazy_re(r"^#\s+(?P<signal>SIG[A-Z]+) \(0x[0-9a-f]+\) at pc=\S+, pid=(?P<pid>\d+), tid=(?P<tid>\d+)"),
        ),
        first_crashed=True,
        language="java",
    )
)

# The frames of hs_err files: `C  [libc.so.6+0x18b1a]  memcpy+0x2a`.
HS_ERR = LineReader(
    LineFormat(
        name="hs-err",
        mark=lazy_re(r"^[#\s]*[CVvjJ]  \[\S+\+0x[0-9a-f]+\]", re.MULTILINE),
        frames=(
            lazy_re(
                r"[#\s]*[CVvJj]  \[(?P<module>[^\]\s]+)\+(?P<offset>0x[0-9a-f]+)\](?: +(?P<func>\S.*?)(?:\+"
                r"(?P<plus>0x[0-9a-f]+))?)?\s*$"
            ),
        ),
        thread=lazy_re(r"Native frames:|# Problematic frame:"),
        facts=(
            lazy_re(r"^#\s+(?P<signal>SIG[A-Z]+) \(0x[0-9a-f]+\) at pc=\S+, pid=(?P<pid>\d+)"),
            lazy_re(r"si_addr: (?P<address>0x[0-9a-f]+)"),
        ),
        first_crashed=True,
    )
)
