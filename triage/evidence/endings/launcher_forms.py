"""Forms of shells, launchers, schedulers, containers and systemd: statuses, kills, limits, failed starts."""

from __future__ import annotations

from triage.evidence.endings.interface import INNER_MESSAGE, MESSAGE, STATUS, Form, strong, weak

_NOT_ZERO = r"(?:-?[1-9]\d*|-?0x[\da-fA-F]*[1-9a-fA-F])"
_ENDED = (
    r"(?:exit(?:ed|s|ing)?|return(?:ed|s)?|terminat(?:ed|es|ion)|kill(?:ed|s)?|died|dies|fail(?:ed|s|ure)?|"
    r"abort(?:ed|s)?|crash(?:ed|es)?|stopp?(?:ed|s)?|end(?:ed|s)|finish(?:ed|es)|completed|gave up|"
    r"BAD TERMINATION|caught)"
)
_KIND = r"(?:(?:exit|return|error|status|non-?zero)[ -]?)*(?:code|status|signal|value|rc|errno|errorcode)"

PROGRAM_ERROR = "error of a program"

FORMS: tuple[Form, ...] = (
    weak(
        "ended with a status",
        "any",
        rf"(?i)\b{_ENDED}\b.{{0,60}}?\b{_KIND}s?\b[ :=(]{{0,8}}(?:of )?{_NOT_ZERO}\b",
        "rank 3 exited with code 134",
        STATUS,
    ),
    weak(
        "status other than zero",
        "any",
        rf"(?i)(?:^|[\s,;({{<\[])(?:exit[ _-]?(?:code|status)?|return[ _-]?code|status[ _-]code|error[ _-]?code|"
        rf"code|rc|ret|"
        rf"errno|signal)\s{{0,20}}[:=]\s{{0,8}}{_NOT_ZERO}\b",
        "rc=74 stage=feeder elapsed=4411s",
        STATUS,
    ),
    weak("exit status line", "any", rf"(?i)^\s*exit[ _]?(?:code|status)\s+{_NOT_ZERO}\b", "exit status 2", STATUS),
    weak(
        "signal",
        "any",
        r"(?i)\b(?:signal|sig)[ :=(]{1,3}[1-9]\d?\b|\bSIG(?:KILL|SEGV|ABRT|BUS|FPE|ILL|XCPU)\b|"
        r"\bcode=(?:killed|dumped|exited)\b",
        "(0) Abnormal termination (signal 9)",
        STATUS,
    ),
    weak(
        "exit string",
        "MPI",
        r"\bEXIT STRING: \S|^=?\s*KILLED BY SIGNAL|^=?\s*BAD TERMINATION",
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
        STATUS + 2,
    ),
    weak(
        "killed by a limit",
        "scheduler",
        r"(?i)\b(?:job|task|step|container|pod|process|application)\b.{0,40}\b(?:killed|cancelled|canceled|"
        r"aborted|evicted|"
        r"preempted|terminated|removed|withdrawn|revoked)\b|\bexceed(?:ed|s|ing)\b.{0,40}\blimit|"
        r"\blimit\b.{0,20}\bexceeded|"
        r"\b(?:enforced|reached|reaching)\b.{0,40}\blimits?\b|"
        r"\b(?:OOMKilled|Evicted|DeadlineExceeded|BackoffLimitExceeded|CrashLoopBackOff|TERM_[A-Z]{3,})\b",
        "=>> PBS: job killed: walltime 86430 exceeded limit 86400",
        STATUS + 4,
    ),
    strong(
        "abort of a communicator",
        "MPI",
        r"\bMPI_A[Bb][Oo][Rr][Tt]\b.{0,20}\b(?:was|called|invoked|\()|\bMPI_ERR_[A-Z]+: |^Abort\(\d+\)|"
        r"^application called MPI_Abort",
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
        INNER_MESSAGE,
    ),
    weak(
        PROGRAM_ERROR,
        "any",
        r"^(?:[\w.@/+-]{1,60}(?:\[\d+\])?: (?:error|fatal|FATAL|Error|ERROR|abort|panic)\b(?:\[\w+\])?:?|"
        r"\[[\w.@/+-]{1,60}\] (?:error|fatal|FATAL|Error|ERROR|abort|panic): ?|"
        r"[\w.@/+-]{1,60} (?:error|fatal) {1,4}:) \S",  # as nvcc's tools write it
        "slurmstepd: error: execve(): /workspace/bin/train: No such file or directory",
        MESSAGE + 2,
    ),
    weak(
        "shell error",
        "shell",
        r"(?i): (?:line \d+: )?.{1,200}: (?:command not found|not found|unbound variable|permission denied|"
        r"no such file or "
        r"directory|syntax error.*|cannot execute.*|parameter (?:null or )?not set|is a directory|bad interpreter.*|"
        r"argument list too "
        r"long|exec format error)$",
        "bash: line 3: deepspeed: command not found",
        MESSAGE,
    ),
    weak(
        "place in a script",
        "shell",
        # Not what the shell says of a process that a signal ended.
        r"^[\w./+-]{1,120}: line \d+: (?! {0,6}\d{1,8} [A-Z]\w+\b)\S",
        "stage-in.sh: line 88: the manifest lists 412 files, 409 arrived",
        MESSAGE,
    ),
    strong(
        "make",
        "make",
        r"^(?:g?make|ninja|cmake|bazel|cargo|npm)(?:\[\d+\])?: (?:\*\*\*|build stopped|error|ERR!) ?\S",
        "make: *** No rule to make target 'data/tok.bin', needed by 'train'.  Stop.",
        MESSAGE,
    ),
    weak(
        "linker",
        "linker",
        r"(?:: |\berror: )undefined (?:reference to|symbol:) \S|"
        r"\bld(?:\.\w{1,10})?: (?:error: )?(?:cannot|unable to) find \S",
        "k.cpp:(.text+0x1a): undefined reference to `gemm_bf16'",
        MESSAGE + 2,
    ),
    weak(
        "peer of ssh",
        "ssh",
        r"(?i)^(?:\S{1,60}: )?(?:ssh: |kex_\w+: |Connection (?:closed|reset|refused|timed out)|Host key verification|"
        r"Permission denied \()\S*",
        "kex_exchange_identification: Connection closed by remote host",
        MESSAGE,
    ),
    weak(
        "cannot start",
        "any",
        r"(?i)\b(?:not enough|insufficient|no more|out of|low on|ran out of|ran dry|exhausted)\b.{0,60}"
        r"\b(?:slots|resources?|memory|space|disk|nodes|gpus|devices|quota|handles|descriptors|threads)\b|"
        r"\blow on resource\b|\b(?:slots|resources) .{0,40}\bnot available\b",
        "There are not enough slots available in the system to satisfy the 16",
        MESSAGE,
    ),
)
