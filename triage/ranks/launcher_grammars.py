"""The prefixes of launchers: torchrun, torch's tags, kubectl, MPI, srun, PALS and Ray, in the order they are tried."""

from __future__ import annotations

from triage.ranks.grammar import Grammar, make_grammar
from triage.ranks.timestamps import CTIME

_STREAM = r"<(?P<stream>std(?:out|err|diag))>:"
# Ray and vLLM: the inner of two names is the more specific one, so the last repetition counts.
_WORKER = (
    r"\((?:[^()=\n]{1,60}(?:\([^()\n]{0,60}\))? )?(?:rank=(?P<rank>\d+) )?pid=(?P<pid>\d+)"
    r"(?:, ip=(?P<host>[\da-f.:]+))?\)"
)

LAUNCHER_GRAMMARS: tuple[Grammar, ...] = (
    make_grammar(
        "torchrun tee with the role rank",
        "writer",
        "torch 1.9",
        "[a",
        "[rank0]:[rank8]: Traceback (most recent call last):",
        r"\[rank(?P<local_rank>\d{1,4})\]:(?=\[rank\d+\]:)",
        required_text="]:[rank",
    ),
    make_grammar(
        "a rank before a rank",
        "writer",
        "torch 2.2",
        "[a",
        "[rank8]: [rank8]: Traceback (most recent call last):",
        r"\[rank\d+\]: (?=\[rank\d+\]:)",
        required_text="]: [rank",
    ),
    make_grammar(
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
    make_grammar(
        "kubectl --prefix",
        "writer",
        "kubectl 1.18",
        "[a",
        "[pod/train-worker-0/pytorch] step 3",
        r"\[(?:pod/)(?P<host>[a-z0-9.-]+)/[a-z0-9.-]+\] ?",
    ),
    make_grammar(
        "torchrun tee with a host role",
        "writer",
        "torch 1.9",
        "[a",
        "[host1:0]:step 3",
        r"\[(?P<host>[A-Za-z][\w.-]*):(?P<local_rank>\d{1,4})\]:",
    ),
    make_grammar(
        "torchrun tee",
        "writer",
        "torch 1.9",
        "[a [_",
        "[default3]:step 3",
        r"\[(?!rank\d)[A-Za-z_]+[\w.-]*?:?(?P<local_rank>\d{1,4})\]:",
    ),
    make_grammar(
        "SageMaker MPI",
        "writer",
        "SageMaker 2019",
        "[d",
        "[1,mpirank:3,algo-1]<stderr>:step 3",
        rf"\[\d+,mpirank:(?P<rank>\d+),(?P<host>[\w.-]+)\]{_STREAM}",
        required_text="mpirank:",
    ),
    make_grammar(
        "Open MPI tag-output",
        "writer",
        "Open MPI 1.3",
        "[d",
        "[1,2]<stderr>:step 3",
        rf"\[\d+,(?P<rank>\d+)\]{_STREAM}",
        required_text="]<std",
    ),
    make_grammar(
        "PRRTE tag-output",
        "writer",
        "Open MPI 5",
        "[a [d [_",
        ("[job@1,2]<stdout>: step 3", "[1,2][node1:412]<stderr>: step 3"),
        rf"\[[\w@.-]+,(?P<rank>\d+)\](?:\[(?P<host>[\w.-]+):(?:(?P<pid>\d+)|unknown)\])?{_STREAM} ?",
        required_text="<std",
    ),
    make_grammar(
        "PRRTE rank-output",
        "writer",
        "Open MPI 5",
        "[d",
        "[2]<stdout>: step 3",
        rf"\[(?P<rank>\d+)\]{_STREAM} ?",
        required_text="]<std",
    ),
    make_grammar(
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
        required_text="<std",
    ),
    make_grammar(
        "srun --label",
        "writer",
        "Slurm 1",
        "d _",
        (" 3: step 3", "11:  iteration 3"),
        r" {0,5}(?P<rank>\d{1,6}): (?= *\S)",
        required_text=": ",
    ),
    make_grammar("srun --label of het jobs", "writer", "Slurm 17.11", "a", "P1  3: step 3", r"P\d{1,3} +\d{1,6}: ?"),
    make_grammar(
        "PALS --label",
        "writer",
        "HPE PALS 1",
        "a",
        "x3005c0s13b0n0.hsn.cm.example.org 3: step 3",
        r"(?P<host>(?:x\d+c\d+s\d+b\d+n\d+|nid\d+)[\w.-]*) (?P<rank>\d{1,6}): ?",
    ),
    make_grammar(
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
        required_text="pid=",
    ),
    make_grammar(
        "Ray daemons",
        "writer",
        "Ray 0.7",
        "( [d _",
        ("(raylet) Task failed", "(raylet, ip=10.0.0.7) Task failed", "(autoscaler +12s) Resized to 8 CPUs"),
        r"(?:\x1b?\[\d+m)?\((?:raylet|gcs_server|autoscaler|scheduler)(?:, ip=(?P<host>[\d.]+)|"
        r" \+[\dhms]+)?\)(?:\x1b?\[0m)? ?",
    ),
)
