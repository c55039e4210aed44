"""Parse file names: what the path of a log says about its writer."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Sequence

from triage.base.addresses import common_path
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.base.masked_re import MaskedPattern, MaskedPatterns, masked_re
from triage.model.evidence import Origin


@dataclass(frozen=True, slots=True)
class FileNaming:
    """A naming convention of files or folders. The last match in the path counts.

    Groups of the pattern: rank, local_rank, host, pid, stream, attempt, job, task. `since`: the first program version.
    """

    name: str
    since: str
    samples: tuple[str, ...]
    pattern: MaskedPattern


def _file_naming(name: str, since: str, samples: tuple[str, ...], pattern: str) -> FileNaming:
    return FileNaming(name, since, samples, masked_re(pattern))


TASK_NAMING = _file_naming(
    "task in the name",
    "Slurm, where there are as many such files as ranks",
    ("slurm-123_4.out", "logs/pretrain-123-4.err"),
    r"(?:^|/)[\w.-]*?(?P<job>\d{2,})[_.-](?P<task>\d{1,6})\.(?:out|err|log|txt)$",
)
# A machine's name has letters and digits. Runs, jobs and dates are called otherwise.
_MACHINE = (
    r"(?P<host>(?!(?i:run|job|case|attempt|incident|exp|test|step|day|boot|part|log|slurm|restart|k)s?[.-]?\d)"
    r"(?:(?=[A-Za-z-]{1,60}\d)[A-Za-z][A-Za-z0-9.-]{1,90}?|[0-9a-f]{12}))"
)
_LOG_END = r"(?:\.(?:txt|log|out))?(?:\.\d{1,3})?(?:\.(?:gz|xz|zst|bz2))?$"
# Where two give the same part, the first one counts.
FILE_NAMINGS: tuple[FileNaming, ...] = (
    _file_naming(
        "kernel log of a host",
        "habit",
        ("dmesg-gpu017.log", "kernel/x1000c0s0b0n0.log", "kern-ip-10-0-3-4.ec2.internal.txt"),
        rf"(?:^|/)(?:(?:dmesg|kern(?:el)?|journal(?:ctl)?)[-_.]|(?:kernel|dmesg)/){_MACHINE}(?=\.(?:txt|log|out)\b)"
        rf"(?={_LOG_END})",
    ),
    _file_naming(
        "folder of a kernel log",
        "habit, sosreport",
        ("gpu017/dmesg.txt", "logs/a100-05/var/log/kern.log", "x1000c0s0b0n0/journalctl-k.log"),
        rf"(?:^|/){_MACHINE}(?=/(?:var/log/|kernel/)?(?:dmesg|kern|journalctl|messages|syslog)[-\w]{{0,20}}{_LOG_END})",
    ),
    _file_naming(
        "torchrun log directory",
        "torch 1.9",
        ("none_k2j/attempt_1/3/stderr.log",),
        r"attempt_(?P<attempt>\d{1,18})/(?P<local_rank>\d{1,18})/(?:(?P<stream>stdout|stderr)|error)",
    ),
    _file_naming(
        "Kubernetes pod directory",
        "Kubernetes 1.14",
        ("ml_train-worker-0_0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0/pytorch/1.log",),
        r"(?:^|/)[a-z0-9-]+_(?P<host>[a-z0-9.-]+)_[0-9a-f-]{8,36}/[a-z0-9.-]+/(?P<attempt>\d{1,18})\.log",
    ),
    _file_naming(
        "Kubernetes container file",
        "Kubernetes 1.2",
        (f"train-worker-0_ml_pytorch-{'0a' * 32}.log",),
        r"(?:^|/)(?P<host>[a-z0-9.-]+)_[a-z0-9-]+_[a-z0-9.-]+-[0-9a-f]{64}\.log",
    ),
    _file_naming(
        "Docker json-file",
        "Docker 1.6",
        (f"{'3f' * 32}-json.log",),
        r"(?:^|/)(?P<host>[0-9a-f]{12})[0-9a-f]{52}(?:-json)?\.log",
    ),
    _file_naming(
        "plog of the host",
        "CANN 5",
        ("debug/plog/plog-271_20261121030745372.log",),
        r"(?:^|/)plog-(?P<pid>\d{1,18})_\d{14,20}\.log",
    ),
    _file_naming(
        "plog of the device",
        "CANN 5",
        ("debug/device-0/device-271_20261121030745372.log",),
        r"(?:^|/)device-\d+/device-(?P<pid>\d{1,18})_\d{14,20}\.log",
    ),
    _file_naming(
        "NCCL_DEBUG_FILE with %h and %p",
        "NCCL 2.3",
        ("nccl.node1.412", "nccl_debug_node1_412.log"),
        r"(?:^|/)[^/]*?nccl[a-z]*(?:[._-](?:debug|log|info|trace|warn))*[._-]"
        r"(?!(?:(?:debug|log|info|trace|warn)[._-])*(?:rank|pid|local|gpu|job))"
        r"(?P<host>[A-Za-z][\w-]*?)[._-](?P<pid>\d{2,8})(?:\.[a-z]{2,4})?$",
    ),
    _file_naming(
        "dump of a process on a host",
        "habit",
        ("pyspy-node1-412.txt", "gdb_gpu-004.cluster.local_412.out"),
        r"(?:^|/)(?:py-?spy|pystack|gdb|stacks?)(?:[._-](?:dump|trace|bt))*[._-]"
        r"(?!(?:rank|pid|local|proc|job|gpu|worker)[a-z]*[._-]?\d+(?:\.[a-z]{2,4})?$)"
        r"(?P<host>[A-Za-z][\w.-]*?)[._-](?P<pid>\d{2,8})(?:\.[a-z]{2,4})?$",
    ),
    _file_naming(
        "Ray worker",
        "Ray 1.0",
        (f"worker-{'0a' * 28}-01000000-412.err", f"python-core-worker-{'0a' * 28}_412.log"),
        r"(?:^|/)(?:worker-[0-9a-f]{40,56}-[0-9a-f]{8}-|python-core-worker-[0-9a-f]{40,56}_)(?P<pid>\d{1,18})\.(?:out|err|"
        r"log)(?:\.jsonl?)?$",
    ),
    _file_naming(
        "Open MPI --output-filename",
        "Open MPI 3",
        ("1/rank.02/stderr",),
        r"(?:^|/)rank\.(?P<rank>\d{1,18})/(?P<stream>stdout|stderr)$",
    ),
    _file_naming(
        "local rank in the name",
        "habit",
        ("local_rank_2.log", "localrank2.log"),
        r"(?i:local[_-]?rank[_-]?)(?P<local_rank>\d{1,18})",
    ),
    _file_naming(
        "rank in the name",
        "habit, DeepSpeed --enable_each_rank_log",
        ("rank_12.log", "out/rank3.log", "1700000000_rank5.log"),
        r"(?<![a-zA-Z])(?i:(?<!local_)(?<!local-)(?<!lora_)(?<!lora-)(?<!low_)(?<!low-)(?:global[_-])?rank[_.-]?)"
        r"(?P<rank>\d{1,18})(?![\d.]*x)",
    ),
    _file_naming(
        "worker log of PaddlePaddle",
        "PaddlePaddle 1.5",
        ("log/workerlog.3",),
        r"(?:^|/)workerlog\.(?P<local_rank>\d{1,4})$",
    ),
    _file_naming(
        "process in the name",
        "Azure Machine Learning",
        ("user_logs/std_log_process_02.txt",),
        r"(?:^|/)std_log_process_(?P<rank>\d{1,6})(?=\.txt)",
    ),
    # `proc_0.log`, `gpu0.log` and `worker_0.log` may be anything: only folders and typical machine names are hosts.
    _file_naming(
        "folder of a host",
        "habit",
        ("node3/train.log", "logs/worker-1/train.log", "gpu017/train.log"),
        r"(?:^|/)(?P<host>(?i:(?:node|host|worker|nid|compute|n)[-_]?\d[\w-]*|gpu[-_]?\d{2,}[\w-]*))(?=/)",
    ),
    # A single digit begins versions rather than addresses.
    _file_naming(
        "folder with the address of a host",
        "habit",
        ("10.0.0.2/train.log", "plogs/192.168.10.101/log/run/plog/plog-4012_20250619174241117.log"),
        r"(?:^|/)(?P<host>[1-9]\d{1,2}(?:\.\d{1,3}){3})(?=/)",
    ),
    _file_naming(
        "file of a host",
        "habit",
        ("node3.log", "nid004123.out", "gpu-054.log", "ip-10-0-1-12.out"),
        r"(?:^|/)(?P<host>(?i:(?:node|host|nid|compute|n)[-_]?\d[\w-]*|gpu[-_]?(?:0\d|\d{3})\d*|ip(?:-\d{1,3}){4}))"
        r"(?=\.[a-z]{1,4}$|$)",
    ),
    _file_naming(
        "file of a host with its domain",
        "habit",
        ("gpu-054.cluster.local.log", "ip-10-0-1-12.eu-west-1.compute.internal.out"),
        r"(?:^|/)(?P<host>[a-z][a-z0-9-]*\d[a-z0-9-]*(?:\.[a-z0-9-]{1,40}){0,4}\.(?:local|localdomain|lan|internal))"
        r"(?=\.[a-z]{1,4}$|$)",
    ),
    _file_naming(
        "folder or file of a pod",
        "Kubeflow, Volcano",
        ("train-worker-0.log", "logs/train-master-0/train.log"),
        r"(?:^|/)(?P<host>[a-z0-9][a-z0-9-]*-(?:master|worker|launcher)-\d+)(?=/|\.[a-z]{1,4}$|$)",
    ),
    _file_naming(
        "attempt in the name",
        "habit",
        ("attempt_2/train.log", "train-attempt3.log"),
        r"attempt[_-]?(?P<attempt>\d{1,18})",
    ),
    # The number of a task or of an array job: the name alone does not decide, see identity.py.
    TASK_NAMING,
)
_OF_NAMES = MaskedPatterns([naming.pattern for naming in FILE_NAMINGS])
# Snapshots of a process by tools: the process wrote none of it.
_SNAPSHOT = masked_re(
    r"(?:^|[/._-])(?:procstatus|environ|env|files|fds|lsof|strace|ltrace|gdb|py-?spy|stacks?|wchan|maps|smaps|"
    r"limits|ps|pstack|top|dmesg|\w+-smi)\.txt$|\d[/._-]status\.txt$"
)
_PROC_STATUS = lazy_re(rb"Name:\t[^\n]*\n(?:Umask|State):\t|tid \d+ comm ")
_COMPRESSED = lazy_re(r"\.(?:gz|xz|zst|bz2)$")
_MOST_NAMES = 64  # several rooms ask for the name of the file that is read
_LONGEST = 4096  # Linux's PATH_MAX; an archive may have longer names
_NUMERIC_PARTS = ("rank", "local_rank", "pid", "attempt")


def find_root(paths: Sequence[str], names: Collection[str]) -> str:
    """Return what all given paths have in common: names of directories in it do not tell the files apart.

    `names` are those of the sources: a given path among them is a file, whose own name counts.
    """
    directories = [os.path.dirname(path) if path in names else path.rstrip("/") for path in paths]
    if not directories or any(os.path.isabs(path) != os.path.isabs(directories[0]) for path in directories):
        return ""
    return common_path(directories) if len(directories) > 1 else directories[0]


@functools.lru_cache(_MOST_NAMES)
def parse_file_name(name: str, root: str = "") -> Origin:
    """Return what a path says about the writer: `node3/attempt_0/2/stderr.log`, `rank_12.log`.

    A name that ends within `root`, the start of the path that all files of the job share, says nothing.
    """
    above = len(root) if root and name.startswith(root) else 0
    name = remove_compression(name)
    if len(name) > _LONGEST:
        return Origin()
    parts: dict[str, str] = {}
    for pattern in _OF_NAMES.list_candidates(name):
        matches = [match for match in pattern.finditer(name) if match.end() > above]
        if matches:
            for key, value in matches[-1].groupdict().items():
                if value is not None:
                    parts.setdefault(key, value)
    numbers = {key: int(parts[key]) for key in _NUMERIC_PARTS if key in parts}
    return Origin(
        rank=numbers.get("rank"),
        local_rank=numbers.get("local_rank"),
        host=parts.get("host"),
        pid=numbers.get("pid"),
        stream=parts.get("stream"),
        attempt=numbers.get("attempt", 0),
    )


def remove_compression(name: str) -> str:
    """Return the name of a compressed file without the end that its compression gave it."""
    return _COMPRESSED.sub("", name)


def is_process_snapshot(name: str, head: bytes) -> bool:
    """Does a file that begins with `head` show a process from outside, such as `/proc/PID/status`?"""
    return _SNAPSHOT.search(name) is not None or _PROC_STATUS.match(head) is not None
