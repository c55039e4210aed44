"""A job of eight ranks on two hosts, as each launcher, scheduler and container writes it: the failed rank is named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import triage
from triage.split import Options, split

RANKS, RANKS_PER_NODE, FAILED_RANK = 8, 4, 5
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 1 has a total capacity of 79.10 GiB of which 1.00 GiB is free."
)
START = "2026-11-21 03:07:"
Files = dict[str, list[str]]


@dataclass(frozen=True)
class Writer:
    """One process of the job."""

    rank: int

    @property
    def node(self) -> int:
        return self.rank // RANKS_PER_NODE

    @property
    def local(self) -> int:
        return self.rank % RANKS_PER_NODE

    @property
    def host(self) -> str:
        return f"node{self.node}"

    @property
    def pid(self) -> int:
        return 7000 + 11 * self.rank

    def output(self, tag: str = "", stamp: str = "") -> list[str]:
        """Return what it prints. `tag` stands before its tracebacks, as torch's excepthook and loggers write it."""
        steps = [
            f"{stamp.format(step)}step {step} loss {2.5 - step / 100:.3f} on shard {self.rank}" for step in range(9)
        ]
        if self.rank != FAILED_RANK:
            return [*steps, f"{stamp.format(9)}step 9 loss 2.410 on shard {self.rank}"]
        frames = [
            '  File "/job/train.py", line 88, in <module>',
            "    main()",
            '  File "/job/train.py", line 41, in main',
            "    loss.backward()",
        ]
        return [*steps, *(tag + line for line in ("Traceback (most recent call last):", *frames, OOM))]


WRITERS = [Writer(rank) for rank in range(RANKS)]


def mixed(lines_of: Callable[[Writer], list[str]], writers: list[Writer] = WRITERS) -> list[str]:
    """Return the lines of all writers in one stream, in random order."""
    choice = random.Random(3)
    queues = {writer: lines_of(writer) for writer in writers}
    lines = []
    while queues:
        writer = choice.choice(list(queues))
        lines.append(queues[writer].pop(0))
        if not queues[writer]:
            del queues[writer]
    return lines


def one_console(prefix: Callable[[Writer], str], tag: bool = False, stamp: str = "") -> Files:
    return {
        "console.log": mixed(lambda writer: [prefix(writer) + line for line in writer.output(_tag(writer, tag), stamp)])
    }


def file_per_node(prefix: Callable[[Writer], str], tag: bool = False, name: str = "node{}.log") -> Files:
    """Return one file per node."""
    return {
        name.format(node): mixed(
            lambda writer: [prefix(writer) + line for line in writer.output(_tag(writer, tag))],
            WRITERS[node * RANKS_PER_NODE : (node + 1) * RANKS_PER_NODE],
        )
        for node in range(RANKS // RANKS_PER_NODE)
    }


def file_per_rank(name: Callable[[Writer], str], tag: bool = False) -> Files:
    return {name(writer): writer.output(_tag(writer, tag)) for writer in WRITERS}


def _tag(writer: Writer, tag: bool) -> str:
    return f"[rank{writer.rank}]: " if tag else ""


def nccl_init_line(writer: Writer) -> str:
    """Return the line in which NCCL states pid and rank."""
    return (
        f"{writer.host}:{writer.pid}:{writer.pid} [{writer.local}] NCCL INFO ncclCommInitRank comm "
        f"0x55{writer.rank:x}0 rank {writer.rank} nranks {RANKS} cudaDev {writer.local} nvmlDev {writer.local} "
        f"busId {writer.local + 1:x}b000 commId 0x7f1 - Init START"
    )


def agent_lines(node: int) -> list[str]:
    """Return torchelastic's list of its workers."""
    ranks = [writer.rank for writer in WRITERS if writer.node == node]
    head = (
        f"I1121 03:07:00.000000 {70 + node} torch/distributed/elastic/agent/server/api.py:525] "
        "[default] Rendezvous complete for workers. Result:"
    )
    return [
        head,
        "  restart_count=0",
        f"  group_rank={node}",
        f"  local_ranks={list(range(RANKS_PER_NODE))}",
        f"  role_ranks={ranks}",
        f"  global_ranks={ranks}",
    ]


def with_agents(files: Files, label: str = "") -> Files:
    return {
        name: [*(label.format(node) + line for line in agent_lines(node)), *lines]
        for node, (name, lines) in enumerate(files.items())
    }


def one_file(files: Files) -> Files:
    return {"console.log": [line for lines in files.values() for line in lines]}


def slurm_files(template: str) -> Files:
    files = file_per_rank(lambda writer: template.format(writer.rank))
    return {name: [*lines[:1], "world_size=8", *lines[1:]] for name, lines in files.items()}


def docker_line(line: str, number: int) -> str:
    return json.dumps(
        {"log": line + "\n", "stream": "stderr", "time": f"{START.replace(' ', 'T')}{number % 60:02}.123456789Z"},
        separators=(",", ":"),
    )


def attempt_files() -> Files:
    """Return two attempts: the first fails in another way."""
    first = {f"none_k2j/attempt_0/{writer.rank}/stderr.log": writer.output()[:5] for writer in WRITERS}
    first["none_k2j/attempt_0/2/stderr.log"] += [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 7, in <module>',
        "KeyError: 'x'",
    ]
    return first | {f"none_k2j/attempt_1/{writer.rank}/stderr.log": writer.output() for writer in WRITERS}


def glog_console(version: str) -> Files:
    """Return a console in which only c10d's own lines name the rank, and the watchdog fails."""
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


def journal_file(export: bool) -> Files:
    lines = []
    for writer in WRITERS:
        for line in writer.output(_tag(writer, True)):
            record = {
                "__REALTIME_TIMESTAMP": "1795230465000000",
                "_HOSTNAME": writer.host,
                "_PID": str(writer.pid),
                "MESSAGE": line,
                "SYSLOG_IDENTIFIER": "train",
            }
            lines += [*(f"{key}={value}" for key, value in record.items()), ""] if export else [json.dumps(record)]
    return {"journal": lines}


def nccl_files() -> Files:
    """Return NCCL_DEBUG_FILE=nccl.%h.%p with pids and ranks, and a console with pids only."""
    return {f"nccl.{writer.host}.{writer.pid}": [nccl_init_line(writer)] for writer in WRITERS} | one_console(
        lambda writer: f"(Trainer pid={writer.pid}, ip=10.0.0.{writer.node}) "
    )


def with_line_counter(lines: list[str]) -> list[str]:
    return [f"[{80746 + number}] {line}" for number, line in enumerate(lines)]


def with_stamps_behind(lines: list[str]) -> list[str]:
    return [part for number, line in enumerate(lines) for part in (line, f"2026-11-21T03:07:{number % 60:02}.123Z")]


def map_lines(files: Files, form: Callable[[str, int], str]) -> Files:
    return {name: [form(line, number) for number, line in enumerate(lines)] for name, lines in files.items()}


TAGGED = one_console(lambda writer: "", tag=True)
JOBS: dict[str, Files] = {
    "torchrun --tee on one host": one_console(lambda writer: f"[default{writer.rank}]:"),
    "torchrun --tee, a file a host, agents": with_agents(file_per_node(lambda writer: f"[default{writer.local}]:")),
    "torchrun --tee with --role host, NCCL": one_console(lambda writer: f"[{writer.host}:{writer.local}]:")
    | {"x.log": [f"[{writer.host}:{writer.local}]:{nccl_init_line(writer)}" for writer in WRITERS]},
    "torchrun template ${rank}": one_console(lambda writer: f"[{writer.rank}]:"),
    "torchrun template with words": one_console(lambda writer: f"[rank {writer.rank}] "),
    "torchrun log directories of attempts": attempt_files(),
    "torchrun log directories of two nodes": {
        f"{writer.host}/none_k/attempt_0/{writer.local}/stderr.log": writer.output(_tag(writer, True))
        for writer in WRITERS
    },
    "[rankN]: of the excepthook": TAGGED,
    "glog of torch 2.1": glog_console("2.1"),
    "glog of torch 2.3": glog_console("2.3"),
    "glog of torch 2.4": glog_console("2.4"),
    "srun --label": one_console(lambda writer: f"{writer.rank}: "),
    "srun --label of 16": one_console(lambda writer: f"{writer.rank:2}: "),
    "srun --label around torchrun": one_file(
        with_agents(file_per_node(lambda writer: f"{writer.node}: [default{writer.local}]:"), "{}: ")
    ),
    "torchrun --role rank": one_file(file_per_node(lambda writer: f"[rank{writer.local}]:", tag=True)),
    "srun --label of a het job, tags": one_console(lambda writer: f"P{writer.node} {writer.local}: ", tag=True),
    "srun %j_%t": slurm_files("slurm-123_{}.out"),
    "Open MPI 4 --tag-output": one_console(lambda writer: f"[1,{writer.rank}]<stderr>:"),
    "Open MPI 4 --timestamp-output": one_console(
        lambda writer: f"Sat Nov 21 03:07:{10 + writer.rank} 2026[1,{writer.rank}]<stderr>:"
    ),
    "PRRTE tag": one_console(lambda writer: f"[prterun-node0-77@1,{writer.rank}]<stderr>: "),
    "PRRTE tag with a number": one_console(lambda writer: f"[1,{writer.rank}]<stderr>: "),
    "PRRTE tag-detailed": one_console(lambda writer: f"[1,{writer.rank}][{writer.host}:{writer.pid}]<stderr>: "),
    "PRRTE rank": one_console(lambda writer: f"[{writer.rank}]<stderr>: "),
    "PRRTE timestamp": one_console(lambda writer: f"[Sat Nov 21 03:07:10 2026][1,{writer.rank}]<stderr>: "),
    "MPICH -prepend-rank": one_console(lambda writer: f"[{writer.rank}] "),
    "PALS": one_console(lambda writer: f"x3005c0s13b{writer.node}n0 {writer.rank}: "),
    "pdsh": one_console(lambda writer: f"{writer.host}: ", tag=True),
    "DeepSpeed's runner and launcher": one_console(lambda writer: f"{writer.host}: ", tag=True),
    "DeepSpeed --enable_each_rank_log": file_per_rank(lambda writer: f"logs/1700000000_rank{writer.rank}.log"),
    "Lightning": one_console(lambda writer: f"[rank: {writer.rank}] "),
    "NeMo-Run": one_console(lambda writer: f"i.pretrain/0 [default{writer.rank}]:[rank{writer.rank}]: "),
    "torchx, two replicas": one_console(lambda writer: f"trainer/{writer.node} ", tag=True),
    "Ray": nccl_files(),
    "vLLM": one_console(lambda writer: f"(VllmWorker rank={writer.rank} pid={writer.pid}) "),
    "kubectl --prefix": one_console(lambda writer: f"[pod/train-worker-{writer.node}/pytorch] ", tag=True),
    "stern": one_console(lambda writer: f"train-worker-{writer.node} pytorch ", tag=True),
    "CRI": map_lines(TAGGED, lambda line, number: f"2026-11-21T03:07:{number % 60:02}.372001123Z stderr F {line}"),
    "Docker json-file": map_lines(TAGGED, docker_line),
    "docker compose": one_console(lambda writer: f"trainer-{writer.node}  | ", tag=True),
    "docker compose, a container a rank": one_console(lambda writer: f"trainer-{writer.rank}  | [rank{writer.rank}]: "),
    "journald JSON": journal_file(False),
    "journald export": journal_file(True),
    "CloudWatch export": {name: with_stamps_behind(lines) for name, lines in TAGGED.items()},
    "CI line counter": {name: with_line_counter(lines) for name, lines in TAGGED.items()},
    "GitHub Actions": map_lines(TAGGED, lambda line, number: f"2026-11-21T03:07:{number % 60:02}.3720011Z {line}"),
    "rank in the file name": file_per_rank(lambda writer: f"rank_{writer.rank}.log"),
    "rank in the folder": file_per_rank(lambda writer: f"{writer.host}/rank{writer.rank}/train.log"),
    "local rank in the file name": {
        f"{writer.host}/local_rank_{writer.local}.log": [nccl_init_line(writer), *writer.output()] for writer in WRITERS
    },
    "logger with the rank": one_console(lambda writer: f"2026-11-21 03:07:10,123 [rank{writer.rank}] ERROR trainer: "),
}


def write_files(files: Files, directory: Path) -> Path:
    for name, lines in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return directory


@pytest.mark.parametrize("layout", JOBS)
def test_the_failed_rank_is_named(layout: str, tmp_path: Path) -> None:
    """Signature and rank of the root cause do not depend on the launcher."""
    files = triage.ingest([str(write_files(JOBS[layout], tmp_path))])
    root = files.root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("cuda.out-of-memory", (FAILED_RANK,))


# Layouts in which only tracebacks name their rank, or lines name only their node.
UNATTRIBUTED = {
    *("[rankN]: of the excepthook", "torchrun --role rank", "srun --label of a het job, tags", "pdsh"),
    *("DeepSpeed's runner and launcher", "torchx, two replicas", "kubectl --prefix", "stern", "CRI"),
    *("Docker json-file", "docker compose", "CloudWatch export", "CI line counter", "GitHub Actions"),
    *("glog of torch 2.1", "glog of torch 2.3", "glog of torch 2.4", "journald JSON", "journald export"),
    "torchrun log directories of two nodes",
}


@pytest.mark.parametrize("layout", JOBS)
def test_split_gives_every_rank_its_output(layout: str, tmp_path: Path) -> None:
    """The file of a rank has all of its output in order if the layout names it, and never a line of another rank.

    No line is lost.
    """
    result = split([str(write_files(JOBS[layout], tmp_path / "in"))], tmp_path / "out", Options(workers=1))
    assert result.lines == sum(file.lines for file in result.files) + result.left_out - result.added
    files = {
        file.rank: (tmp_path / "out" / file.name).read_text().splitlines()
        for file in result.files
        if file.rank is not None
    }
    for rank, lines in files.items():
        assert {line.rpartition(" ")[2] for line in lines if " on shard " in line} <= {str(rank)}
    if layout in UNATTRIBUTED:
        return
    for writer in WRITERS:
        lines = [line for line in files[writer.rank] if "NCCL INFO" not in line and "world_size" not in line]
        expected = JOBS[layout].get(f"none_k2j/attempt_0/{writer.rank}/stderr.log", []) + writer.output()
        assert len(lines) == len(expected)
        assert all(line.endswith(text) for line, text in zip(lines, expected, strict=True))


def test_a_container_whose_lines_state_one_rank_is_of_that_rank(tmp_path: Path) -> None:
    """`trainer-3  | step 2 | rank 2` places what the container prints without a rank; its number places nothing."""
    steps = [f"trainer-{rank + 1}  | step {step} | {{}} {rank} | loss 1.9" for step in range(4) for rank in range(4)]
    crash = ["trainer-3  | Fatal Python error: Segmentation fault", "trainer-3  | ", "trainer-3 exited with code 139"]
    for tag, ranks in (("rank", (2,)), ("part", ())):
        log = tmp_path / tag / "compose.log"
        log.parent.mkdir()
        log.write_text("".join(f"{line.format(tag)}\n" for line in [*steps, *crash]))
        root = triage.ingest(log.parent).root_cause
        assert root is not None
        assert (root.signature, root.ranks, root.hosts) == ("crash.segfault", ranks, ("trainer-3",))
