"""triage.ranks.identity"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triage.model.evidence import Origin
from triage.ranks.conflicts import remarks
from triage.ranks.identity import JobMap, Member, learn_all

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
SEEN = st.lists(st.tuples(SOURCES, ORIGINS), max_size=12)


def learned(*seen: tuple[str, Origin]) -> JobMap:
    """A map that has seen these lines."""
    job = JobMap()
    learn_all(job, seen)
    return job


def test_a_pid_seen_with_a_rank_gives_the_rank() -> None:
    """NCCL's own lines name pids; one that names both ties them."""
    job = learned(("job.log", Origin(pid=41, rank=3)))
    assert job.complete("job.log", Origin(pid=41)).rank == 3
    assert job.complete("job.log", Origin(pid=42)).rank is None


def test_a_pid_of_two_hosts_gives_no_rank() -> None:
    """The same pid with two ranks says nothing."""
    job = learned(("job.log", Origin(pid=41, rank=3)), ("job.log", Origin(pid=41, rank=0)))
    assert job.complete("job.log", Origin(pid=41)).rank is None


def test_a_local_rank_of_a_host_gives_the_rank() -> None:
    """`[default1]` on node2 is rank 9 once somebody said so; on node1 it is another."""
    job = learned(("x", Origin(rank=9, local_rank=1, host="node2")), ("x", Origin(rank=1, local_rank=1, host="node1")))
    assert job.complete("x", Origin(local_rank=1, host="node2")).rank == 9
    assert job.complete("x", Origin(local_rank=1, host="node1")).rank == 1
    assert job.complete("x", Origin(local_rank=1)).rank is None
    assert job.complete("x", Origin(local_rank=0, host="node2")).rank is None


def test_the_name_of_a_file_gives_the_rank() -> None:
    """What the line itself says goes before what its file is called."""
    job = learned(("rank_5.log", Origin()))
    assert job.complete("rank_5.log", Origin()).rank == 5
    assert job.complete("rank_5.log", Origin(rank=6)).rank == 6
    assert job.ranks == {5}


def test_a_file_of_one_process_gives_the_rank_that_it_names_elsewhere() -> None:
    """In torchrun's directory for one worker, one line with a rank names the others."""
    job = learned(("node2/attempt_0/1/stderr.log", Origin(rank=9)), ("node1/attempt_0/1/stderr.log", Origin(rank=1)))
    assert job.complete("node2/attempt_0/1/stdout.log", Origin()).rank == 9
    assert job.complete("node2/attempt_0/1/stderr.log", Origin()).host == "node2"


def test_on_one_host_local_ranks_are_ranks() -> None:
    """The one convention: a single host, and no pair that says otherwise."""
    job = learned(("node1/attempt_0/1/stderr.log", Origin()))
    assert job.one_host()
    found = job.complete("node1/attempt_0/1/stderr.log", Origin())
    assert (found.rank, found.local_rank, found.stream) == (1, 1, "stderr")


def test_two_hosts_end_the_convention() -> None:
    """Local rank 0 of two hosts is not rank 0 twice."""
    job = learned(("node1/attempt_0/0/stderr.log", Origin()), ("node2/attempt_0/0/stderr.log", Origin()))
    assert not job.one_host()
    assert job.complete("node2/attempt_0/0/stderr.log", Origin()).rank is None


def test_two_run_directories_end_the_convention() -> None:
    """Every agent of a job on several nodes makes a directory of its own on the shared disk: local rank 0 of both is
    not rank 0 twice.
    """
    one, two = "logs/none_a1b2/attempt_0/0/stderr.log", "logs/none_c3d4/attempt_0/0/stderr.log"
    job = learned((one, Origin()), (two, Origin()))
    assert not job.one_host()
    assert job.complete(one, Origin()).rank is None
    job.learn(one, Origin(rank=0))
    assert job.complete(one, Origin()).rank == 0
    assert job.complete(two, Origin()).rank is None


def test_the_attempts_of_one_run_are_one_place() -> None:
    """A worker group started again stays where it was."""
    job = learned(
        ("logs/none_a1b2/attempt_0/2/stderr.log", Origin()), ("logs/none_a1b2/attempt_1/2/stderr.log", Origin())
    )
    assert job.one_host()
    found = job.complete("logs/none_a1b2/attempt_1/2/stderr.log", Origin())
    assert (found.rank, found.attempt) == (2, 1)


def test_a_pair_that_differs_ends_the_convention() -> None:
    """Where local rank 1 is rank 9, local rank 0 is not taken for rank 0, nor is every local rank 1 rank 9: other nodes
    may write there too.
    """
    job = learned(("job.log", Origin(rank=9, local_rank=1)))
    assert job.complete("job.log", Origin(local_rank=0)).rank is None
    assert job.complete("job.log", Origin(local_rank=1)).rank is None


def test_a_file_of_one_node_gives_its_ranks() -> None:
    """Several pairs as far apart are one node's; each file without a host's name counts for itself."""
    job = learned(
        *(("a.log", Origin(rank=8 + local, local_rank=local)) for local in range(2)),
        ("b.log", Origin(rank=0, local_rank=0)),
    )
    assert job.complete("a.log", Origin(local_rank=1)).rank == 9
    assert job.complete("a.log", Origin(local_rank=3)).rank is None
    assert job.complete("b.log", Origin(local_rank=1)).rank is None


def test_the_host_of_a_rank_is_added() -> None:
    """When every line that names the rank's host names the same."""
    job = learned(
        ("x", Origin(rank=3, host="node1")), ("x", Origin(rank=4, host="node1")), ("x", Origin(rank=4, host="node2"))
    )
    assert job.complete("x", Origin(rank=3)).host == "node1"
    assert job.complete("x", Origin(rank=4)).host is None
    assert job.host_ranks() == {"node1": (3, 4), "node2": (4,)}


def test_the_world_is_as_large_as_said_or_seen() -> None:
    """The largest size that is stated, or that the ranks demand; nothing known is None."""
    assert JobMap().world_size() is None
    job = learned(("x", Origin(rank=3)))
    assert job.world_size() == 4
    job.sizes.add(16)
    assert job.world_size() == 16


@given(SEEN, SOURCES, ORIGINS)
def test_completing_adds_and_never_changes(seen: list[tuple[str, Origin]], source: str, origin: Origin) -> None:
    """What a line says of itself stays; completing twice changes nothing."""
    job = learned(*seen)
    whole = job.complete(source, origin)
    for name in ("rank", "local_rank", "host", "pid", "stream", "time"):
        if getattr(origin, name) is not None:
            assert getattr(whole, name) == getattr(origin, name)
    assert job.complete(source, origin) == whole


@given(SEEN, SOURCES, ORIGINS)
def test_the_order_of_lines_does_not_matter(seen: list[tuple[str, Origin]], source: str, origin: Origin) -> None:
    """Maps are sets: whoever is read first wins nothing."""
    assert learned(*seen).complete(source, origin) == learned(*seen[::-1]).complete(source, origin)


@given(SEEN, SOURCES, ORIGINS)
def test_a_rank_is_never_made_up(seen: list[tuple[str, Origin]], source: str, origin: Origin) -> None:
    """A rank comes from a line, from a file name, or from the local rank by the one convention."""
    job = learned(*seen)
    whole = job.complete(source, origin)
    if whole.rank is not None:
        assert whole.rank in {origin.rank, *job.ranks, 2 if source == "rank_2.log" else None} or (
            job.one_host() and whole.rank == whole.local_rank
        )


def test_members_count_in_the_communicator_of_all_ranks() -> None:
    """Smaller ones number their own members, whatever order they are seen in."""
    members = [
        Member("x", Origin(pid=41, host="n1"), 3, 4),
        Member("x", Origin(pid=41, host="n1"), 1, 2),
        Member("x", Origin(pid=42), 0, 2),
    ]
    for order in (members, members[::-1]):
        job = JobMap()
        for member in order:
            job.learn_member(member)
        job.settle()
        assert job.complete("x", Origin(pid=41)).rank == 3
        assert job.complete("x", Origin(pid=42)).rank is None
        assert (job.ranks, job.world_size()) == ({3}, 4)


def test_members_of_a_part_of_a_larger_world_count_for_nothing() -> None:
    """Where the world is known to be larger than any communicator seen, none is that of all ranks."""
    job = JobMap()
    job.sizes.add(8)
    job.learn_member(Member("x", Origin(pid=41), 1, 2))
    job.settle()
    assert (job.ranks, job.missing()) == (set(), tuple(range(8)))


def test_the_ranks_that_the_convention_gives_are_known() -> None:
    """On one host, local ranks that only prefixes name are ranks of the job."""
    job = learned(("console.log", Origin(local_rank=0)), ("console.log", Origin(local_rank=2)))
    job.settle()
    assert job.ranks == {0, 2}


def test_tasks_are_ranks_where_there_is_a_file_for_each() -> None:
    """`slurm-123_4.out` could be a job of an array: only as many files as the stated world is large make the numbers
    ranks.
    """
    job = learned(*((f"slurm-123_{task}.{end}", Origin()) for task in range(3) for end in ("out", "err")))
    assert job.complete("slurm-123_2.err", Origin()).rank is None
    job.sizes.add(3)
    job.settle()
    assert [job.complete(f"slurm-123_2.{end}", Origin()).rank for end in ("out", "err")] == [2, 2]
    array = learned(*((f"slurm-123_{task}.out", Origin()) for task in (1, 2)))
    array.sizes.add(2)
    array.settle()
    assert array.complete("slurm-123_1.out", Origin()).rank is None


def test_local_ranks_that_files_name_are_ranks_of_one_host() -> None:
    """Also where no line says anything."""
    job = learned(("attempt_0/0/stderr.log", Origin()), ("attempt_0/1/stderr.log", Origin()))
    job.settle()
    assert job.ranks == {0, 1}


def test_a_file_of_many_ranks_is_not_that_of_its_name() -> None:
    """`rank_1.log` of node 1 holds the lines of eight ranks: those that say nothing are nobody's. One foreign tag takes
    nothing away.
    """
    job = JobMap()
    for rank in range(8, 16):
        job.learn("logs/rank_1.log", Origin(rank=rank))
    for rank in (0, 1):
        job.learn("rank_0/job.log", Origin(rank=rank))
    job.learn("rank_7.log", Origin(rank=5))
    assert job.complete("logs/rank_1.log", Origin()).rank is None
    assert job.complete("rank_0/job.log", Origin()).rank is None
    assert job.complete("rank_7.log", Origin()).rank == 7


def test_local_ranks_of_one_node_of_several_are_no_ranks() -> None:
    """One node's log of two: eight ranks are said and four local ones seen. With a rank missing, or all there, they are
    taken as ranks.
    """
    for size, seen, expected in ((8, 4, None), (16, 8, None), (4, 4, 1), (4, 3, 1), (None, 4, 1)):
        job = JobMap()
        job.sizes |= {size} if size else set()
        for local in range(seen):
            job.learn("job.log", Origin(local_rank=local))
        job.settle()
        assert job.complete("job.log", Origin(local_rank=1)).rank == expected


def test_local_ranks_of_several_files_without_hosts_are_no_ranks() -> None:
    """Two files with a local rank 1 can be of two nodes; what one process writes to two streams, or in two attempts, is
    one's.
    """
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
        job.settle()
        assert job.complete(names[0], Origin(local_rank=1)).rank == rank
        assert [remark.code for remark in remarks(job)] == ([] if rank else ["identity-unknown"])
