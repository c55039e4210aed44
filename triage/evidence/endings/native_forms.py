"""Forms of C, C++, CUDA and the C library: terminate, checks, assertions, heap errors, sanitizers, signals."""

from __future__ import annotations

from triage.evidence.endings.interface import HINT, INNER_MESSAGE, MESSAGE, STATUS, Form, strong, weak

FORMS: tuple[Form, ...] = (
    strong(
        "terminate",
        "C++",
        # Without the type, which another process broke, it only says that there is a message elsewhere.
        r"^terminate called (?!after throwing an instance of '[^']*(?:$|\s[^']*:))",
        "terminate called after throwing an instance of 'E'",
        HINT,
    ),
    strong("what", "C++", r"^\s*what\(\): +\S", "  what():  embedding table 12 has 0 rows", INNER_MESSAGE),
    strong(
        "failed check",
        "C++",
        r"\b(?:[Cc]heck|CHECK(?:_\w+)?|ENFORCE|REQUIRE\w*|[Pp]recondition|[Ii]nvariant) (?:failed|FAILED|"
        r"failure|violated)\b(?! stack)",
        "Check failed: shard.size() == expected (1048576 vs. 1048572)",
        INNER_MESSAGE,
    ),
    strong(
        "failed assertion",
        "C++",
        r"(?i)\bassert(?:ion)?\b.{0,400}?\b(?:failed|failure|violated|fault)\b|"
        r"^.{0,80}\bassert(?:ion)? (?:failed|error)\b",
        "trainer: src/ring.cpp:211: void Ring::push(Slot*): Assertion `head_ != tail_' failed.",
        INNER_MESSAGE,
    ),
    strong(
        "heap of the C library",
        "C",
        r"^(?:\S{1,60}: )?(?:(?:free|malloc|realloc|calloc|munmap_chunk|malloc_consolidate|_int_\w+)\(\): \S|"
        r"double free or|"
        r"corrupted |malloc: |\*\*\* .{0,80}(?:smashing|overflow|corruption).{0,20}(?:detected|\*\*\*))",
        "free(): invalid pointer",
        INNER_MESSAGE,
    ),
    strong(
        "sanitizer",
        "sanitizer",
        r"^(?:==\d+==\s?)?(?:ERROR|WARNING|SUMMARY|FATAL): \w*Sanitizer: |: runtime error: |^==\d+==.{0,40}"
        r"(?:Process terminating|Invalid (?:read|write)|ABORTING)",
        "==32020==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000021",
        INNER_MESSAGE,
    ),
    strong(
        "device fault",
        "GPU",
        r"^(?:\S{1,40}: )?[\w ]{0,40}\b(?:access fault|page fault|memory fault|hardware exception|"
        r"bus error) (?:by|on|at|in)\b",
        "Memory access fault by GPU node-4 (Agent handle: 0x55d1e0a3c2b0) on address 0x7f11a4c00000.",
        INNER_MESSAGE,
    ),
    strong(
        "process received a signal",
        "MPI",
        r"\*\*\* Process received signal|^(?:\[[\w.:-]+\] )?Signal: \w",
        "[gpu07:31124] *** Process received signal ***",
        STATUS,
    ),
    strong(
        "signal of a process",
        "shell",
        r"^(?:.{0,120}:? +)?\d* *(?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|"
        r"Trace/breakpoint trap|Stack fault)(?: +\(core dumped\)|$| {4,})",
        "Aborted (core dumped)",
        STATUS,
    ),
    weak(
        "killed process",
        "shell",
        r"^(?:.{0,120}:? +)?\d* *(?:Killed|Terminated|Hangup|Quit|CPU time limit exceeded|File size limit exceeded)"
        r"(?: +\(core dumped\)|$| {4,}\S)",
        "run.sh: line 41:  3112 Killed                  python -u train.py --config 70b.yaml",
        STATUS,
    ),
    strong(
        "stack trace",
        "C++",
        r"^\*{3} (?:Check failure stack trace|Aborted at|SIG[A-Z]+ )|^Obtained \d+ stack frames",
        "*** Check failure stack trace: ***",
        HINT,
    ),
    weak(
        "failure with a source line",
        "C",
        r"(?i)\bfail(?:ed|ure)\b.{0,40}\b[\w/.-]+\.(?:c|cc|cu|cpp|h|hpp|cuh|f90|rs|go|zig):\d+",
        "gpu07: Test NCCL failure common.cu:958 'unhandled plugin state / '",
    ),
    weak(
        "call with a status",
        "C",
        r"\w\([^()]{0,200}\)\s{0,3}(?:(?:->|=>|returned|failed with)\s{0,3}-?[1-9]\d{0,9}\s?[(\[<][A-Za-z]|"
        r"= -\d{1,5} E[A-Z]{2,})",
        "ibv_reg_mr(pd, addr, len=4294967296) -> -12 (Cannot allocate memory)",
        MESSAGE,
    ),
    weak(
        "trap of a machine",
        "kernel",
        r"(?i)^(?:\S{1,40}[>:\]] )?(?:unhandled |unexpected |fatal )?"
        r"(?:(?:trap|exception|interrupt) (?:0x)?[\da-f]{1,4}|"
        r"(?:double|triple|page|protection|bus|alignment) fault)\b.{0,60}\b(?:in|at|on|by)\b",
        "double fault in fiber 12",
        MESSAGE,
    ),
    weak(
        "stop screen",
        "kernel",
        r"\bGuru Meditation\b|^\*{3} STOP: 0x[\dA-Fa-f]+|^EXC_[A-Z_]{3,40}\b",
        "Guru Meditation #8400000D.68FE5120",
        MESSAGE,
    ),
    weak(
        "registers",
        "kernel",
        r"^\s*(?:[A-Za-z]\w{1,6}\s?[=:]\s?(?:0x)?[\dA-Fa-f]{8,16}\s+){1,8}[A-Za-z]\w{1,6}\s?[=:]\s?(?:0x)?[\dA-Fa-f]{8,16}\b",
        "ip=00000000004011a2 sp=00007ffd5a1c0e10",
        HINT,
    ),
)
