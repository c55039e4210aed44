"""A job of eight ranks on two hosts, written as each launcher, scheduler and container leaves it: the rank that failed
is named.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import triage
from triage.ranks.splitting import Options, split

RANKS, LOCAL, BAD = 8, 4, 5
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB of which 1.00 GiB is free."
START = "2026-11-21 03:07:"
Files = dict[str, list[str]]


@dataclass(frozen=True)
class Writer:
    """One process of the job."""

    rank: int

    @property
    def node(self) -> int:
        return self.rank // LOCAL

    @property
    def local(self) -> int:
        return self.rank % LOCAL

    @property
    def host(self) -> str:
        return f"node{self.node}"

    @property
    def pid(self) -> int:
        return 7000 + 11 * self.rank

    def output(self, tag: str = "", stamp: str = "") -> list[str]:
        """What it prints. `tag` stands before its tracebacks, as torch's excepthook and loggers put it there."""
        steps = [
            f"{stamp.format(step)}step {step} loss {2.5 - step / 100:.3f} on shard {self.rank}" for step in range(9)
        ]
        if self.rank != BAD:
            return [*steps, f"{stamp.format(9)}step 9 loss 2.410 on shard {self.rank}"]
        frames = [
            '  File "/job/train.py", line 88, in <module>',
            "    main()",
            '  File "/job/train.py", line 41, in main',
            "    loss.backward()",
        ]
        return [*steps, *(tag + line for line in ("Traceback (most recent call last):", *frames, OOM))]


WRITERS = [Writer(rank) for rank in range(RANKS)]


def mixed(lines: Callable[[Writer], list[str]], writers: list[Writer] = WRITERS) -> list[str]:
    """The lines of all in one stream, in any fair order."""
    choice = random.Random(3)
    queues = {writer: lines(writer) for writer in writers}
    told = []
    while queues:
        writer = choice.choice(list(queues))
        told.append(queues[writer].pop(0))
        if not queues[writer]:
            del queues[writer]
    return told


def console(prefix: Callable[[Writer], str], tag: bool = False, stamp: str = "") -> Files:
    return {
        "console.log": mixed(lambda writer: [prefix(writer) + line for line in writer.output(_tag(writer, tag), stamp)])
    }


def nodes(prefix: Callable[[Writer], str], tag: bool = False, name: str = "node{}.log") -> Files:
    """A file for each node."""
    return {
        name.format(node): mixed(
            lambda writer: [prefix(writer) + line for line in writer.output(_tag(writer, tag))],
            WRITERS[node * LOCAL : (node + 1) * LOCAL],
        )
        for node in range(RANKS // LOCAL)
    }


def files(name: Callable[[Writer], str], tag: bool = False) -> Files:
    return {name(writer): writer.output(_tag(writer, tag)) for writer in WRITERS}


def _tag(writer: Writer, tag: bool) -> str:
    return f"[rank{writer.rank}]: " if tag else ""


def init(writer: Writer) -> str:
    """How NCCL ties process and rank."""
    return (
        f"{writer.host}:{writer.pid}:{writer.pid} [{writer.local}] NCCL INFO ncclCommInitRank comm 0x55{writer.rank:x}0 rank {writer.rank} "
        f"nranks {RANKS} cudaDev {writer.local} nvmlDev {writer.local} busId {writer.local + 1:x}b000 commId 0x7f1 - Init START"
    )


def agent(node: int) -> list[str]:
    """torchelastic's list of its workers."""
    ranks = [writer.rank for writer in WRITERS if writer.node == node]
    head = f"I1121 03:07:00.000000 {70 + node} torch/distributed/elastic/agent/server/api.py:525] [default] Rendezvous complete for workers. Result:"
    return [
        head,
        "  restart_count=0",
        f"  group_rank={node}",
        f"  local_ranks={list(range(LOCAL))}",
        f"  role_ranks={ranks}",
        f"  global_ranks={ranks}",
    ]


def with_agents(found: Files, label: str = "") -> Files:
    return {
        name: [*(label.format(node) + line for line in agent(node)), *lines]
        for node, (name, lines) in enumerate(found.items())
    }


def one_file(found: Files) -> Files:
    return {"console.log": [line for lines in found.values() for line in lines]}


def slurm(template: str) -> Files:
    told = files(lambda writer: template.format(writer.rank))
    return {name: [*lines[:1], "world_size=8", *lines[1:]] for name, lines in told.items()}


def docker(line: str, number: int) -> str:
    return json.dumps(
        {"log": line + "\n", "stream": "stderr", "time": f"{START.replace(' ', 'T')}{number % 60:02}.123456789Z"},
        separators=(",", ":"),
    )


def attempts() -> Files:
    """The first attempt failed in another way, the second as told."""
    first = {f"none_k2j/attempt_0/{writer.rank}/stderr.log": writer.output()[:5] for writer in WRITERS}
    first["none_k2j/attempt_0/2/stderr.log"] += [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 7, in <module>',
        "KeyError: 'x'",
    ]
    return first | {f"none_k2j/attempt_1/{writer.rank}/stderr.log": writer.output() for writer in WRITERS}


def glog(version: str) -> Files:
    """Only c10d's own lines say the rank; the failure is the watchdog's."""
    head = {
        "2.1": "[E ProcessGroupNCCL.cpp:828] ",
        "2.3": "[rank{r}]:[E ProcessGroupNCCL.cpp:523] ",
        "2.4": "[rank{r}]:[E1121 03:07:20.123456789 ProcessGroupNCCL.cpp:607] ",
    }
    return {
        "console.log": mixed(
            lambda writer: [
                *writer.output(_tag(writer, True)),
                head[version].format(r=writer.rank) + f"[Rank {writer.rank}] bye",
            ]
        )
    }


def journal(export: bool) -> Files:
    told = []
    for writer in WRITERS:
        for line in writer.output(_tag(writer, True)):
            record = {
                "__REALTIME_TIMESTAMP": "1795230465000000",
                "_HOSTNAME": writer.host,
                "_PID": str(writer.pid),
                "MESSAGE": line,
                "SYSLOG_IDENTIFIER": "train",
            }
            told += [*(f"{key}={value}" for key, value in record.items()), ""] if export else [json.dumps(record)]
    return {"journal": told}


def nccl_files() -> Files:
    """NCCL_DEBUG_FILE=nccl.%h.%p ties pids and ranks, the console has pids alone."""
    return {f"nccl.{writer.host}.{writer.pid}": [init(writer)] for writer in WRITERS} | console(
        lambda writer: f"(Trainer pid={writer.pid}, ip=10.0.0.{writer.node}) "
    )


def numbered(lines: list[str]) -> list[str]:
    return [f"[{80746 + number}] {line}" for number, line in enumerate(lines)]


def behind(lines: list[str]) -> list[str]:
    return [part for number, line in enumerate(lines) for part in (line, f"2026-11-21T03:07:{number % 60:02}.123Z")]


def each(found: Files, form: Callable[[str, int], str]) -> Files:
    return {name: [form(line, number) for number, line in enumerate(lines)] for name, lines in found.items()}


TAGGED = console(lambda writer: "", tag=True)
JOBS: dict[str, Files] = {
    "torchrun --tee on one host": console(lambda writer: f"[default{writer.rank}]:"),
    "torchrun --tee, a file a host, agents": with_agents(nodes(lambda writer: f"[default{writer.local}]:")),
    "torchrun --tee with --role host, NCCL": console(lambda writer: f"[{writer.host}:{writer.local}]:") | {"x.log": [f"[{writer.host}:{writer.local}]:{init(writer)}" for writer in WRITERS]},
    "torchrun template ${rank}": console(lambda writer: f"[{writer.rank}]:"),
    "torchrun template with words": console(lambda writer: f"[rank {writer.rank}] "),
    "torchrun log directories of attempts": attempts(),
    "torchrun log directories of two nodes": {f"{writer.host}/none_k/attempt_0/{writer.local}/stderr.log": [*agent(writer.node)[:0], *writer.output(_tag(writer, True))] for writer in WRITERS},
    "[rankN]: of the excepthook": TAGGED,
    "glog of torch 2.1": glog("2.1"),
    "glog of torch 2.3": glog("2.3"),
    "glog of torch 2.4": glog("2.4"),
    "srun --label": console(lambda writer: f"{writer.rank}: "),
    "srun --label of 16": console(lambda writer: f"{writer.rank:2}: "),
    "srun --label around torchrun": one_file(with_agents(nodes(lambda writer: f"{writer.node}: [default{writer.local}]:"), "{}: ")),
    "torchrun --role rank": one_file(nodes(lambda writer: f"[rank{writer.local}]:", tag=True)),
    "srun --label of a het job, tags": console(lambda writer: f"P{writer.node} {writer.local}: ", tag=True),
    "srun %j_%t": slurm("slurm-123_{}.out"),
    "Open MPI 4 --tag-output": console(lambda writer: f"[1,{writer.rank}]<stderr>:"),
    "Open MPI 4 --timestamp-output": console(lambda writer: f"Sat Nov 21 03:07:{10 + writer.rank} 2026[1,{writer.rank}]<stderr>:"),
    "PRRTE tag": console(lambda writer: f"[prterun-node0-77@1,{writer.rank}]<stderr>: "),
    "PRRTE tag with a number": console(lambda writer: f"[1,{writer.rank}]<stderr>: "),
    "PRRTE tag-detailed": console(lambda writer: f"[1,{writer.rank}][{writer.host}:{writer.pid}]<stderr>: "),
    "PRRTE rank": console(lambda writer: f"[{writer.rank}]<stderr>: "),
    "PRRTE timestamp": console(lambda writer: f"[Sat Nov 21 03:07:10 2026][1,{writer.rank}]<stderr>: "),
    "MPICH -prepend-rank": console(lambda writer: f"[{writer.rank}] "),
    "PALS": console(lambda writer: f"x3005c0s13b{writer.node}n0 {writer.rank}: "),
    "pdsh": console(lambda writer: f"{writer.host}: ", tag=True),
    "DeepSpeed's runner and launcher": console(lambda writer: f"{writer.host}: ", tag=True),
    "DeepSpeed --enable_each_rank_log": files(lambda writer: f"logs/1700000000_rank{writer.rank}.log"),
    "Lightning": console(lambda writer: f"[rank: {writer.rank}] "),
    "NeMo-Run": console(lambda writer: f"i.pretrain/0 [default{writer.rank}]:[rank{writer.rank}]: "),
    "torchx, two replicas": console(lambda writer: f"trainer/{writer.node} ", tag=True),
    "Ray": nccl_files(),
    "vLLM": console(lambda writer: f"(VllmWorker rank={writer.rank} pid={writer.pid}) "),
    "kubectl --prefix": console(lambda writer: f"[pod/train-worker-{writer.node}/pytorch] ", tag=True),
    "stern": console(lambda writer: f"train-worker-{writer.node} pytorch ", tag=True),
    "CRI": each(TAGGED, lambda line, number: f"2026-11-21T03:07:{number % 60:02}.372001123Z stderr F {line}"),
    "Docker json-file": each(TAGGED, docker),
    "docker compose": console(lambda writer: f"trainer-{writer.node}  | ", tag=True),
    "docker compose, a container a rank": console(lambda writer: f"trainer-{writer.rank}  | [rank{writer.rank}]: "),
    "journald JSON": journal(False),
    "journald export": journal(True),
    "CloudWatch export": {name: behind(lines) for name, lines in TAGGED.items()},
    "CI line counter": {name: numbered(lines) for name, lines in TAGGED.items()},
    "GitHub Actions": each(TAGGED, lambda line, number: f"2026-11-21T03:07:{number % 60:02}.3720011Z {line}"),
    "rank in the file name": files(lambda writer: f"rank_{writer.rank}.log"),
    "rank in the folder": files(lambda writer: f"{writer.host}/rank{writer.rank}/train.log"),
    "local rank in the file name": {f"{writer.host}/local_rank_{writer.local}.log": [init(writer), *writer.output()] for writer in WRITERS},
    "logger with the rank": console(lambda writer: f"2026-11-21 03:07:10,123 [rank{writer.rank}] ERROR trainer: "),
}  # fmt: skip


def write(found: Files, directory: Path) -> Path:
    for name, lines in found.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return directory


@pytest.mark.parametrize("layout", JOBS)
def test_the_rank_that_failed_is_named(layout: str, tmp_path: Path) -> None:
    """What went wrong, on which rank and whether all ranks were seen does not depend on who started the job."""
    found = triage.ingest([str(write(JOBS[layout], tmp_path))])
    root = found.root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("cuda.out-of-memory", (BAD,))


# Where no line but those of a traceback tells whose it is, or only which node's.
UNTOLD = {
    "[rankN]: of the excepthook",
    "torchrun --role rank",
    "srun --label of a het job, tags",
    "pdsh",
    "DeepSpeed's runner and launcher",
}
UNTOLD |= {
    "torchx, two replicas",
    "kubectl --prefix",
    "stern",
    "CRI",
    "Docker json-file",
    "docker compose",
    "CloudWatch export",
}
UNTOLD |= {"CI line counter", "GitHub Actions", "glog of torch 2.1", "glog of torch 2.3", "glog of torch 2.4"}
UNTOLD |= {
    "journald JSON",
    "journald export",
    "torchrun log directories of two nodes",
}  # no line of the others has a rank


@pytest.mark.parametrize("layout", JOBS)
def test_splitting_gives_every_rank_its_own(layout: str, tmp_path: Path) -> None:
    """The file of a rank holds all of its output in order where the layout tells it, and never a line of another; none
    is lost.
    """
    result = split([str(write(JOBS[layout], tmp_path / "in"))], tmp_path / "out", Options(workers=1))
    assert result.lines == sum(file.lines for file in result.files) + result.left_out - result.added
    found = {
        file.rank: (tmp_path / "out" / file.name).read_text().splitlines()
        for file in result.files
        if file.rank is not None
    }
    for rank, lines in found.items():
        assert {line.rpartition(" ")[2] for line in lines if " on shard " in line} <= {str(rank)}
    if layout in UNTOLD:
        return
    for writer in WRITERS:
        lines = [line for line in found[writer.rank] if "NCCL INFO" not in line and "world_size" not in line]
        wanted = JOBS[layout].get(f"none_k2j/attempt_0/{writer.rank}/stderr.log", []) + writer.output()
        assert len(lines) == len(wanted)
        assert all(line.endswith(text) for line, text in zip(lines, wanted, strict=True))
