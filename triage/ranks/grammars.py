"""The prefix grammars: one entry a layout, in the order they are tried. They stack: `[default2]:[rank2]: …` is two
layers.

An entry names a writer (the lines of one writer carry the same text: tee, rank, srun), or opens a record (stamps, glog,
NCCL, plog: every
record has its own), or carries any line (container runtimes). Only lines of the same writer can continue a block, and a
line that
opens a record cannot. What could be text in one file and a prefix in another (`node1: `, `[3] `) is a habit, see
habits.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from triage.base.lazy_re import lazy_re
from triage.ranks.stamps import CTIME, GLOG, ISO, NANO, SYSLOG, TIME

Kind = Literal["writer", "record", "carrier"]


@dataclass(frozen=True, slots=True)
class Grammar:
    """`pattern` is matched at the start of what is left of the line; its groups rank, local_rank, host, pid, stream and
    time parts are read.

    A group `who` is the part that is the same on every line of the writer, where a stamp stands in the same prefix.
    `needs` stands in every
    line that has it, which is a quick look. `samples` are lines that begin with it (for a habit: one text of several
    lines).
    """

    name: str
    kind: Kind
    since: str
    samples: tuple[str, ...]
    pattern: re.Pattern[str]
    starts: tuple[str, ...]
    says: tuple[str, ...]
    timed: bool
    zoned: bool
    named: bool
    needs: str

    @property
    def example(self) -> str:
        return self.samples[0]

    @property
    def writer(self) -> bool:
        return self.kind == "writer"

    @property
    def record(self) -> bool:
        return self.kind == "record"


SAYS = ("rank", "local_rank", "host", "pid", "stream")
STARTS = ("[d", "[a", "[_", "date", "d", "a", "(", "_")


_GROUPS = lazy_re(r"\(\?P<(\w+)>")


def grammar(
    name: str, kind: Kind, since: str, starts: str, samples: str | tuple[str, ...], pattern: str, needs: str = ""
) -> Grammar:
    """An entry; `starts` are the classes of `start_class` in which it can begin, parted by blanks."""
    groups = set(_GROUPS.findall(pattern))
    says = tuple(key for key in SAYS if key in groups)
    told = (samples,) if isinstance(samples, str) else samples
    return Grammar(
        name,
        kind,
        since,
        told,
        lazy_re(pattern),
        tuple(starts.split()),
        says,
        "h" in groups,
        "z" in groups,
        "who" in groups,
        needs,
    )


def start_class(line: str, position: int) -> str:
    """What a line starts with at `position`, coarsely: only grammars that can start so are tried. Classes: [d [a [_
    date d a ( _ (rest).
    """
    first = line[position : position + 1]
    if first == "[":
        following = line[position + 1 : position + 2]
        return "[d" if following.isdigit() else "[a" if following.isalpha() else "[_"
    if first.isdigit():
        return (
            "date"
            if line[position + 4 : position + 5] in ("-", "/") and line[position : position + 4].isdigit()
            else "d"
        )
    return "a" if first.isalpha() else "(" if first == "(" else "_"


# A container's name is often its id in hex digits, so a digit may come first; a time of day is no host.
_HOST = r"(?P<host>(?=[\d.-]*[A-Za-z-])\w[\w.-]*)"
_NAME = r"(?P<host>[A-Za-z][\w.-]*)"
_STREAM = r"<(?P<stream>std(?:out|err|diag))>:"
# Ray and vLLM: the inner of two names knows better, so the last repetition counts.
_WORKER = r"\((?:[^()=\n]{1,60}(?:\([^()\n]{0,60}\))? )?(?:rank=(?P<rank>\d+) )?pid=(?P<pid>\d+)(?:, ip=(?P<host>[\da-f.:]+))?\)"

GRAMMARS: tuple[Grammar, ...] = (
    grammar(
        "torchrun tee with the role rank",
        "writer",
        "torch 1.9",
        "[a",
        "[rank0]:[rank8]: Traceback (most recent call last):",
        r"\[rank(?P<local_rank>\d{1,4})\]:(?=\[rank\d+\]:)",
        needs="]:[rank",
    ),
    grammar(
        "a rank before a rank",
        "writer",
        "torch 2.2",
        "[a",
        "[rank8]: [rank8]: Traceback (most recent call last):",
        r"\[rank\d+\]: (?=\[rank\d+\]:)",
        needs="]: [rank",
    ),
    grammar(
        "c10d rank",
        "writer",
        "torch 2.2",
        "[a",
        (
            "[rank3]: Traceback (most recent call last):",
            "[rank3]:[E1121 02:38:00.123456789 ProcessGroupNCCL.cpp:607] boom",
        ),
        r"\[rank(?P<rank>\d+)\]:(?!\d) ?",
    ),
    grammar(
        "kubectl --prefix",
        "writer",
        "kubectl 1.18",
        "[a",
        "[pod/train-worker-0/pytorch] step 3",
        r"\[(?:pod/)(?P<host>[a-z0-9.-]+)/[a-z0-9.-]+\] ?",
    ),
    grammar(
        "torchrun tee with a host role",
        "writer",
        "torch 1.9",
        "[a",
        "[host1:0]:step 3",
        r"\[(?P<host>[A-Za-z][\w.-]*):(?P<local_rank>\d{1,4})\]:",
    ),
    grammar(
        "torchrun tee",
        "writer",
        "torch 1.9",
        "[a [_",
        "[default3]:step 3",
        r"\[(?!rank\d)[A-Za-z_]+[\w.-]*?:?(?P<local_rank>\d{1,4})\]:",
    ),
    grammar(
        "SageMaker MPI",
        "writer",
        "SageMaker 2019",
        "[d",
        "[1,mpirank:3,algo-1]<stderr>:step 3",
        rf"\[\d+,mpirank:(?P<rank>\d+),(?P<host>[\w.-]+)\]{_STREAM}",
        needs="mpirank:",
    ),
    grammar(
        "Open MPI tag-output",
        "writer",
        "Open MPI 1.3",
        "[d",
        "[1,2]<stderr>:step 3",
        rf"\[\d+,(?P<rank>\d+)\]{_STREAM}",
        needs="]<std",
    ),
    grammar(
        "PRRTE tag-output",
        "writer",
        "Open MPI 5",
        "[a [d [_",
        ("[job@1,2]<stdout>: step 3", "[1,2][node1:412]<stderr>: step 3"),
        rf"\[[\w@.-]+,(?P<rank>\d+)\](?:\[(?P<host>[\w.-]+):(?:(?P<pid>\d+)|unknown)\])?{_STREAM} ?",
        needs="<std",
    ),
    grammar(
        "PRRTE rank-output",
        "writer",
        "Open MPI 5",
        "[d",
        "[2]<stdout>: step 3",
        rf"\[(?P<rank>\d+)\]{_STREAM} ?",
        needs="]<std",
    ),
    grammar(
        "MPI timestamp-output",
        "carrier",
        "Open MPI 1.3",
        "a [a",
        (
            "Thu Mar  8 17:17:08 2018[1,69]<stderr>:step 3",
            "[Thu Mar  8 17:17:08 2018][1,69]<stderr>: step 3",
            "[Thu Mar  8 17:17:08 2018]<stdout>: step 3",
        ),
        rf"\[?{CTIME}\]?(?:{_STREAM} ?|(?=\[[^\]\s]+\](?:\[[^\]\s]+\])?<std))",
        needs="<std",
    ),
    grammar(
        "srun --label",
        "writer",
        "Slurm 1",
        "d _",
        (" 3: step 3", "11:  iteration 3"),
        r" {0,5}(?P<rank>\d{1,6}): (?= *\S)",
        needs=": ",
    ),
    grammar("srun --label of het jobs", "writer", "Slurm 17.11", "a", "P1  3: step 3", r"P\d{1,3} +\d{1,6}: ?"),
    grammar(
        "PALS --label",
        "writer",
        "HPE PALS 1",
        "a",
        "x3005c0s13b0n0.hsn.cm.example.org 3: step 3",
        r"(?P<host>(?:x\d+c\d+s\d+b\d+n\d+|nid\d+)[\w.-]*) (?P<rank>\d{1,6}): ?",
    ),
    grammar(
        "Ray and vLLM workers",
        "writer",
        "Ray 0.7",
        "( [d _",
        (
            "(RayTrainWorker pid=412, ip=10.0.0.7) step 3",
            "(VllmWorker rank=1 pid=7226) step 3",
            "(Worker pid=17148) (Worker_DP0_TP6_EP6 pid=17148) step 3",
            "[36m(RayWorkerWrapper pid=118835)[0m step 3",
        ),
        rf"(?:\x1b?\[\d+m)?(?:{_WORKER}(?:\x1b?\[0m)? ?)+",
        needs="pid=",
    ),
    grammar(
        "Ray daemons",
        "writer",
        "Ray 0.7",
        "( [d _",
        ("(raylet) Task failed", "(raylet, ip=10.0.0.7) Task failed", "(autoscaler +12s) Resized to 8 CPUs"),
        r"(?:\x1b?\[\d+m)?\((?:raylet|gcs_server|autoscaler|scheduler)(?:, ip=(?P<host>[\d.]+)| \+[\dhms]+)?\)(?:\x1b?\[0m)? ?",
    ),
    grammar(
        "vLLM log",
        "carrier",
        "vLLM 0.2",
        "a",
        ("ERROR 09-07 01:11:09 [multiproc_executor.py:596] boom", "ERROR 02-26 09:45:37 worker_base.py:572] boom"),
        rf"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<M>\d\d)-(?P<D>\d\d) {TIME}(?:\.(?P<f>\d+))? \[?[\w./-]+\.py:\d+\](?: |$)",
        needs=".py:",
    ),
    grammar(
        "torch_npu",
        "record",
        "torch_npu 2.1",
        "[a",
        "[ERROR] 2026-11-21-03:07:45 (PID:41, Device:0, RankID:3) ERR02200 DIST call hccl api failed.",
        rf"\[(?:ERROR|WARNING)\] {ISO} \(PID:(?P<pid>-?\d+), Device:-?\d+, RankID:(?P<rank>-1|\d+)\) ",
        needs="RankID:",
    ),
    grammar(
        "plog",
        "record",
        "CANN 5",
        "[a",
        "[ERROR] HCCL(271,python):2026-11-21-03:07:45.372.001 [task.cc:12][41]notify wait",
        rf"\[(?:ERROR|WARNING|INFO|DEBUG|EVENT|TRACE)\] ?[A-Z][A-Za-z_]+\((?P<pid>\d+),[^)]*\):{ISO} ?(?:\[[^\]]+?:\d+\] ?)?",
        needs="):",
    ),
    grammar(
        "NCCL",
        "record",
        "NCCL 2.3",
        "a d [d",
        (
            "node1:412:530 [3] NCCL INFO Channel 00 : 0[0] -> 1[1]",
            "[2026-04-22 21:34:20] node1:412:530 [0] x.cc:50 (f) NCCL WARN boom",
        ),
        rf"(?:\[{ISO}\] )?{_HOST}:(?P<pid>\d+):\d+ \[-?\d+\] (?=(?:\S+:\d+ (?:\([^)]*\) )?)?NCCL )",
        needs=" NCCL ",
    ),
    grammar(
        "NCCL call",
        "record",
        "NCCL 2.13",
        "a d",
        "node1:412:530 NCCL CALL ncclGroupEnd()",
        rf"{_HOST}:(?P<pid>\d+):\d+ (?=NCCL )",
        needs=" NCCL ",
    ),
    grammar(
        "glog in brackets",
        "record",
        "torch 2.4",
        "[a",
        "[E1121 02:38:00.123456789 ProcessGroupNCCL.cpp:607] ",
        rf"\[{GLOG} [^\]\s]+:\d+\] ?",
        needs=".",
    ),
    grammar(
        "glog of torch ≤ 2.3",
        "record",
        "torch 1.8",
        "[a",
        "[E ProcessGroupNCCL.cpp:828] ",
        r"\[[IWEF] [^\]\s]+\.\w+:\d+\] ?",
    ),
    grammar(
        "NeMo",
        "record",
        "NeMo 1.0",
        "[a",
        (
            "[NeMo W 2026-11-21 03:07:45 exp_manager:299] boom",
            "[NeMo I 2026-11-21 03:07:45 rank:3 exp_manager:186] boom",
        ),
        rf"\[NeMo [A-Z] {ISO} (?:rank:(?P<rank>\d+) )?[^\]]+\] ?",
        needs="[NeMo ",
    ),
    grammar(
        "glog",
        "record",
        "torch 2.4",
        "a",
        "W1121 03:07:43.356000 14670 torch/distributed/run.py:874] ",
        rf"{GLOG} +(?P<pid>\d+) [^\]\s]+:\d+\] ?",
        needs="] ",
    ),
    grammar(
        "kernel ring buffer",
        "record",
        "Linux",
        "[d [_ _",
        "[12345.678901] NVRM: Xid",
        r"(?:<\d+>)?\[ *\d+\.\d{6}\] (?:kernel: )?",
        needs=".",
    ),
    grammar("dmesg -T", "record", "util-linux 2.20", "[a", "[Sat Nov 21 03:07:45 2026] NVRM: Xid", rf"\[{CTIME}\] "),
    grammar(
        "kernel in syslog",
        "record",
        "BSD",
        "a",
        "Nov 21 03:07:45 node1 kernel: [12.345678] NVRM: Xid",
        rf"{SYSLOG} {_NAME} kernel: (?:\[ *\d+\.\d+\] )?",
        needs=" kernel: ",
    ),
    grammar(
        "syslog",
        "writer",
        "BSD",
        "a",
        ("Nov 21 03:07:45 node1 train[412]: step 3", "Nov 21 03:07:45 node1 slurmd: step 3"),
        rf"{SYSLOG} (?P<who>{_NAME} (?:(?!\d+:)[\w./@-]+(?:\[(?P<pid>\d+)\])?: ))",
        needs=": ",
    ),
    grammar(
        "kernel in a journal with ISO stamps",
        "record",
        "systemd 206",
        "date",
        "2026-11-21T03:07:45+0000 node1 kernel: NVRM: Xid",
        rf"{ISO} {_NAME} kernel: (?:\[ *\d+\.\d+\] )?",
        needs=" kernel: ",
    ),
    grammar(
        "journal with ISO stamps",
        "writer",
        "systemd 206",
        "date",
        "2026-11-21T03:07:45+0000 node1 train[412]: step 3",
        rf"{ISO} (?P<who>{_NAME} [\w./@-]+\[(?P<pid>\d+)\]: )",
        needs="]: ",
    ),
    grammar(
        "Kubernetes CRI",
        "carrier",
        "CRI",
        "date",
        ("2026-11-21T03:07:45.372001Z stderr F step 3", "2026-11-21T03:07:45.372001123+00:00 stdout P step 3"),
        rf"{ISO} (?P<stream>stdout|stderr) [FP](?::[\w.]+)?(?: |$)",
        needs=" std",
    ),
    grammar(
        "GitLab job log",
        "carrier",
        "GitLab 17",
        "date",
        "2026-11-21T03:07:45.372001Z 01E step 3",
        rf"{ISO} \d\d[OE](?:\+|(?: |$))",
        needs="Z ",
    ),
    grammar(
        "container stamp",
        "carrier",
        "docker logs -t, kubectl --timestamps, GitHub Actions",
        "date",
        ("2026-11-21T03:07:45.372001123Z step 3", "2026-11-21T03:07:45.3720011Z step 3"),
        rf"{NANO}(?: |$)",
        needs="Z",
    ),
    grammar(
        "Jenkins timestamper",
        "carrier",
        "Timestamper 1.8",
        "[d",
        "[2026-11-21T03:07:45.372Z] step 3",
        rf"\[(?=\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}Z\]){ISO}\](?: |$)",
        needs="Z]",
    ),
    grammar(
        "stamp and host",
        "writer",
        "PAI DLC, ms-swift",
        "date",
        "2026-01-09 17:40:31.169312 master-0 >> step 3",
        rf"{ISO} (?P<who>{_NAME} >> ?)",
        needs=" >>",
    ),
    grammar(
        "stamp before a writer",
        "carrier",
        "Kubernetes collectors",
        "date [d",
        ("2026-11-21T03:07:45.372Z [rank2]: step 3", "2026-11-21 03:07:45 (RayTrainWorker pid=412) step 3"),
        rf"\[?{ISO}\]?(?: ?[-:|])? +(?=(?:\[rank\d+\]|\[[A-Za-z_][\w.-]*:\d{{1,4}}\]|\[default\d+\]|\[\d+,\d+\]<std\w+>):|\([^()=\n]{{1,60}} pid=\d+[,)])",
    ),
    grammar(
        "stamp",
        "record",
        "any",
        "date [d",
        "2026-11-21 03:07:45,372 [rank2] INFO trainer: step 3",
        rf"\[?{ISO}\]?(?: ?[-:|])?(?: +(?!File |Binary file )(?=[A-Z\[({{<|-])| |$)",
    ),
    grammar("Kaggle", "carrier", "Kaggle", "d", "704.7s\t1460\tstep 3", r"\d+\.\d+s\t\d+\t", needs="s\t"),
    grammar(
        "milabench",
        "writer",
        "milabench 0.0.5",
        "a",
        "bert.node1.D0 [stderr] step 3",
        r"[A-Za-z][\w.-]* \[(?P<stream>stdout|stderr)\] ?",
        needs=" [std",
    ),
    grammar(
        "bracketed rank",
        "record",
        "logging, Lightning",
        "[a",
        ("[rank2] INFO trainer: step 3", "[rank: 2] Seed set to 42"),
        r"\[rank(?:: |[ :=_-])?(?P<rank>\d+)\](?!:) *",
    ),
    grammar(
        "DeepSpeed",
        "record",
        "DeepSpeed 0.3",
        "[a",
        ("[INFO] [Rank 2] step=3", "[INFO] [logging.py:96:log_dist] [Rank 2] step=3"),
        r"(?=\[(?:DEBUG|INFO|WARNING|ERROR)\] (?:\[[\w.]+:\d+:\w+\] )?\[R(?:ank|ANK) (?P<rank>\d+)\])",
        needs="R",
    ),
    grammar(
        "Megatron memory report",
        "record",
        "Megatron-LM 2",
        "[a",
        "[Rank 2] (after 3 iterations) memory (MB) | allocated: 1.0",
        r"(?=\[Rank (?P<rank>\d+)\] \(after \d+ iterations\))",
        needs=" iterations)",
    ),
    grammar(
        "a process that says its rank",
        "record",
        "Lightning, Transformers, Accelerate",
        "a",
        (
            "Initializing distributed: GLOBAL_RANK: 2, MEMBER: 3/4",
            "LOCAL_RANK: 2 - CUDA_VISIBLE_DEVICES: [0,1,2,3]",
            "Process rank: 2, device: cuda:2, n_gpu: 1",
            "Process index: 2",
        ),
        r"(?=(?:Initializing distributed: GLOBAL_RANK: |Process rank: |Process index: )(?P<rank>\d+)\b"
        r"|LOCAL_RANK: (?P<local_rank>\d+) - CUDA_VISIBLE)",
        needs=": ",
    ),
    grammar(
        "slurmstepd",
        "record",
        "Slurm 14",
        "a",
        "slurmstepd: error: Detected 1 oom_kill event",
        r"(?=slurmstepd(?:-(?P<host>[\w.-]+))?: )",
        needs="slurmstepd",
    ),
)

Table = dict[str, tuple[Grammar, ...]]


def table(grammars: tuple[Grammar, ...]) -> Table:
    """For each class of starts the grammars that can begin so, in their order."""
    return {start: tuple(entry for entry in grammars if start in entry.starts) for start in STARTS}


BY_START = table(GRAMMARS)
