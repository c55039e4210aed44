"""triage.records.introductions"""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.records.introductions import LONGEST, Introduction, read_introduction


@pytest.mark.parametrize(
    "text",
    [
        "rank 3 of 8 on node1, pid 412",
        "Rank 3/8 is up on node1 (pid 412)",
        "rank 3 is on node1",
        "rank 3 running on host node1",
        "rank3@node1 ready",
        "Initializing distributed: rank: 3, world_size: 8, hostname: node1, pid: 412",
        "[init] global_rank=3 local_rank=1 host=node1 pid=412",
        "hello from rank 3 of 8 (host node1)",
        "init done | rank=3 | world=8 | node=node1 | device=cuda:1",
        "node1: global rank 3 ready, local rank 1",
        "node1: rank 3 died from signal 11",
        "[412] INFO node1: global rank 3 ready, local rank 1",
        "Group ready on host node1: RANK=3 LOCAL_RANK=1 PID=412",
        "Hello world from processor node1, rank 3 out of 8 processors",
        "SLURMD_NODENAME=node1 SLURM_PROCID=3 RANK=3",
        "prterun noticed that process rank 3 with PID 412 on node node1 exited on",
        "rank 3 on host node1: GPU 1",
    ],
)
def test_the_host_of_a_rank_is_read(text: str) -> None:
    """Free words of programs, and what launchers say of a rank."""
    assert read_introduction(Origin(), text).host == "node1"


@pytest.mark.parametrize(
    "host", ["a100-40", "f4f8d4a434b6", "8c1d2e3f4a5b", "nid001456", "n0008.hpc.example.org", "g0050"]
)
def test_forms_of_host_names(host: str) -> None:
    """Machines, containers and long names."""
    assert read_introduction(Origin(), f"rank 3 of 8 on {host}, pid 412").host == host


@pytest.mark.parametrize(
    "text",
    [
        "rank 3 on cuda:1",
        "rank 3 on gpu1",
        "rank 3 on A100",
        "rank 3 at step-100",
        "rank 3 at epoch2",
        "rank 3 is at 0x7f3a12",
        "rank 3 of 8 on 10.0.0.7",
        "rank 3: connecting to host=node1",
        "rank 3 waiting for the store on node node1",
        "rank 3: master host: node1",
        "rank=3 host=node1 remote host=node2",
        "rank 3 MASTER_ADDR=node1",
        "rank 3 uses host=node1:29500",
        "rank 3 lost node node2",
        "rank 3 on host memory",
        "on host node1 all is well",
    ],
)
def test_other_words_are_no_host_of_the_rank(text: str) -> None:
    """Devices, counters, addresses, and hosts of others; a line without a rank introduces none."""
    assert read_introduction(Origin(), text) == Introduction()


def test_a_rank_in_the_prefix_introduces_itself_too() -> None:
    """The line need not repeat it."""
    assert read_introduction(Origin(rank=3), "started, hostname: node1").host == "node1"


def test_tables_of_launchers_name_rank_pid_and_host() -> None:
    """Intel MPI's list at the start, its end, hydra's end, and the bindings of Open MPI."""
    assert read_introduction(Origin(), "MPI startup(): 3       412   node1      {0,1,2}") == Introduction(
        "node1", 3, 412
    )
    assert read_introduction(Origin(), "=   RANK 3 PID 412 RUNNING AT node1") == Introduction("node1", 3, 412)
    assert read_introduction(Origin(), "=   PID 412 RUNNING AT node1") == Introduction("node1", None, 412)
    assert read_introduction(Origin(host="node1"), "MCW rank 3 bound to socket 0[core 0]") == Introduction("node1", 3)


def test_only_the_start_of_a_long_line_is_read() -> None:
    """An introduction within the limit counts, one behind it does not."""
    introduction = "rank 3 of 8 on node1"
    assert read_introduction(Origin(), ("x " * LONGEST)[: LONGEST - len(introduction)] + introduction).host == "node1"
    assert not read_introduction(Origin(), ("x " * LONGEST)[: LONGEST - len(introduction) + 1] + introduction).host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("rank 3 on gpu-070", "gpu-070"),
        ("rank 3 on gpu114", "gpu114"),
        ("rank 3 on gpu12", ""),
        ("rank 3 on gpu-1.cluster.local", "gpu-1.cluster.local"),
        ("rank=3 | node=gpu-7 | device=cuda:1", "gpu-7"),
        ("rank=3 | node=gpu", ""),
        ("rank=3 host=gpu:3", ""),
    ],
)
def test_hosts_may_be_called_after_their_gpus(text: str, host: str) -> None:
    """Devices have one or two digits and no zero before them; what is called a host has any number."""
    assert read_introduction(Origin(), text).host == host


def test_an_introduction_stands_behind_the_name_of_a_logger() -> None:
    """Only where it goes on as one: the name of a module may have a digit too."""
    assert (
        read_introduction(Origin(), "INFO trainer: pool-x7k47: global rank 4 ready, local rank 1").host == "pool-x7k47"
    )
    assert read_introduction(Origin(), "INFO trainer: llama3: rank 4 ready").host == ""
