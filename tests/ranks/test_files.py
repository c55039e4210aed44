"""triage.ranks.files"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.model.evidence import Origin
from triage.ranks.files import NAMINGS, Naming, is_taken, origin_of

CASES = {
    "gpu0.log": Origin(),
    "worker_0.log": Origin(),
    "worker-0.log": Origin(),
    "gpu0/train.log": Origin(),
    "slurm-123_4.out": Origin(),
    "nccl.node1.412": Origin(host="node1", pid=412),
    "nccl_rank_3.log": Origin(rank=3),
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
    "attempt_3.log": Origin(attempt=3),
}


@pytest.mark.parametrize(("name", "origin"), CASES.items(), ids=CASES)
def test_paths_tell_what_they_tell(name: str, origin: Origin) -> None:
    """Launchers' layouts and people's habits are read; what is not said is None."""
    assert origin_of(name) == origin


@given(st.integers(0, 9999), st.integers(0, 15), st.integers(0, 9), st.sampled_from(["stdout", "stderr"]))
def test_the_layout_of_elastic_is_read_below_any_directory(node: int, local: int, attempt: int, stream: str) -> None:
    """`<node>/<run>/attempt_<n>/<local rank>/<stream>.log`, in an archive or not."""
    for start in ("", "/data/jobs/", "logs.tar.gz!/"):
        origin = origin_of(f"{start}node{node}/run_x1/attempt_{attempt}/{local}/{stream}.log")
        assert origin == Origin(local_rank=local, host=f"node{node}", stream=stream, attempt=attempt)


@given(st.text(max_size=50))
def test_any_name_is_taken(name: str) -> None:
    """No name makes it fail, and nothing is 0 that the name does not say."""
    origin = origin_of(name)
    assert origin.rank is None or str(origin.rank).isdigit()
    if not any(letter.isdigit() for letter in name):
        assert origin == Origin()


@pytest.mark.parametrize("naming", NAMINGS, ids=lambda naming: naming.name)
def test_the_samples_of_a_naming_are_read(naming: Naming) -> None:
    """Each sample is matched by its entry, and what it tells arrives."""
    assert naming.samples
    for sample in naming.samples:
        match = naming.pattern.search(sample)
        assert match
        origin = origin_of(f"logs/{sample}")
        for key, value in match.groupdict().items():
            assert (
                value is None
                or key == "task"
                or str(getattr(origin, key)) == value.lstrip("0")
                or getattr(origin, key) in (value, 0)
            )


def test_what_was_taken_of_a_process_is_not_what_it_wrote() -> None:
    """By the names that tools and people give it, and a status of /proc by its first lines."""
    assert all(
        is_taken(name, b"x")
        for name in ("node1/rank3.procstatus.txt", "rank_2_status.txt", "processes/412/files.txt", "rank1.lsof.txt")
    )
    assert is_taken("rank3.txt", b"Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\n")
    assert not any(
        is_taken(name, b"Name: step 3\n")
        for name in ("rank3.txt", "stdout.txt", "status.log", "node1/stderr.log", "laptop.txt")
    )
