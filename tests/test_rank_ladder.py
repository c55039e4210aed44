"""Every step that places a failure on its rank, through whole jobs; and where no step may."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from triage.model.diagnosis import Diagnosis

TRACE = [
    "Traceback (most recent call last):",
    '  File "/w/train.py", line 3, in step',
    "    x()",
    "ValueError: no tokens",
]
LOCAL_STEPS = [f"[default{local}]:step 1" for local in range(4)]
WORLD = ["world_size=8"]


def tagged(prefix: str) -> list[str]:
    """Return the traceback behind a prefix."""
    return [prefix + line for line in TRACE]


def table(rank: int, local: int, host: str) -> list[str]:
    """Return torchelastic's table of one failed process."""
    head = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    place = [f"  host      : {host}", f"  rank      : {rank} (local_rank: {local})", "  exitcode  : 1 (pid: 4711) "]
    first = ["Root Cause (first observed failure):", "[0]:", "  time      : 2026-11-22_06:31:44"]
    rest = ["  error_file: <N/A>", "  traceback : To enable traceback see: https://pytorch.org", "====="]
    return [head, "=====", "train.py FAILED", "-----", *first, *place, *rest]


def rendezvous(first: int, local: int) -> list[str]:
    """Return what an agent prints when its workers have their ranks."""
    ranks = ", ".join(str(first + number) for number in range(local))
    head = "I1121 03:07:45.000000 77 api.py:1] [default] Rendezvous complete for workers. Result:"
    locals_ = ", ".join(map(str, range(local)))
    return [
        head,
        "  restart_count=0",
        f"  local_ranks=[{locals_}]",
        f"  role_ranks=[{ranks}]",
        f"  global_ranks=[{ranks}]",
    ]


def init(rank: int, pid: int) -> str:
    """Return NCCL's line of a member of the communicator of four ranks."""
    return (
        f"node1:{pid}:{pid} [0] NCCL INFO ncclCommInitRank comm 0xa rank {rank} nranks 4 cudaDev 0 nvmlDev 0 "
        f"busId {rank + 1}a000 commId 0x7 - Init START"
    )


def ingest(directory: Path, files: dict[str, list[str]]) -> Diagnosis:
    """Diagnose a job with these files."""
    for name, lines in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return triage.ingest(directory)


def root_ranks(diagnosis: Diagnosis) -> tuple[int, ...]:
    """Return the ranks on which the failure began."""
    assert diagnosis.root_cause is not None
    return diagnosis.root_cause.ranks


DIED = "RuntimeError: worker process (pid 413) died"
ENDED = ["srun: error: node1: task 1: Exited with exit code 1", "srun: error: node1: task 0: Terminated"]
PLACED: dict[str, tuple[dict[str, list[str]], tuple[int, ...]]] = {
    "tag in the text": ({"a.log": ["step 1", "Rank[2] ERROR: ValueError: no tokens"]}, (2,)),
    "key and value": ({"a.log": ["step 1", "ValueError: no tokens (world_rank=1)"]}, (1,)),
    "several ranks": ({"a.log": ["step 1", "RuntimeError: bad shards on ranks 3-5"]}, (3, 4, 5)),
    "keys of a dict": ({"a.log": ["step 1", "RuntimeError: save failed on ranks dict_keys([9])"]}, (9,)),
    "heading above": ({"a.log": ["step 1", "[Rank 1 Error Snippet]:", *TRACE]}, (1,)),
    "device": (
        {
            "a.log": [
                *WORLD,
                *TRACE[:3],
                "torch.OutOfMemoryError: CUDA out of memory. GPU 5 has a total capacity of 80 GiB",
            ]
        },
        (5,),
    ),
    "process of a spawn": (
        {"a.log": [*TRACE[:3], "ProcessExitedException: process 1 terminated with exit code 7"]},
        (1,),
    ),
    "pid of a Ray tag": ({"a.log": ["(Worker pid=413) [Rank 3] started", *tagged("(Worker pid=413) ")]}, (3,)),
    "pid of a Ray table": (
        {
            "a.log": [
                "(TrainController pid=21) - (ip=10.0.0.1, pid=412) world_rank=0, local_rank=0, node_rank=0",
                "(TrainController pid=21) - (ip=10.0.0.1, pid=413) world_rank=1, local_rank=1, node_rank=0",
                *tagged("(RayTrainWorker pid=413) "),
            ]
        },
        (1,),
    ),
    "pid of a communicator": ({"a.log": [*(init(rank, 410 + rank) for rank in range(4)), "step 1", DIED]}, (3,)),
    "pid of a list of processes": (
        {"ps.txt": ["root 413 0.0 python -u train.py --local_rank=3"], "a.log": [*LOCAL_STEPS, DIED]},
        (3,),
    ),
    "pid of a log line": ({"a.log": ["process 412 is rank 2", "process 413 is rank 3", "step 2", DIED]}, (3,)),
    "table of an agent": ({"a.log": [*tagged("[default3]:"), *table(19, 3, "node5")]}, (19,)),
    "rendezvous": (
        {"n0.log": [*rendezvous(0, 4), *LOCAL_STEPS], "n1.log": [*rendezvous(4, 4), *tagged("[default3]:")]},
        (7,),
    ),
    "world of DeepSpeed": (
        {
            "a.log": [
                *(
                    f"node{n}: x global_rank_mapping=defaultdict(list, {{'node1': [0, 1], 'node2': [2, 3]}})"
                    for n in (1, 2)
                ),
                *("node1: step 1", "node2: step 1", "node1: step 2", "node2: step 2"),
                *tagged("node2: ")[:3],
                "node2: ValueError: no tokens on local_rank=1",
            ]
        },
        (3,),
    ),
    "command with a node rank": (
        {
            f"n{node}.log": [*WORLD, f"+ torchrun --nnodes 2 --node_rank {node} --nproc_per_node 4 train.py", *lines]
            for node, lines in enumerate((LOCAL_STEPS, tagged("[default3]:")))
        },
        (7,),
    ),
    "numbered directories": (
        {f"node_{node}/out.log": [*WORLD, *LOCAL_STEPS, *(tagged("[default3]:") if node else [])] for node in (0, 1)},
        (7,),
    ),
    "once for each rank": ({"a.log": ["world_size=2", *TRACE, *TRACE, *ENDED]}, (0, 1)),
}
NOT_PLACED: dict[str, dict[str, list[str]]] = {
    "once more than ranks": {"a.log": ["world_size=2", *TRACE, *TRACE, *TRACE, *ENDED]},
    "a peer": {"a.log": ["step 1", "RuntimeError: timed out receiving tensor from rank 13"]},
    "two in the same role": {"a.log": ["step 1", "RuntimeError: size mismatch: got rank=2 and rank=3"]},
    "beyond the world": {"a.log": [*WORLD, "step 1", "RuntimeError: bad shard on rank 9"]},
    "device 0": {
        "a.log": [*WORLD, *TRACE[:3], "RuntimeError: CUDA out of memory. GPU 0 has a total capacity of 80 GiB"]
    },
    "device of many nodes": {
        "a.log": ["world_size=64", *TRACE[:3], "RuntimeError: CUDA out of memory. GPU 5 has a total capacity of 80 GiB"]
    },
    "one of several nodes": {"node_1/out.log": [*WORLD, *LOCAL_STEPS, *tagged("[default3]:")]},
    "node rank without sizes": {"a.log": ["+ accelerate launch --machine_rank 1 train.py", *tagged("[default3]:")]},
    "one file of two agents": {
        "a.log": [*WORLD, "+ torchrun --nnodes 2 --node_rank 0 --nproc_per_node 4 t.py", *tagged("[default3]:")]
    },
}


@pytest.mark.parametrize("name", PLACED)
def test_each_step_places_a_failure(name: str, tmp_path: Path) -> None:
    """The files tell the rank, whatever they say it with."""
    files, ranks = PLACED[name]
    assert root_ranks(ingest(tmp_path, files)) == ranks


@pytest.mark.parametrize("name", NOT_PLACED)
def test_no_rank_is_guessed(name: str, tmp_path: Path) -> None:
    """A wrong rank is worse than none."""
    assert root_ranks(ingest(tmp_path, NOT_PLACED[name])) == ()


def test_the_report_says_which_step_decided(tmp_path: Path) -> None:
    """Not where the prefix of the line has the rank."""
    files = {"a.log": [*(init(rank, 410 + rank) for rank in range(4)), "step 1", DIED]}
    root = ingest(tmp_path / "pid", files).root_cause
    own = ingest(tmp_path / "own", {"a.log": tagged("[rank3]: ")}).root_cause
    assert root is not None
    assert own is not None
    assert "Rank 3: a pid in the text belongs to it" in root.why
    assert not [line for line in own.why if line.startswith("Rank 3:")]


@pytest.mark.parametrize("name", ["exp_rank8", "lora-rank-8", "node3/rank_8"])
def test_names_above_the_given_path_say_nothing(name: str, tmp_path: Path) -> None:
    """The directory of an experiment is no rank and no host; the same name below is one."""
    above = ingest(tmp_path / name / "job", {"job.log": TRACE})
    assert (root_ranks(above), above.job.ranks, above.job.hosts) == ((), (), {})
    assert root_ranks(ingest(tmp_path / "below", {f"rank_{rank}/job.log": TRACE[rank:] for rank in (0, 1)}))


def test_a_file_name_alone_does_not_enlarge_the_world(tmp_path: Path) -> None:
    """`exp_rank8.log` in a job of two ranks is dropped with a warning; `rank_8.log` among its siblings is rank 8."""
    lone = ingest(tmp_path / "lone", {"exp_rank8.log": ["world_size=2", *TRACE, *table(1, 1, "localhost")]})
    assert (root_ranks(lone), lone.job.ranks) == ((1,), (1,))
    assert "identity-conflict" in {warning.code for warning in lone.warnings}
    refuted = ingest(tmp_path / "refuted", {"exp_rank8.log": [*TRACE, *table(1, 1, "localhost")]})
    assert (root_ranks(refuted), refuted.job.ranks) == ((1,), (1,))
    siblings = {f"rank_{rank}.log": ["rank=0 ready"] if not rank else ["step 1"] for rank in range(9)}
    siblings["rank_8.log"] = TRACE
    assert root_ranks(ingest(tmp_path / "siblings", siblings)) == (8,)


def test_a_tag_that_contradicts_a_file_name_decides_with_a_warning(tmp_path: Path) -> None:
    """The text of the line is more direct than the name of its file."""
    diagnosis = ingest(tmp_path, {"rank_5.log": ["step 1", "[Rank 3] ERROR: ValueError: no tokens"]})
    assert root_ranks(diagnosis) == (3,)
    assert [
        warning for warning in diagnosis.warnings if "names rank 3, but its file name says rank 5" in warning.message
    ]
