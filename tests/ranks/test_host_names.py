"""Several names of one host: what stands together is one host, unless a name stands with several."""

from __future__ import annotations

import pytest

from triage.model.evidence import Origin
from triage.ranks.host_names import HostNames
from triage.ranks.identity import JobMap
from triage.ranks.prefix import parse_prefix


def test_two_names_that_stand_together_are_one_host() -> None:
    """The pod in the prefix, and the machine that NCCL names behind it."""
    names = HostNames()
    names.learn("train-worker-0", "outer prefix", "gpu17", "prefix")
    names.learn("train-worker-1", "outer prefix", "gpu18", "prefix")
    names.resolve()
    assert names.canonical == {"train-worker-0": "gpu17", "train-worker-1": "gpu18"}


def test_the_innermost_of_three_names_counts() -> None:
    """A collector's pod around the pod of a file around the machine."""
    names = HostNames()
    names.learn("outer-0-abcde", "outer prefix", "train-0", "prefix")
    names.learn("train-0", "file", "gpu17", "text")
    names.resolve()
    assert names.canonical == {"outer-0-abcde": "gpu17", "train-0": "gpu17"}


def test_names_that_stand_within_each_other_are_one_host() -> None:
    """journald names the machine, torchx its task, and NCCL the machine again; no host has `/` in its name."""
    names = HostNames()
    names.learn("b6ad0f38", "outer prefix", "a/0", "prefix")
    names.learn("a/0", "outer prefix", "b6ad0f38", "prefix")
    names.resolve()
    assert names.canonical == {"a/0": "b6ad0f38"}


def test_an_address_of_another_machine_is_no_name_of_this_one() -> None:
    """Ray names the address of a worker elsewhere in the lines of a machine that names itself."""
    names = HostNames()
    names.learn("gpu17", "file", "gpu17", "prefix")
    names.learn("gpu17", "outer prefix", "10.0.1.11", "prefix")
    names.learn("train-0", "outer prefix", "10.0.1.12", "prefix")
    names.resolve()
    assert names.canonical == {"train-0": "10.0.1.12"}


def test_a_name_before_the_lines_of_several_hosts_gathers_them() -> None:
    """It is no host of these lines, and none of their names is its own."""
    names = HostNames()
    names.learn("console-pod", "outer prefix", "gpu17", "prefix")
    names.learn("console-pod", "outer prefix", "gpu18", "prefix")
    names.resolve()
    assert names.gatherers == {"console-pod"}
    assert names.canonical == {}


def test_pods_on_one_machine_stay_apart() -> None:
    """Each has a local rank 0 of its own."""
    names = HostNames()
    names.learn("train-0", "outer prefix", "gpu17", "prefix")
    names.learn("train-1", "outer prefix", "gpu17", "prefix")
    names.resolve()
    assert names.canonical == {}


def test_names_that_differ_in_numbers_only_are_two_machines() -> None:
    """The directory of node30 may hold the console of node31."""
    names = HostNames()
    names.learn("node30", "file", "node31", "prefix")
    names.resolve()
    assert names.canonical == {}


def test_the_log_of_the_machine_beside_does_not_hide_its_other_name() -> None:
    """`node_1/` has the lines of node43, and `node43/` those of its kernel."""
    names = HostNames()
    names.learn("node_1", "file", "node43", "prefix")
    names.learn("node43", "file", "node43", "prefix")
    names.resolve()
    assert names.canonical == {"node_1": "node43"}


def test_a_host_whose_file_has_lines_of_others_stays_a_host() -> None:
    """The first node's file is often the console of all."""
    names = HostNames()
    for host in ("node0", "node1", "node2"):
        names.learn("node0", "file", host, "prefix")
    names.resolve()
    assert names.gatherers == set()


def test_a_local_rank_is_joined_through_both_names() -> None:
    """The table names the machine, the lines of the pod only the pod."""
    job = JobMap()
    job.learn("pods.log", Origin(local_rank=1, host="train-worker-3"))
    job.learn("pods.log", Origin(rank=13, local_rank=1, host="gpu17"))
    job.learn_same_host("pods.log", "train-worker-3", "gpu17", is_stated=True)
    job.resolve()
    origin = job.complete("pods.log", Origin(local_rank=1, host="train-worker-3"))
    assert (origin.rank, origin.host) == (13, "gpu17")


def test_the_host_of_a_collector_is_not_that_of_a_rank() -> None:
    """Where its own lines name another."""
    job = JobMap()
    for rank in (0, 1):
        job.learn("all.log", Origin(rank=rank, host=f"gpu{rank}"))
        job.learn("all.log", Origin(rank=rank, host="console"))
        job.learn_same_host("all.log", "console", f"gpu{rank}")
    job.resolve()
    assert job.complete("all.log", Origin(rank=1, host="console")).host == "gpu1"
    assert job.ranks_by_host() == {"gpu0": (0,), "gpu1": (1,)}


def test_a_stated_host_counts_where_no_prefix_names_one() -> None:
    """`node7: rank 3 ready` on the driver's own node."""
    job = JobMap()
    job.learn("driver.log", Origin(rank=3, pid=81))
    job.learn("driver.log", Origin(rank=4, host="node8"))
    for rank in (3, 4):
        job.learn_host_of_rank(rank, "node7")
    job.resolve()
    assert job.ranks_by_host() == {"node7": (3,), "node8": (4,)}


def test_a_prefix_within_a_prefix_has_two_hosts() -> None:
    """The inner one is that of the line, the outer one is remembered; equal ones are one."""
    line = parse_prefix("[pod/train-0/main] node7:412:980 [0] NCCL INFO Bootstrap")
    assert (line.origin.host, line.outer_host) == ("node7", "train-0")
    assert parse_prefix("[pod/node7/main] node7:412:980 [0] NCCL INFO Bootstrap").outer_host == ""
    assert parse_prefix("[pod/node7/main] step 3").outer_host == ""


def test_a_name_is_better_than_an_address() -> None:
    """Ray names the address of a worker, its directory the host."""
    job = JobMap()
    job.learn("a.log", Origin(rank=1, host="gpu17"))
    job.learn("b.log", Origin(rank=1, host="10.0.0.8"))
    job.learn("b.log", Origin(rank=2, host="10.0.0.9"))
    job.resolve()
    assert job.complete("b.log", Origin(rank=1, host="10.0.0.8")).host == "gpu17"
    assert job.complete("b.log", Origin(rank=2, host="10.0.0.9")).host == "10.0.0.9"
    assert job.complete("b.log", Origin(rank=2, host="gpu18")).host == "gpu18"


def test_numbers_filled_with_zeros_are_of_another_scheme() -> None:
    """`node0/` has the lines of node036; node999 and node1000 are of one scheme."""
    for outer, inner, is_same in (
        ("node0", "node036", True),
        ("node12", "node012", True),
        ("node999", "node1000", False),
    ):
        names = HostNames()
        names.learn(outer, "file", inner, "text")
        names.resolve()
        assert names.canonical == ({outer: inner} if is_same else {})


def test_nodes_that_are_numbered_anew() -> None:
    """Each directory stands with one machine of its own; not where directories have the lines of their neighbours."""
    for pairs, is_same in (
        ([("node0", "node36"), ("node1", "node37")], True),
        ([("node1", "node2"), ("node2", "node3")], False),
        ([("node0", "node36"), ("node1", "node36")], False),
    ):
        names = HostNames()
        for outer, inner in pairs:
            names.learn(outer, "file", inner, "text")
        names.resolve()
        assert names.canonical == (dict(pairs) if is_same else {})


@pytest.mark.parametrize("other", [("trainer-a", "gpu17"), ("login", "login")])
def test_names_of_another_scheme_do_not_matter_for_the_numbering(other: tuple[str, str]) -> None:
    """The console of the pods has the lines of two machines, and the file of the login host has its own."""
    names = HostNames()
    for outer, inner in (("node0", "node36"), ("node1", "node37"), other, (other[0], "gpu18")):
        names.learn(outer, "file", inner, "text")
    names.resolve()
    assert (names.canonical["node0"], names.canonical["node1"]) == ("node36", "node37")


@pytest.mark.parametrize(("is_stated", "is_collector"), [(False, True), (True, False)])
def test_only_names_in_prefixes_show_a_collector(is_stated: bool, is_collector: bool) -> None:
    """A text of a host may name the other hosts: its lines are its own."""
    job = JobMap()
    job.learn("all.log", Origin(rank=0, host="console"))
    for name in ("gpu0", "gpu1"):
        job.learn_same_host("all.log", "console", name, is_stated=is_stated)
    job.resolve()
    assert job.ranks_by_host() == ({} if is_collector else {"console": (0,)})


def test_the_host_in_the_name_of_a_file_is_that_of_its_prefixes() -> None:
    """`logs/node7/rank_0.log` has lines of gpu17, so both names are one host."""
    job = JobMap()
    job.learn("logs/node7/rank_0.log", Origin(host="gpu17"))
    job.learn("logs/node7/rank_0.log", Origin())
    job.resolve()
    assert job.ranks_by_host() == {"gpu17": (0,)}


def test_the_name_of_a_file_without_a_host_is_no_host() -> None:
    """Its local ranks stay known where the hosts of other files get other names."""
    job = JobMap()
    for local in (0, 1):
        job.learn("node.train.log", Origin(rank=8 + local, local_rank=local))
    job.learn("logs/node7/train.log", Origin(rank=1, local_rank=1, host="gpu17"))
    job.resolve()
    assert job.host_names.canonical == {"node7": "gpu17"}
    assert job.complete("node.train.log", Origin(local_rank=1)).rank == 9
