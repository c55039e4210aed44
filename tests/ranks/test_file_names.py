"""triage.ranks.file_names"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.model.evidence import Origin
from triage.ranks.file_names import FILE_NAMINGS, FileNaming, find_root, is_process_snapshot, parse_file_name

CASES = {
    "gpu0.log": Origin(),
    "worker_0.log": Origin(),
    "worker-0.log": Origin(),
    "gpu0/train.log": Origin(),
    "slurm-123_4.out": Origin(),
    "nccl.node1.412": Origin(host="node1", pid=412),
    "nccl_rank_3.log": Origin(rank=3),
    "nccl_trace_rank_12": Origin(rank=12),
    "1/rank.0/stdout": Origin(rank=0, stream="stdout"),
    "default_train-worker-0_0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0/pytorch/1.log": Origin(
        host="train-worker-0", attempt=1
    ),
    "attempt_0/3/stderr.log": Origin(local_rank=3, stream="stderr"),
    "logs/none_k2j/attempt_2/11/stdout.log": Origin(local_rank=11, stream="stdout", attempt=2),
    "node3/attempt_0/2/stderr.log": Origin(local_rank=2, host="node3", stream="stderr"),
    "attempt_1/2/error.json": Origin(local_rank=2, attempt=1),
    "job.tar.gz!/node-02/rank_7.log": Origin(rank=7, host="node-02"),
    "rank_12.log": Origin(rank=12),
    "node3.log.gz": Origin(host="node3"),
    "node1/dmesg.txt.xz": Origin(host="node1"),
    "rank12.log": Origin(rank=12),
    "rank-3.err": Origin(rank=3),
    "logs/train_rank0.log": Origin(rank=0),
    "job_rank5.log": Origin(rank=5),
    "RANK_4.txt": Origin(rank=4),
    "global_rank_6.log": Origin(rank=6),
    "rank1/worker_rank3.log": Origin(rank=3),
    "host1/rank9/out.log": Origin(rank=9, host="host1"),
    "local_rank_2.log": Origin(local_rank=2),
    "localrank2.log": Origin(local_rank=2),
    "local-rank-2.log": Origin(local_rank=2),
    "node1/local_rank_0_rank_8.log": Origin(rank=8, local_rank=0, host="node1"),
    "gpu-node-17.log": Origin(),
    "nid004123.out": Origin(host="nid004123"),
    "slurm-4711.out": Origin(),
    "train.log": Origin(),
    "-": Origin(),
    "frank3.log": Origin(),
    "rank1024x768.png": Origin(),
    "ranks.log": Origin(),
    "ranking_5.log": Origin(),
    "lora_rank_64/train.log": Origin(),
    "low-rank-8/train.log": Origin(),
    "epoch_5.log": Origin(),
    "proc3.log": Origin(),  # two processes may have been started with one rank
    "attempt_3.log": Origin(attempt=3),
    "dmesg-ip-10-0-3-4.ec2.internal.log": Origin(host="ip-10-0-3-4.ec2.internal"),
    "dmesg-sft-run-17-worker-0.log": Origin(host="sft-run-17-worker-0"),
    "ce43b45cca96/dmesg.txt.xz": Origin(host="ce43b45cca96"),
    "job.tar.gz!/a100-05/var/log/kern.log": Origin(host="a100-05"),
    "dmesg-iso.log.1": Origin(),
    "dmesg-5.15.0.log": Origin(),
    "dmesg-20260610T12.log": Origin(),
    "kernel/6.log": Origin(),
    "10.0.0.2/log/run/plog/plog-412_20250619174241117.log": Origin(host="10.0.0.2", pid=412),
    "8.0.0.100/train.log": Origin(),
    "1.12.0.7.1/train.log": Origin(),
    "run-17/dmesg.txt": Origin(),
    "2026-06-10/journalctl-k.log": Origin(),
    "logs/dmesg.txt": Origin(),
    f"worker-{'0a' * 28}-01000000-412.err.json": Origin(pid=412),
    f"worker-{'0a' * 28}-01000000-412.err.yaml": Origin(),
    "pyspy-gpu-004-412.txt": Origin(host="gpu-004", pid=412),
    "py-spy_dump_node1.cluster.local_412.txt": Origin(host="node1.cluster.local", pid=412),
    "stacks-gpu-12.txt": Origin(),
    "pyspy_rank_12.txt": Origin(rank=12),
    "stack-2026-06-10.txt": Origin(),
    "var/log/kern.log.1": Origin(),
    "k8s/syslog": Origin(),
}


@pytest.mark.parametrize(("name", "origin"), CASES.items(), ids=CASES)
def test_paths_are_parsed(name: str, origin: Origin) -> None:
    """Layouts of launchers and common names are parsed; what a path does not say is None."""
    assert parse_file_name(name) == origin


@given(st.integers(0, 9999), st.integers(0, 15), st.integers(0, 9), st.sampled_from(["stdout", "stderr"]))
def test_torchruns_log_directory_is_parsed_anywhere_in_a_path(node: int, local: int, attempt: int, stream: str) -> None:
    """`<node>/<run>/attempt_<n>/<local rank>/<stream>.log`, also inside an archive."""
    for start in ("", "/data/jobs/", "logs.tar.gz!/"):
        origin = parse_file_name(f"{start}node{node}/run_x1/attempt_{attempt}/{local}/{stream}.log")
        assert origin == Origin(local_rank=local, host=f"node{node}", stream=stream, attempt=attempt)


@given(st.text(max_size=50))
def test_any_name_can_be_parsed(name: str) -> None:
    """No name raises, and no part is 0 that the name does not state."""
    origin = parse_file_name(name)
    assert origin.rank is None or str(origin.rank).isdigit()
    if not any(letter.isdigit() for letter in name):
        assert origin == Origin()


@pytest.mark.parametrize("naming", FILE_NAMINGS, ids=lambda naming: naming.name)
def test_the_samples_of_a_naming_are_parsed(naming: FileNaming) -> None:
    """Each sample matches its naming, and its parts are in the origin."""
    assert naming.samples
    for sample in naming.samples:
        match = naming.pattern.search(sample)
        assert match
        origin = parse_file_name(f"logs/{sample}")
        for key, value in match.groupdict().items():
            assert (
                value is None
                or key in ("job", "task")
                or str(getattr(origin, key)) == value.lstrip("0")
                or getattr(origin, key) in (value, 0)
            )


def test_snapshots_of_a_process_are_detected() -> None:
    """By common file names, and a `/proc/PID/status` by its first lines."""
    assert all(
        is_process_snapshot(name, b"x")
        for name in ("node1/rank3.procstatus.txt", "rank_2_status.txt", "processes/412/files.txt", "rank1.lsof.txt")
    )
    assert is_process_snapshot("rank3.txt", b"Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\n")
    assert not any(
        is_process_snapshot(name, b"Name: step 3\n")
        for name in ("rank3.txt", "stdout.txt", "status.log", "status.txt", "node1/stderr.log", "laptop.txt")
    )


@pytest.mark.parametrize(
    ("paths", "names", "root"),
    [
        ([], (), ""),
        (["/data/a", "logs/b"], (), ""),
        (["logs/a", "/data/b"], (), ""),
        (["/data/job/a", "/data/job/b"], (), "/data/job"),
        (["./logs/"], (), "./logs"),
        (["logs/rank_3.log"], ("logs/rank_3.log",), "logs"),
        (["logs/rank_3"], ("logs/rank_3/out.log",), "logs/rank_3"),
    ],
)
def test_the_root_is_what_all_given_paths_share(paths: list[str], names: tuple[str, ...], root: str) -> None:
    """Nothing where one of them is absolute and another is not; the name of a given file counts."""
    assert find_root(paths, names) == root


@pytest.mark.parametrize(
    ("name", "root", "rank"),
    [
        ("/data/rank_3/job.log", "/data/rank_3", None),
        ("/data/rank_3/rank_5.log", "/data/rank_3", 5),
        ("/data/rank_3/job.log", "/other/longer/path", 3),
        ("rank_3.log", "", 3),
    ],
)
def test_a_name_within_the_root_says_nothing(name: str, root: str, rank: int | None) -> None:
    """It is that of all files."""
    assert parse_file_name(name, root).rank == rank
