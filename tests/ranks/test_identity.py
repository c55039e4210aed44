"""triage.ranks.identity"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.model.evidence import Origin
from triage.ranks.conflicts import find_conflicts
from triage.ranks.identity import CommunicatorMember, JobMap

OPTIONAL = st.one_of(st.none(), st.integers(0, 3))
SOURCES = st.sampled_from(
    [
        "train.log",
        "rank_2.log",
        "node1/attempt_0/1/stderr.log",
        "node2/attempt_0/1/stderr.log",
        "a/attempt_0/0/stdout.log",
        "b/attempt_0/0/stdout.log",
    ]
)
ORIGINS = st.builds(
    Origin,
    rank=OPTIONAL,
    local_rank=OPTIONAL,
    host=st.sampled_from([None, "node1", "node2"]),
    pid=st.one_of(st.none(), st.integers(40, 42)),
)
LINES = st.lists(st.tuples(SOURCES, ORIGINS), max_size=12)


def job_of(*lines: tuple[str, Origin]) -> JobMap:
    """Return a job map that has learned these lines."""
    job = JobMap()
    for source, origin in lines:
        job.learn(source, origin)
    return job


def test_a_pid_with_a_rank_gives_the_rank() -> None:
    """NCCL's lines name pids; a line with pid and rank connects them."""
    job = job_of(("job.log", Origin(pid=41, rank=3)))
    assert job.complete("job.log", Origin(pid=41)).rank == 3
    assert job.complete("job.log", Origin(pid=42)).rank is None


def test_a_pid_of_two_hosts_gives_no_rank() -> None:
    """A pid with two ranks is ambiguous."""
    job = job_of(("job.log", Origin(pid=41, rank=3)), ("job.log", Origin(pid=41, rank=0)))
    assert job.complete("job.log", Origin(pid=41)).rank is None


def test_a_local_rank_of_a_host_gives_the_rank() -> None:
    """`[default1]` on node2 is rank 9 once a line states it; on node1 it is another rank."""
    job = job_of(("x", Origin(rank=9, local_rank=1, host="node2")), ("x", Origin(rank=1, local_rank=1, host="node1")))
    assert job.complete("x", Origin(local_rank=1, host="node2")).rank == 9
    assert job.complete("x", Origin(local_rank=1, host="node1")).rank == 1
    assert job.complete("x", Origin(local_rank=1)).rank is None
    assert job.complete("x", Origin(local_rank=0, host="node2")).rank is None


def test_the_name_of_a_file_gives_the_rank() -> None:
    """The rank in a line overrides the rank in the file name."""
    job = job_of(("rank_5.log", Origin()))
    assert job.complete("rank_5.log", Origin()).rank == 5
    assert job.complete("rank_5.log", Origin(rank=6)).rank == 6
    assert job.ranks == {5}


def test_a_file_of_one_process_gives_the_rank_that_it_names_elsewhere() -> None:
    """In torchrun's directory of one worker, one line with a rank decides for the others."""
    job = job_of(("node2/attempt_0/1/stderr.log", Origin(rank=9)), ("node1/attempt_0/1/stderr.log", Origin(rank=1)))
    assert job.complete("node2/attempt_0/1/stdout.log", Origin()).rank == 9
    assert job.complete("node2/attempt_0/1/stderr.log", Origin()).host == "node2"


def test_on_one_host_local_ranks_are_global_ranks() -> None:
    """The only convention: a single host, and no line that contradicts it."""
    job = job_of(("node1/attempt_0/1/stderr.log", Origin()))
    assert job.is_one_host()
    completed = job.complete("node1/attempt_0/1/stderr.log", Origin())
    assert (completed.rank, completed.local_rank, completed.stream) == (1, 1, "stderr")


def test_on_two_hosts_local_ranks_are_not_global_ranks() -> None:
    """Local rank 0 of two hosts is not rank 0 twice."""
    job = job_of(("node1/attempt_0/0/stderr.log", Origin()), ("node2/attempt_0/0/stderr.log", Origin()))
    assert not job.is_one_host()
    assert job.complete("node2/attempt_0/0/stderr.log", Origin()).rank is None


def test_two_run_directories_count_as_two_hosts() -> None:
    """Every agent of a job on several nodes makes its own directory on the shared disk."""
    one, two = "logs/none_a1b2/attempt_0/0/stderr.log", "logs/none_c3d4/attempt_0/0/stderr.log"
    job = job_of((one, Origin()), (two, Origin()))
    assert not job.is_one_host()
    assert job.complete(one, Origin()).rank is None
    job.learn(one, Origin(rank=0))
    assert job.complete(one, Origin()).rank == 0
    assert job.complete(two, Origin()).rank is None


def test_the_attempts_of_one_run_are_one_host() -> None:
    """A restarted worker group stays on its host."""
    job = job_of(
        ("logs/none_a1b2/attempt_0/2/stderr.log", Origin()), ("logs/none_a1b2/attempt_1/2/stderr.log", Origin())
    )
    assert job.is_one_host()
    completed = job.complete("logs/none_a1b2/attempt_1/2/stderr.log", Origin())
    assert (completed.rank, completed.attempt) == (2, 1)


def test_local_ranks_are_not_global_ranks_if_one_pair_differs() -> None:
    """If local rank 1 is rank 9, local rank 0 is not rank 0. Other nodes may also have a local rank 1."""
    job = job_of(("job.log", Origin(rank=9, local_rank=1)))
    assert job.complete("job.log", Origin(local_rank=0)).rank is None
    assert job.complete("job.log", Origin(local_rank=1)).rank is None


def test_a_file_of_one_node_gives_its_ranks() -> None:
    """Several pairs with the same distance are of one node. Each file without a host counts by itself."""
    job = job_of(
        *(("a.log", Origin(rank=8 + local, local_rank=local)) for local in range(2)),
        ("b.log", Origin(rank=0, local_rank=0)),
    )
    assert job.complete("a.log", Origin(local_rank=1)).rank == 9
    assert job.complete("a.log", Origin(local_rank=3)).rank is None
    assert job.complete("b.log", Origin(local_rank=1)).rank is None


def test_the_host_of_a_rank_is_added() -> None:
    """If all lines with the rank's host name the same one."""
    job = job_of(
        ("x", Origin(rank=3, host="node1")), ("x", Origin(rank=4, host="node1")), ("x", Origin(rank=4, host="node2"))
    )
    assert job.complete("x", Origin(rank=3)).host == "node1"
    assert job.complete("x", Origin(rank=4)).host is None
    assert job.ranks_by_host() == {"node1": (3, 4), "node2": (4,)}


def test_world_size_is_stated_or_derived() -> None:
    """It is the largest stated size, or more for a higher rank; else the number of ranks, if none is missing."""
    assert JobMap().world_size() is None
    job = job_of(("x", Origin(rank=3)))
    assert (job.world_size(), job.missing_ranks()) == (None, ())
    assert job_of(("x", Origin(rank=0)), ("x", Origin(rank=1))).world_size() == 2
    job.sizes.add(2)
    assert (job.world_size(), job.missing_ranks()) == (4, (0, 1, 2))
    job.sizes.add(16)
    assert job.world_size() == 16


@pytest.mark.parametrize(("silent", "size"), [({1}, 4), ({2}, None), (set(), None)])
def test_a_rank_that_is_silent_between_others_is_of_the_world(silent: set[int], size: int | None) -> None:
    """Ranks have no gaps: it is missing only if it cannot have written elsewhere."""
    job = job_of(*(("x", Origin(rank=rank)) for rank in (0, 2, 3)))
    job.silent_ranks |= silent
    assert (job.world_size(), job.missing_ranks()) == (size, (1,) if size else ())


@given(LINES, SOURCES, ORIGINS)
def test_completing_adds_and_never_changes(lines: list[tuple[str, Origin]], source: str, origin: Origin) -> None:
    """What a line states stays, and completing twice changes nothing."""
    job = job_of(*lines)
    completed = job.complete(source, origin)
    for name in ("rank", "local_rank", "host", "pid", "stream", "time"):
        if getattr(origin, name) is not None:
            assert getattr(completed, name) == getattr(origin, name)
    assert job.complete(source, origin) == completed


@given(LINES, SOURCES, ORIGINS)
def test_the_order_of_lines_does_not_matter(lines: list[tuple[str, Origin]], source: str, origin: Origin) -> None:
    """The maps are sets, so the order of the files does not matter."""
    assert job_of(*lines).complete(source, origin) == job_of(*lines[::-1]).complete(source, origin)


@given(LINES, SOURCES, ORIGINS)
def test_a_rank_is_never_invented(lines: list[tuple[str, Origin]], source: str, origin: Origin) -> None:
    """A rank comes from a line, from a file name, or from the local rank by the convention."""
    job = job_of(*lines)
    completed = job.complete(source, origin)
    if completed.rank is not None:
        assert completed.rank in {origin.rank, *job.ranks, 2 if source == "rank_2.log" else None} or (
            job.is_one_host() and completed.rank == completed.local_rank
        )


def test_members_count_in_the_communicator_of_all_ranks() -> None:
    """Smaller communicators number their own members, whatever the order of the lines."""
    members = [
        CommunicatorMember("x", Origin(pid=41, host="n1"), 3, 4),
        CommunicatorMember("x", Origin(pid=41, host="n1"), 1, 2),
        CommunicatorMember("x", Origin(pid=42), 0, 2),
    ]
    for order in (members, members[::-1]):
        job = JobMap()
        for member in order:
            job.learn_member(member)
        job.resolve()
        assert job.complete("x", Origin(pid=41)).rank == 3
        assert job.complete("x", Origin(pid=42)).rank is None
        assert (job.ranks, job.world_size()) == ({3}, 4)


def test_members_of_a_smaller_communicator_are_ignored() -> None:
    """If the world is larger than every known communicator, none has global ranks."""
    job = JobMap()
    job.sizes.add(8)
    job.learn_member(CommunicatorMember("x", Origin(pid=41), 1, 2))
    job.resolve()
    assert (job.ranks, job.missing_ranks()) == (set(), tuple(range(8)))


def test_ranks_from_local_ranks_are_known() -> None:
    """On one host, local ranks in prefixes are ranks of the job."""
    job = job_of(("console.log", Origin(local_rank=0)), ("console.log", Origin(local_rank=2)))
    job.resolve()
    assert job.ranks == {0, 2}


def test_tasks_are_ranks_where_there_is_a_file_for_each() -> None:
    """`slurm-123_4.out` may be of an array job: the numbers are ranks if there are as many files as the world size."""
    job = job_of(*((f"slurm-123_{task}.{end}", Origin()) for task in range(3) for end in ("out", "err")))
    assert job.complete("slurm-123_2.err", Origin()).rank is None
    job.sizes.add(3)
    job.resolve()
    assert [job.complete(f"slurm-123_2.{end}", Origin()).rank for end in ("out", "err")] == [2, 2]
    array = job_of(*((f"slurm-123_{task}.out", Origin()) for task in (1, 2)))
    array.sizes.add(2)
    array.resolve()
    assert array.complete("slurm-123_1.out", Origin()).rank is None


def test_local_ranks_that_files_name_are_ranks_of_one_host() -> None:
    """Also if no line states anything."""
    job = job_of(("attempt_0/0/stderr.log", Origin()), ("attempt_0/1/stderr.log", Origin()))
    job.resolve()
    assert job.ranks == {0, 1}


def test_a_file_with_lines_of_many_ranks_is_not_that_of_its_name() -> None:
    """`rank_1.log` of node 1 may hold the lines of eight ranks. A single other rank in it changes nothing."""
    job = JobMap()
    for rank in range(8, 16):
        job.learn("logs/rank_1.log", Origin(rank=rank))
    for rank in (0, 1):
        job.learn("rank_0/job.log", Origin(rank=rank))
    job.learn("rank_7.log", Origin(rank=5))
    assert job.complete("logs/rank_1.log", Origin()).rank is None
    assert job.complete("rank_0/job.log", Origin()).rank is None
    assert job.complete("rank_7.log", Origin()).rank == 7


def test_local_ranks_of_one_node_of_several_are_not_global_ranks() -> None:
    """A world size of eight with four local ranks means two nodes. One node may have a missing local rank."""
    for size, local_ranks, expected in ((8, 4, None), (16, 8, None), (4, 4, 1), (4, 3, 1), (None, 4, 1)):
        job = JobMap()
        job.sizes |= {size} if size else set()
        for local in range(local_ranks):
            job.learn("job.log", Origin(local_rank=local))
        job.resolve()
        assert job.complete("job.log", Origin(local_rank=1)).rank == expected


def test_local_ranks_of_several_files_without_hosts_are_not_global_ranks() -> None:
    """Two files with a local rank 1 may be of two nodes. Streams, attempts and rotated files are of one process."""
    for names, rank in (
        (("out.0.txt", "out.1.txt"), None),
        (("a/train.log", "b/train.log"), None),
        (("job.out", "job.err"), 1),
        (("train-attempt0.log", "train-attempt1.log"), 1),
        (("train.log", "train.log.1", "train.log.2.gz"), 1),
    ):
        job = JobMap()
        for name in names:
            for local in (0, 1):
                job.learn(name, Origin(local_rank=local))
        job.resolve()
        assert job.complete(names[0], Origin(local_rank=1)).rank == rank
        assert [warning.code for warning in find_conflicts(job)] == ([] if rank else ["identity-unknown"])


def test_a_launcher_s_host_of_a_pid_is_that_of_its_rank() -> None:
    """It counts for a rank that names no host itself, if the pid is that of one rank."""
    for lines, hosts in (
        ((("a", Origin(rank=3, pid=412)),), {"node1"}),
        ((("a", Origin(rank=3, pid=412)), ("b", Origin(rank=7, pid=412))), set()),
        ((("a", Origin(rank=3, pid=412, host="node2")),), {"node2"}),
    ):
        job = job_of(*lines, ("mpirun.log", Origin(pid=412, host="node1")))
        job.resolve()
        assert job.hosts.get(3, set()) == hosts


def test_the_known_address_of_a_host_tells_its_processes_apart() -> None:
    """Ray's prefix names another address with the same pid: that rank is on another host."""
    job = job_of(("x", Origin(rank=0, pid=93, host="node1")), ("x", Origin(rank=3, pid=93, host="10.0.1.11")))
    job.learn_same_host("x", "10.0.1.11", "node2", is_stated=True)
    job.resolve()
    assert job.complete("x", Origin(pid=93, host="10.0.1.10")).rank == 0
    assert job.complete("x", Origin(pid=93, host="10.0.1.11")).rank == 3


def test_a_gpu_gives_its_rank() -> None:
    """By NCCL's address on a host; without a host only where one host has a GPU there. Device 0 counts too."""
    job = JobMap()
    for rank, (host, bus) in enumerate((("n1", "1b000"), ("n1", "9b000"), ("n2", "9b000"))):
        job.learn_member(CommunicatorMember("x", Origin(pid=40 + rank, host=host), rank, 3, bus))
    job.learn_member(CommunicatorMember("x", Origin(pid=50), 0, 2, "aa000"))
    job.resolve()
    assert [job.rank_of_gpu(host, "0000:9b:00.0") for host in ("n1", "n2.cluster", "n3", None)] == [1, 2, None, None]
    assert job.rank_of_gpu(None, "0000:1b:00") == 0
    assert job.rank_of_gpu(None, "0000:aa:00") is None


def test_the_ranks_of_a_very_large_world_are_not_listed() -> None:
    """131,072 are."""
    for size, count in ((1 << 17, (1 << 17) - 1), ((1 << 17) + 1, 0)):
        job = job_of(("x", Origin(rank=0)))
        job.sizes.add(size)
        assert len(job.missing_ranks()) == count


def test_a_process_that_another_one_lists_is_placed() -> None:
    """`ps` names its pid and local rank, other lines the rank of this local rank."""
    job = job_of(("x", Origin(rank=9, local_rank=1, host="n2")))
    job.learn_process("ps.txt", Origin(local_rank=1, host="n2", pid=77))
    job.learn_process("ps.txt", Origin(host="n2", pid=78))
    job.resolve()
    assert job.complete("x", Origin(pid=77, host="n2")).rank == 9
    assert job.complete("x", Origin(pid=78, host="n2")).rank is None


def test_the_pid_in_the_prefix_of_a_source_is_that_of_its_writer() -> None:
    """Two hosts have the same pid; in each file it is another rank."""
    job = job_of(("a.log", Origin(rank=0, pid=81)), ("b.log", Origin(rank=1, pid=81)))
    job.learn_writer("a.log", "", 81, 0)
    job.learn_writer("b.log", "", 81, 1)
    job.learn_writer("b.log", "", None, 5)
    job.learn_writer("c.log", "", 82, None)
    job.resolve()
    assert [job.complete(name, Origin(pid=81)).rank for name in ("a.log", "b.log", "c.log")] == [0, 1, None]
    assert job.place("b.log", Origin(pid=81))[1] == "pid"
    assert job.place("c.log", Origin(pid=82)) == (Origin(pid=82), "")


@pytest.mark.parametrize(
    ("pods", "local_ranks", "rank"),
    [(("train-0", "train-1"), (0, 1), 3), (("train-0", "train-1"), (0, 2), None), (("gpu17", "gpu18"), (0, 1), None)],
)
def test_pods_with_equal_local_ranks_are_a_world(
    pods: tuple[str, ...], local_ranks: tuple[int, ...], rank: int
) -> None:
    """Where no line states its size: an operator numbers its pods in the order of the ranks."""
    job = JobMap()
    for pod in pods:
        for local in local_ranks:
            job.learn("pods.log", Origin(local_rank=local, host=pod))
    job.resolve()
    assert job.complete("pods.log", Origin(local_rank=1, host=pods[1])).rank == rank


def test_a_node_is_stated_by_its_lines() -> None:
    """Its index, its size and the number of nodes; what a line does not say counts for nothing."""
    job = JobMap()
    job.learn_node("n2.log", "n2", 1, 4, 2)
    job.learn_node("n1.log", "n1", 0, -1, -1)
    job.learn_node("x.log", "n3", -1, 0, 0)
    assert (job.nodes.sizes, job.nodes.counts) == ({4}, {2})
    assert dict(job.nodes.stated) == {"n2": {1}, "n1": {0}}


def test_ranks_and_hosts_are_sorted() -> None:
    """A host with several names has one."""
    job = job_of(
        ("x", Origin(rank=3, host="n2")), ("x", Origin(rank=1, host="n2.cluster")), ("x", Origin(rank=2, host="n1"))
    )
    assert job.ranks_by_host() == {"n1": (2,), "n2": (1, 3)}
    assert (job.knows_local_ranks(), job_of(("x", Origin(rank=3, local_rank=0))).knows_local_ranks()) == (False, True)


def test_a_stated_time_is_corrected_by_the_clock_of_its_host() -> None:
    """Only of a host whose clock is known to be wrong, and of a line with a host and a time."""
    job = JobMap()
    for step in range(5):
        job.clocks.add_event(f"step {step}", "n1", 100.0 + step)
        job.clocks.add_event(f"step {step}", "n2", 160.0 + step)
    job.resolve()
    assert job.with_corrected_time(Origin(host="n2", time=160.0)).time == 100.0
    for origin in (Origin(host="n1", time=100.0), Origin(time=160.0), Origin(host="n2")):
        assert job.with_corrected_time(origin) is origin


def test_a_rank_in_a_name_is_more_direct_than_its_task() -> None:
    """A folder says `rank1`, whatever the scheduler numbered."""
    names = ("rank1/log-job_12_0.out", "rank0/log-job_12_1.out")
    job = job_of(*((name, Origin()) for name in names))
    job.sizes.add(2)
    job.resolve()
    assert [job.complete(name, Origin()).rank for name in names] == [1, 0]


def test_what_a_doubtful_name_joined_is_forgotten() -> None:
    """Rank 9 of 2: its pid, its local rank and its host are those of no rank."""
    job = job_of(("job.log", Origin(rank=0)), ("job.log", Origin(rank=1)))
    job.sizes.add(2)
    job.learn("exp_rank9.log", Origin(pid=412, host="n1", local_rank=1))
    job.resolve()
    assert (job.ranks, job.by_pid.get(412), job.hosts.get(9), job.by_local.get(("n1", 1))) == (
        {0, 1},
        set(),
        set(),
        set(),
    )
    assert job.complete("exp_rank9.log", Origin()).rank is None


def test_hosts_in_prefixes_are_several_hosts() -> None:
    """Where no line names a rank: local rank 0 of two hosts is not rank 0 twice."""
    job = job_of(("x", Origin(host="n1", local_rank=0)), ("x", Origin(host="n2", local_rank=1)))
    assert not job.is_one_host()
    assert job_of(("x", Origin(host="n1", local_rank=0)), ("x", Origin(host="n1", local_rank=1))).is_one_host()


def test_the_only_rank_of_a_host_wrote_its_lines() -> None:
    """Where every rank has its own."""
    job = job_of(("x", Origin(rank=0, host="n1")), ("x", Origin(rank=1, host="n2")))
    job.sizes.add(2)
    job.resolve()
    assert job.place("y", Origin(host="n2.cluster")) == (Origin(rank=1, host="n2.cluster"), "only rank on its host")
    assert job.place("y", Origin()) == (Origin(), "")


def test_the_pid_in_the_name_of_a_file_is_that_of_its_lines() -> None:
    """A collector of logs puts one pid, its own, before the lines of all workers."""
    job = JobMap()
    names = (f"worker-{'0a' * 28}-01000000-51.err", f"worker-{'0b' * 28}-01000000-50.err", "job-driver.log")
    job.learn(names[0], Origin(rank=1, pid=54974))
    job.learn(names[1], Origin(pid=54974))
    job.resolve()
    places = [job.place(name, Origin(pid=54974))[0].rank for name in names]
    assert places == [1, None, None]


@pytest.mark.parametrize(("name", "size", "rank"), [("train-{}", 8, 5), ("train-{}", 4, 3), ("node_{}", None, None)])
def test_equal_local_ranks_of_pods_are_no_stated_world(name: str, size: int | None, rank: int | None) -> None:
    """A stated world size counts, and numbers in the names of hosts that are no pods show no world."""
    job = job_of(*(("job.log", Origin(local_rank=local, host=name.format(n))) for n in (0, 1) for local in (0, 1)))
    job.sizes |= {size} if size else set()
    job.resolve()
    assert job.complete("job.log", Origin(local_rank=1, host=name.format(1))).rank == rank


@pytest.mark.parametrize("source", ["ps.txt", "logs/node7/ps.txt"])
def test_a_process_is_on_the_host_of_its_line_or_of_its_file(source: str) -> None:
    """The line of `ps` names the host, or the file does."""
    job = job_of(("x", Origin(rank=9, local_rank=1, host="node7")), ("x", Origin(rank=1, local_rank=1, host="node8")))
    job.learn_process(source, Origin(local_rank=1, pid=77, host="node7" if source == "ps.txt" else None))
    job.resolve()
    assert job.complete("x", Origin(pid=77)).rank == 9


def test_a_line_without_a_local_rank_adds_none() -> None:
    """Two local ranks of a world of four are one node of two, whatever other lines there are."""
    job = job_of(*(("job.log", Origin(local_rank=local)) for local in (0, 1, None)))
    job.sizes.add(4)
    job.resolve()
    assert not job.is_one_host()
    assert job.complete("job.log", Origin(local_rank=1)).rank is None


@pytest.mark.parametrize(
    ("ranks", "has_several"), [({5}, False), ({5, 6}, True), ({6}, False), ({6, 7}, False), ({6, 7, 8}, True)]
)
def test_a_file_of_one_rank_may_name_others(ranks: set[int], has_several: bool) -> None:
    """`rank_5.log` is of several ranks if its lines name rank 5 and another one, or three others."""
    job = job_of(*(("rank_5.log", Origin(rank=rank)) for rank in ranks))
    assert job.has_several_ranks("rank_5.log") is has_several
