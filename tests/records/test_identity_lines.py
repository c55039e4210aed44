"""triage.records.identity_lines"""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.layouts import PLAIN
from triage.records.identity_lines import learn_from_head, learn_from_line, learn_from_text


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("INFO hello from rank 5 of 12 (host node1)", {12}),
        ("2026-07-17 00:55:25 | rank 3 | rank 3 of 12 on gpu-128, pid 3052", {12}),
        ("process rank 3/8 is up", {8}),
        ("init done | rank=3 | world=16 | device=cuda:3", {16}),
        ("world_size: 4", {4}),
        ("batch is not micro_batch * steps * world_size 128 != 4 * 5 * 6", set()),
        ("world_size 128 == 4 * 32", set()),
        ("tp rank 3 of 8", set()),
        ("local rank 3 of 8", set()),
        ("rank 12 of 8", set()),
        ("rank 7 of 8", {8}),
        ("rank 8 of 8", set()),
        ("rank 3 of 100 % done", set()),
        ("hello world 16", set()),
    ],
)
def test_world_sizes_are_read(text: str, sizes: set[int]) -> None:
    """Lines that state how many ranks there are; the size of a group is none."""
    job = JobMap()
    learn_from_text(job, "job.log", f"first\n{text}\n")
    assert job.sizes == sizes


def test_the_table_of_an_agent_gives_its_ranks_and_the_world() -> None:
    """torchelastic prints it on each node after each rendezvous."""
    job = JobMap()
    lines = ["restart_count=1", "group_rank=1", "group_world_size=2", "local_ranks=[0, 1]", "role_ranks=[2, 3]"]
    lines += ["global_ranks=[2, 3]", "role_world_sizes=[4, 4]", "global_world_sizes=[4, 4]"]
    text = "\n  ".join(["[default] Rendezvous complete for workers. Result:", *lines])
    assert learn_from_line(job, "job.log", Origin(host="n2"), text) == "rendezvous 1"
    assert job.sizes == {4}
    assert job.by_local == {("n2", 0): {2}, ("n2", 1): {3}}


COMM = "comm 0x55 rank 3 nranks 8 cudaDev 1 busId 9b000 commId 0xab - Init {}"


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (COMM.format("COMPLETE"), "communicator 0xab"),
        (COMM.format("START"), None),
        ("comm 0x55 rank 3 nranks 8 cudaDev 1 busId 9b000 - Init COMPLETE", None),
        ("Entry-HcclCommInitRootInfoInner:ranks[8], rank[3]", None),
        ("step 3", None),
    ],
)
def test_a_communicator_is_ready_at_one_moment(text: str, event: str | None) -> None:
    """All its members print the end of its initialisation then; they are members in any case."""
    job = JobMap()
    assert learn_from_line(job, "job.log", Origin(host="n1", pid=41), text) == event
    job.resolve()
    assert job.complete("job.log", Origin(host="n1", pid=41)).rank == (3 if "rank" in text else None)


def test_a_communicator_names_the_gpu_of_a_rank() -> None:
    """Its address on the PCI bus, as the kernel writes it, gives the rank."""
    job = JobMap()
    learn_from_line(job, "job.log", Origin(host="n1", pid=41), COMM.format("START"))
    job.resolve()
    assert job.rank_of_gpu("n1", "0000:9b:00") == 3
    assert job.rank_of_gpu("n1", "0000:9c:00") is None


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("RANK=5 WORLD_SIZE=8 LOCAL_RANK=1", (1, 5)),
        ("SLURM_PROCID: 5 SLURM_LOCALID: 1", (1, 5)),
        ("LOCAL_RANK=1", None),
    ],
)
def test_the_environment_of_a_process_is_read(text: str, pair: tuple[int, int] | None) -> None:
    """Its rank and its local rank."""
    job = JobMap()
    learn_from_text(job, "job.log", text)
    assert {(local, rank) for (_, local), ranks in job.by_local.items() for rank in ranks} == (
        {pair} if pair else set()
    )


@pytest.mark.parametrize(("before", "is_read"), [(8192 - 14, True), (8192 - 12, False)])
def test_the_first_8_kib_are_searched_for_the_size(before: int, is_read: bool) -> None:
    """What processes print later is found by its literals."""
    job = JobMap()
    data = b"x" * (before - 1) + b"\n" + b"world_size: 16\n"
    learn_from_head(job, "job.log", data, PLAIN)
    assert (16 in job.sizes) is is_read


def test_lines_with_a_literal_are_read_wherever_they_stand() -> None:
    """A communicator in one line, the list of an agent in several; the last line may lack its end."""
    job = JobMap()
    agent = ["restart_count=0", "local_ranks=[0, 1]", "global_ranks=[2, 3]", "global_world_sizes=[8, 8]"]
    lines = ["x" * 9000, "Rendezvous complete for workers. Result:", *(f"  {line}" for line in agent)]
    lines += [
        "step 1",
        "n1:41:41 [0] NCCL INFO " + COMM.format("START"),
        "n1:42:42 [0] NCCL INFO " + COMM.format("COMPLETE"),
    ]
    learn_from_head(
        job,
        "job.log",
        "\n".join(lines)
        .encode()
        .replace(
            b"rank 3 nranks 8 cudaDev 1 busId 9b000 commId 0xab - Init C",
            b"rank 7 nranks 8 cudaDev 1 busId 9c000 commId 0xab - Init C",
        ),
        PLAIN,
    )
    job.resolve()
    assert job.sizes == {8}
    assert [job.complete("job.log", Origin(host="n1", pid=pid)).rank for pid in (41, 42)] == [3, 7]
    assert {2, 3, 7} <= job.ranks


def test_a_literal_may_begin_a_source() -> None:
    """The first line of a file that one process writes."""
    job = JobMap()
    learn_from_head(job, "rank_3.log", b"Entry-HcclCommInitRootInfoInner:ranks[8], rank[3]", PLAIN)
    job.resolve()
    assert job.world_size() == 8


@pytest.mark.parametrize(("numbers", "sizes"), [([2, 0, 1], {3}), ([0], set()), ([0, 2], set()), ([1, 2], set())])
def test_the_tasks_that_connected_are_the_world(numbers: list[int], sizes: set[int]) -> None:
    """The service of JAX and TensorFlow lists them; where one is missing, nobody knows how many there are."""
    job = JobMap()
    lines = [f"I 1] /job:worker/replica:0/task:{number} has connected to coordination service." for number in numbers]
    learn_from_text(job, "job.log", "\n".join(lines))
    assert job.sizes == sizes
