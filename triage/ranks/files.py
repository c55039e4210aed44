"""What the name of a file tells of its writer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin


@dataclass(frozen=True, slots=True)
class Naming:
    """A way in which files or folders are called. Groups: rank, local_rank, host, pid, stream, attempt. The last place
    that matches counts.
    """

    name: str
    since: str
    samples: tuple[str, ...]
    pattern: re.Pattern[str]


def _naming(name: str, since: str, samples: tuple[str, ...], pattern: str) -> Naming:
    return Naming(name, since, samples, lazy_re(pattern))


TASK = _naming(
    "task in the name",
    "Slurm, where there are as many such files as ranks",
    ("slurm-123_4.out", "logs/pretrain-123-4.err"),
    r"(?:^|/)[\w.-]*?\d{2,}[_.-](?P<task>\d{1,6})\.(?:out|err|log|txt)$",
)
# Of two that tell the same thing the first is believed.
NAMINGS: tuple[Naming, ...] = (
    _naming(
        "torchrun log directory",
        "torch 1.9",
        ("none_k2j/attempt_1/3/stderr.log",),
        r"attempt_(?P<attempt>\d+)/(?P<local_rank>\d+)/(?:(?P<stream>stdout|stderr)|error)",
    ),
    _naming(
        "Kubernetes pod directory",
        "Kubernetes 1.14",
        ("ml_train-worker-0_0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0/pytorch/1.log",),
        r"(?:^|/)[a-z0-9-]+_(?P<host>[a-z0-9.-]+)_[0-9a-f-]{8,36}/[a-z0-9.-]+/(?P<attempt>\d+)\.log",
    ),
    _naming(
        "Kubernetes container file",
        "Kubernetes 1.2",
        (f"train-worker-0_ml_pytorch-{'0a' * 32}.log",),
        r"(?:^|/)(?P<host>[a-z0-9.-]+)_[a-z0-9-]+_[a-z0-9.-]+-[0-9a-f]{64}\.log",
    ),
    _naming(
        "Docker json-file",
        "Docker 1.6",
        (f"{'3f' * 32}-json.log",),
        r"(?:^|/)(?P<host>[0-9a-f]{12})[0-9a-f]{52}(?:-json)?\.log",
    ),
    _naming(
        "plog of the host",
        "CANN 5",
        ("debug/plog/plog-271_20261121030745372.log",),
        r"(?:^|/)plog-(?P<pid>\d+)_\d{14,20}\.log",
    ),
    _naming(
        "plog of the device",
        "CANN 5",
        ("debug/device-0/device-271_20261121030745372.log",),
        r"(?:^|/)device-\d+/device-(?P<pid>\d+)_\d{14,20}\.log",
    ),
    _naming(
        "NCCL_DEBUG_FILE with %h and %p",
        "NCCL 2.3",
        ("nccl.node1.412", "nccl_debug_node1_412.log"),
        r"(?:^|/)[^/]*?nccl[a-z]*(?:[._-](?:debug|log|info|trace|warn))*[._-](?!rank|pid|local|gpu|job)"
        r"(?P<host>[A-Za-z][\w-]*?)[._-](?P<pid>\d{2,8})(?:\.[a-z]{2,4})?$",
    ),
    _naming(
        "Ray worker",
        "Ray 1.0",
        (f"worker-{'0a' * 28}-01000000-412.err", f"python-core-worker-{'0a' * 28}_412.log"),
        r"(?:^|/)(?:worker-[0-9a-f]{40,56}-[0-9a-f]{8}-|python-core-worker-[0-9a-f]{40,56}_)(?P<pid>\d+)\.(?:out|err|log)$",
    ),
    _naming(
        "Open MPI --output-filename",
        "Open MPI 3",
        ("1/rank.02/stderr",),
        r"(?:^|/)rank\.(?P<rank>\d+)/(?P<stream>stdout|stderr)$",
    ),
    _naming(
        "local rank in the name",
        "habit",
        ("local_rank_2.log", "localrank2.log"),
        r"(?i:local[_-]?rank[_-]?)(?P<local_rank>\d+)",
    ),
    _naming(
        "rank in the name",
        "habit, DeepSpeed --enable_each_rank_log",
        ("rank_12.log", "out/rank3.log", "1700000000_rank5.log"),
        r"(?<![a-zA-Z])(?i:(?<!local_)(?<!local-)(?<!lora_)(?<!lora-)(?<!low_)(?<!low-)(?:global[_-])?rank[_.-]?)(?P<rank>\d+)(?![\d.]*x)",
    ),
    # `gpu0.log` and `worker_0.log` may be anything: only folders, and names that are a machine's, are hosts.
    _naming(
        "folder of a host",
        "habit",
        ("node3/train.log", "logs/worker-1/train.log", "gpu017/train.log"),
        r"(?:^|/)(?P<host>(?i:(?:node|host|worker|nid|compute|n)[-_]?\d[\w-]*|gpu[-_]?\d{2,}[\w-]*))(?=/)",
    ),
    _naming(
        "file of a host",
        "habit",
        ("node3.log", "nid004123.out"),
        r"(?:^|/)(?P<host>(?i:(?:node|host|nid|compute|n)[-_]?\d[\w-]*))(?=\.[a-z]{1,4}$|$)",
    ),
    _naming(
        "folder or file of a pod",
        "Kubeflow, Volcano",
        ("train-worker-0.log", "logs/train-master-0/train.log"),
        r"(?:^|/)(?P<host>[a-z0-9][a-z0-9-]*-(?:master|worker|launcher)-\d+)(?=/|\.[a-z]{1,4}$|$)",
    ),
    _naming(
        "attempt in the name", "habit", ("attempt_2/train.log", "train-attempt3.log"), r"attempt[_-]?(?P<attempt>\d+)"
    ),
    # A task's number or that of an array's job: the name alone does not say, see identity.py.
    TASK,
)
# What tools took of a process from outside: none of it did the process write.
_TAKEN = lazy_re(
    r"(?:^|[/._-])(?:(?:proc)?status|environ|env|files|fds|lsof|strace|ltrace|gdb|py-?spy|stacks?|wchan|maps|smaps|limits|ps|pstack|top|dmesg|\w+-smi)\.txt$"
)
_STATUS = lazy_re(rb"Name:\t[^\n]*\n(?:Umask|State):\t")
_NUMBERS = ("rank", "local_rank", "pid", "attempt")


def origin_of(name: str) -> Origin:
    """Rank, local rank, host, pid, stream and attempt as far as a path such as `node3/attempt_0/2/stderr.log` or
    `rank_12.log` says.
    """
    told: dict[str, str] = {}
    for naming in NAMINGS:
        found = list(naming.pattern.finditer(name))
        if found:
            for key, value in found[-1].groupdict().items():
                if value is not None:
                    told.setdefault(key, value)
    numbers = {key: int(told[key]) for key in _NUMBERS if key in told}
    return Origin(
        rank=numbers.get("rank"),
        local_rank=numbers.get("local_rank"),
        host=told.get("host"),
        pid=numbers.get("pid"),
        stream=told.get("stream"),
        attempt=numbers.get("attempt", 0),
    )


def is_taken(name: str, head: bytes) -> bool:
    """Does a file that begins with `head` show a process from outside, such as its `/proc/PID/status`, so that it holds
    no last words?
    """
    return _TAKEN.search(name) is not None or _STATUS.match(head) is not None
