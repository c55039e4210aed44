"""The prefix grammars: one entry a layout, in the order they are tried. They stack: `[default2]:[rank2]: …` is two layers.

An entry names a writer (the lines of one writer carry the same text: tee, rank, srun), or opens a record (stamps, glog, NCCL, plog: every
record has its own), or carries any line (container runtimes). Only lines of the same writer can continue a block, and a line that
opens a record cannot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.ranks.stamps import GLOG, ISO, SYSLOG


@dataclass(frozen=True, slots=True)
class Grammar:
    """`pattern` is matched at the start of what is left of the line; its groups rank, local_rank, host, pid, stream and time parts are read."""

    name: str
    writer: bool
    since: str
    example: str
    pattern: re.Pattern[str]
    starts: tuple[str, ...]
    says: tuple[str, ...]
    timed: bool
    record: bool


_SAYS = ("rank", "local_rank", "host", "pid", "stream")


def _grammar(name: str, kind: str, since: str, starts: str, example: str, pattern: str) -> Grammar:
    compiled = re.compile(pattern)
    says = tuple(key for key in _SAYS if key in compiled.groupindex)
    return Grammar(
        name, kind == "writer", since, example, compiled, tuple(starts.split()), says, "h" in compiled.groupindex, kind == "record"
    )


def start_class(line: str, position: int) -> str:
    """What a line starts with at `position`, coarsely: only grammars that can start so are tried. Classes: [d [a [_ d a _ (rest)."""
    first = line[position : position + 1]
    if first == "[":
        following = line[position + 1 : position + 2]
        return "[d" if following.isdigit() else "[a" if following.isalpha() else "[_"
    return "d" if first.isdigit() else "a" if first.isalpha() else "_"


# A container's name is often its id in hex digits, so a digit may come first; a time of day is no host.
_HOST = r"(?P<host>(?=[\d.-]*[A-Za-z-])\w[\w.-]*)"

GRAMMARS: tuple[Grammar, ...] = (
    _grammar("c10d rank", "writer", "torch 2.2", "[a", "[rank3]: Traceback (most recent call last):", r"\[rank(?P<rank>\d+)\]:(?!\d) ?"),
    _grammar(
        "torchrun tee with a host role",
        "writer",
        "torch 1.9",
        "[a",
        "[host1:0]:step 3",
        r"\[(?P<host>[A-Za-z][\w.-]*):(?P<local_rank>\d{1,4})\]:",
    ),
    _grammar(
        "torchrun tee", "writer", "torch 1.9", "[a [_", "[default3]:step 3", r"\[(?!rank\d)[A-Za-z_]+[\w.-]*?:?(?P<local_rank>\d{1,4})\]:"
    ),
    _grammar(
        "Open MPI tag-output",
        "writer",
        "Open MPI 1.3",
        "[d",
        "[1,2]<stderr>:step 3",
        r"\[\d+,(?P<rank>\d+)\]<(?P<stream>std(?:out|err|diag))>: ?",
    ),
    _grammar(
        "PRRTE tag-output",
        "writer",
        "Open MPI 5",
        "[a [d [_",
        "[job@1,2]<stdout>: step 3",
        r"\[[\w@.-]+,(?P<rank>\d+)\](?:\[[^\]]+\])?<(?P<stream>std\w+)>: ?",
    ),
    _grammar("srun --label", "writer", "Slurm 1", "d a _", " 3: step 3", r" {0,5}(?:P\d+ )?(?P<rank>\d{1,6}): (?=\S)"),
    _grammar(
        "torch_npu",
        "record",
        "torch_npu 2.1",
        "[a",
        "[ERROR] 2026-11-21-03:07:45 (PID:41, Device:0, RankID:3) ERR02200 DIST call hccl api failed.",
        rf"\[(?:ERROR|WARNING)\] {ISO} \(PID:(?P<pid>\d+), Device:-?\d+, RankID:(?P<rank>-1|\d+)\) ",
    ),
    _grammar(
        "plog",
        "record",
        "CANN 5",
        "[a",
        "[ERROR] HCCL(271,python):2026-11-21-03:07:45.372.001 [task.cc:12][41]notify wait",
        rf"\[(?:ERROR|WARNING|INFO|DEBUG|EVENT|TRACE)\] ?[A-Z][A-Za-z_]+\((?P<pid>\d+),[^)]*\):{ISO} ?(?:\[[^\]]+?:\d+\] ?)?",
    ),
    _grammar(
        "NCCL",
        "record",
        "NCCL 2.3",
        "a d [d",
        "node1:412:530 [3] NCCL INFO Channel 00 : 0[0] -> 1[1]",
        rf"(?:\[{ISO}\] )?{_HOST}:(?P<pid>\d+):\d+ \[-?\d+\] (?=(?:\S+:\d+ (?:\([^)]*\) )?)?NCCL )",
    ),
    _grammar(
        "NCCL call",
        "record",
        "NCCL 2.13",
        "a d",
        "node1:412:530 NCCL CALL ncclGroupEnd()",
        rf"{_HOST}:(?P<pid>\d+):\d+ (?=NCCL )",
    ),
    _grammar(
        "glog in brackets",
        "record",
        "torch 2.4",
        "[a",
        "[E1121 02:38:00.123456789 ProcessGroupNCCL.cpp:607] ",
        rf"\[{GLOG} [^\]\s]+:\d+\] ?",
    ),
    _grammar("glog of torch ≤ 2.3", "record", "torch 1.8", "[a", "[E ProcessGroupNCCL.cpp:828] ", r"\[[IWEF] [^\]\s]+\.\w+:\d+\] ?"),
    _grammar(
        "glog",
        "record",
        "torch 2.4",
        "a",
        "W1121 03:07:43.356000 14670 torch/distributed/run.py:874] ",
        rf"{GLOG} +(?P<pid>\d+) [^\]\s]+:\d+\] ?",
    ),
    _grammar("kernel ring buffer", "record", "Linux", "[d [_ _", "[12345.678901] NVRM: Xid", r"(?:<\d+>)?\[ *\d+\.\d{6}\] (?:kernel: )?"),
    _grammar(
        "dmesg -T",
        "record",
        "util-linux 2.20",
        "[a",
        "[Sat Nov 21 03:07:45 2026] NVRM: Xid",
        rf"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {SYSLOG}\] ",
    ),
    _grammar(
        "syslog",
        "record",
        "BSD",
        "a",
        "Nov 21 03:07:45 node1 kernel: NVRM: Xid",
        rf"{SYSLOG} (?P<host>[A-Za-z][\w.-]*) (?:[\w./-]+(?:\[(?P<pid>\d+)\])?: )(?:\[ *\d+\.\d+\] )?",
    ),
    _grammar(
        "journal with ISO stamps",
        "record",
        "systemd 206",
        "d",
        "2026-11-21T03:07:45+0000 node1 kernel: NVRM: Xid",
        rf"{ISO} (?P<host>[A-Za-z][\w.-]*) (?:kernel|[\w./-]+\[(?P<pid>\d+)\]): (?:\[ *\d+\.\d+\] )?",
    ),
    _grammar(
        "container stream", "carrier", "CRI", "d", "2026-11-21T03:07:45.372001Z stderr F step 3", rf"{ISO} (?P<stream>stdout|stderr) [FP] "
    ),
    _grammar("stamp", "record", "any", "d [d", "2026-11-21 03:07:45,372 [rank2] INFO trainer: step 3", rf"\[?{ISO}\]?(?: ?[-:|])?(?: +|$)"),
    _grammar("bracketed rank", "record", "logging", "[a", "[rank2] INFO trainer: step 3", r"\[rank[ :=_-]?(?P<rank>\d+)\](?!:) *"),
    _grammar(
        "slurmstepd", "record", "Slurm 14", "a", "slurmstepd: error: Detected 1 oom_kill event", r"(?=slurmstepd(?:-(?P<host>[\w.-]+))?: )"
    ),
)

BY_START = {start: tuple(grammar for grammar in GRAMMARS if start in grammar.starts) for start in ("[d", "[a", "[_", "d", "a", "_")}
