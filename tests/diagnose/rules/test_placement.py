"""Rules about where ranks are and what they share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnose.factories import exited, fact, raised
from triage.diagnose.context import RuleContext
from triage.diagnose.rules import placement
from triage.ranks.separate_groups import Membership

BASE = RuleContext([fact("x", 0), fact("y", 1)], {}, frozenset({0, 1}), 2, frozenset())


def test_hosts_that_did_not_meet() -> None:
    """Two hosts each have ranks 0 and 1 of a world of 2; one file that names both has two names for one host."""
    both = replace(BASE, hosts={0: ["a", "b"], 1: ["a", "b"]})
    (one, two) = placement.split_rendezvous(
        replace(both, facts=[fact("x", 0, host="a", source="1"), fact("y", 1, host="b", source="2")])
    )
    assert placement.split_rendezvous(replace(both, facts=[fact("x", 0, host="a"), fact("y", 1, host="b")])) == []
    assert (one.fields["rule"], one.origin.rank, two.origin.rank) == ("split-rendezvous", 0, 1)
    assert one.text == "a and b each have ranks 0-1 of a world of 2: each host formed a group of its own"
    assert placement.split_rendezvous(replace(BASE, hosts={0: ["a"], 1: ["b"]})) == []
    assert placement.split_rendezvous(replace(BASE, hosts={0: ["a"], 1: ["a"]})) == []


def test_two_ranks_on_one_gpu() -> None:
    """NCCL names the same device for both."""
    inferences = placement.shared_device(replace(BASE, devices={"0:1b:00 of node1": [0, 1]}))
    assert [(one.fields["rule"], one.origin.rank) for one in inferences] == [("shared-device", 0), ("shared-device", 1)]
    assert placement.shared_device(replace(BASE, devices={"0:1b:00 of node1": [0], "0:1c:00 of node1": [1]})) == []


def test_ranks_of_smaller_communicators_are_no_global_ranks() -> None:
    """In a group of two, rank 0 is seen on two devices: nothing is shared."""
    assert placement.shared_device(replace(BASE, devices={"a": [0], "b": [0, 1]})) == []


def test_killed_for_memory_in_a_save() -> None:
    """The last line of rank 0 is about saving, it was killed, and the kernel says that memory ran out."""
    facts = [exited(0, -9), fact("Out of memory: Killed process 7 (python)", kind="kernel")]
    context = RuleContext(facts, {"killed": [0]}, frozenset({0, 1}), 2, frozenset(), doing={0: "saving"})
    assert [one.fields["rule"] for one in placement.killed_while_saving(context)] == ["killed-while-saving"]
    assert placement.killed_while_saving(replace(context, doing={})) == []
    assert placement.killed_while_saving(replace(context, facts=facts[:1])) == []


def test_a_list_of_users_of_the_same_gpu() -> None:
    """The process that the out-of-memory message of rank 0 lists is that of rank 1."""
    text = (
        "CUDA out of memory. GPU 0 has a total capacity of 79 GiB. Process 41 has 30 GiB memory in use. "
        "Process {} has 40 GiB memory in use."
    )
    context = replace(BASE, facts=[fact(text.format(42), 0)], pids={41: {0}, 42: {1}})
    inferences = placement.shared_device(context)
    assert [(one.fields["rule"], one.origin.rank) for one in inferences] == [("shared-device", 0), ("shared-device", 1)]
    assert placement.shared_device(replace(context, facts=[fact(text.format(99), 0)])) == []


def members(size: int, hosts: str, label: str = "") -> list[tuple[str, Membership]]:
    """Return what the ranks of a group on each host say, each host in its own file."""
    return [(f"{host}.log", Membership(rank, size, label, host)) for host in hosts for rank in range(size)]


def test_a_world_of_one_on_each_host() -> None:
    """Hosts that each hold rank 0 of a world of 1 did not meet; on one host that is an ordinary job."""
    files = [fact("x", 0, host="a", source="a.log"), fact("y", 0, host="b", source="b.log")]
    context = replace(BASE, facts=files, world_size=1, memberships=members(1, "ab"))
    (inference,) = placement.split_rendezvous(context)
    assert (inference.fields["rule"], inference.origin.rank) == ("split-rendezvous", None)
    assert "shown_by" not in inference.fields
    assert placement.split_rendezvous(replace(context, memberships=members(1, "a"))) == []
    one_file = [fact("x", 0, host="a"), fact("y", 0, host="b")]
    assert placement.split_rendezvous(replace(context, facts=one_file)) == []


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("ValueError: 4 GPUs are configured, world size is 2", True),
        ("AssertionError: 4 != 2 replicas", True),
        ("ValueError: 6 GPUs are configured, world size is 2", False),
        ("ValueError: matrix of 4 x 2", False),
        ("RuntimeError: out of memory", False),
    ],
)
def test_an_error_that_counts_too_few_processes(text: str, is_shown: bool) -> None:
    """It names the size of a group and the number of all processes; another error shows nothing."""
    tasks = [("job.log", Membership(rank, 2, f"{task}:")) for task, rank in enumerate((0, 1, 0, 1))]
    context = replace(BASE, facts=[raised(text, 0)], memberships=tasks)
    assert [one.fields["shown_by"] for one in placement.split_rendezvous(context)] == ["error"] * is_shown


def test_groups_that_write_one_path() -> None:
    """Two processes say that they write what is in the way of one; a path of one process shows nothing."""
    tasks = [("job.log", Membership(0, 1, f"{task}:")) for task in range(2)]
    error = raised("FileExistsError: [Errno 17] File exists: '/out/7/model.pt'", 0)
    both = {"/out/7": [("job.", "0:"), ("job.", "1:")]}
    context = replace(BASE, facts=[error], memberships=tasks, writers=both)
    assert len(placement.split_rendezvous(context)) == 1
    assert placement.split_rendezvous(replace(context, writers={"/out/7": [("job.", "0:"), ("job.", "0:")]})) == []
    assert placement.split_rendezvous(replace(context, writers={"/out/8": both["/out/7"]})) == []
    copies = [("job.log", Membership(0, 1, time=1.0)) for _ in range(2)]
    assert (
        placement.split_rendezvous(replace(context, memberships=copies, writers={"/out/7": [("job.", "")] * 2})) == []
    )


def test_ranks_that_find_the_path_in_the_way() -> None:
    """They are named, not the rank that came first; an error with another path is another failure."""
    error = fact("FileExistsError: [Errno 17] File exists: '/ckpt/7/model.pt'", 1)
    context = replace(BASE, facts=[error], writes={"/ckpt/7": {0, 1}})
    assert [one.origin.rank for one in placement.same_path_written(context)] == [1]
    other = fact("FileNotFoundError: [Errno 2] No such file or directory: '/data/3'", 1)
    assert placement.same_path_written(replace(context, facts=[other])) == []


def test_ranks_that_write_one_path() -> None:
    """Their last lines name it and one of them finds damage; a full disk explains that as well, and an own path each
    harms nobody.
    """
    damage = fact("RuntimeError: unexpected pos 64 vs 0", 0)
    context = replace(BASE, facts=[damage], writes={"/ckpt/model.pt": {0, 1}})
    inferences = placement.same_path_written(context)
    assert [(one.fields["rule"], one.fields["path"], one.origin.rank) for one in inferences] == [
        ("same-path-written", "/ckpt/model.pt", 0),
        ("same-path-written", "/ckpt/model.pt", 1),
    ]
    assert placement.same_path_written(replace(context, facts=[damage, fact("No space left on device", 1)])) == []
    assert placement.same_path_written(replace(context, writes={"/ckpt/0.pt": {0}, "/ckpt/1.pt": {1}})) == []
    assert placement.same_path_written(replace(context, facts=[fact("ValueError: x", 0)])) == []


def test_damage_and_a_path_that_is_no_checkpoint() -> None:
    """All ranks write their log to one directory: that damages no checkpoint, unless the error names the path."""
    damage = fact("RuntimeError: PytorchStreamReader failed reading zip archive", 0)
    context = replace(BASE, facts=[damage], writes={"/var/log/run": {0, 1}})
    assert placement.same_path_written(context) == []
    named = fact("RuntimeError: PytorchStreamReader failed reading /var/log/run/a.zip", 0)
    assert placement.same_path_written(replace(context, facts=[named]))
    assert placement.same_path_written(replace(context, writes={"/out/step_30": {0, 1}}))


def test_a_user_of_the_same_gpu_runs_on_the_same_host() -> None:
    """Pids of containers are the same on all hosts; older versions of torch misspell the capacity."""
    text = "CUDA out of memory. GPU 0 has a total capacty of 79 GiB. Process 42 has 40 GiB memory in use."
    hosts = {0: ["a"], 1: ["a"], 2: ["b"]}
    context = replace(BASE, facts=[fact(text, 0)], pids={42: {1, 2}}, hosts=hosts)
    assert [one.origin.rank for one in placement.shared_device(context)] == [0, 1]
    assert placement.shared_device(replace(context, hosts={**hosts, 1: ["b"]})) == []
    assert placement.shared_device(replace(context, hosts={0: ["a"]})) == []


def test_the_kernel_kills_a_process_where_one_rank_saves() -> None:
    """No file maps its pid to a rank: the saver's host counts; a kill before its last line is another."""
    kill = fact("Out of memory: Killed process 7 (python3)", kind="kernel", host="a", time=100.0)
    hosts = {0: ["a"], 1: ["a"], 2: ["b"]}
    last = {0: ("", 90.0)}
    context = replace(BASE, facts=[kill], hosts=hosts, doing={0: "saving"}, last_time=last)
    (inference,) = placement.killed_while_saving(context)
    assert (inference.fields["rule"], inference.origin.rank) == ("killed-while-saving", 0)
    for other in (
        replace(context, facts=[replace(kill, origin=replace(kill.origin, host="b"))]),
        replace(context, facts=[replace(kill, origin=replace(kill.origin, rank=1))]),
        replace(context, facts=[fact("Out of memory: Killed process 7 (mysqld)", kind="kernel", host="a")]),
        replace(context, doing={0: "saving", 1: "saving"}),
        replace(context, finished=frozenset({0})),
        replace(context, last_time={0: ("", 102.5)}),
    ):
        assert placement.killed_while_saving(other) == []
    for when in (101.5, 100.0 + 1800.0):
        assert placement.killed_while_saving(replace(context, last_time={0: ("", when)}))


def test_the_folder_of_a_file_names_the_host_of_a_group() -> None:
    """Its lines need not say where they were written."""
    files = [fact("x", 0, host="a", source="a/rank0.log"), fact("y", 0, host="b", source="b/rank0.log")]
    members_of = [(one.source, Membership(0, 1)) for one in files]
    context = replace(BASE, facts=files, memberships=members_of, files={"a": ["a/rank0.log"], "b": ["b/rank0.log"]})
    assert len(placement.split_rendezvous(context)) == 1
    assert placement.split_rendezvous(replace(context, files={})) == []
