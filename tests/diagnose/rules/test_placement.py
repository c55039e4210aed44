"""Rules about where ranks are and what they share."""

from __future__ import annotations

from dataclasses import replace

from diagnose.factories import exited, fact
from triage.diagnose.context import RuleContext
from triage.diagnose.rules import placement

BASE = RuleContext([fact("x", 0), fact("y", 1)], {}, frozenset({0, 1}), 2, frozenset())


def test_hosts_that_did_not_meet() -> None:
    """Two hosts each have ranks 0 and 1 of a world of 2; one file that names both has two names for one host."""
    both = replace(BASE, hosts={0: ["a", "b"], 1: ["a", "b"]})
    (one, two) = placement.split_rendezvous(
        replace(both, facts=[fact("x", 0, host="a", source="1"), fact("y", 1, host="b", source="2")])
    )
    assert placement.split_rendezvous(replace(both, facts=[fact("x", 0, host="a"), fact("y", 1, host="b")])) == []
    assert (one.fields["rule"], one.origin.rank, two.origin.rank) == ("split-rendezvous", 0, 1)
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


def entry(rank: int, time: float, host: str = "a") -> object:
    return fact(f"Entry-HcclCommInitRootInfo:ranks[3], rank[{rank}], identifier[g]", time=time, host=host)


def test_a_rank_that_entered_too_late() -> None:
    """The third rank asks for the group 200 s after the first, which waits 120 s, or what the environment says."""
    facts = [entry(0, 10.0), entry(1, 12.0), entry(2, 210.0)]
    (inference,) = placement.late_entry(replace(BASE, facts=facts))  # type: ignore[arg-type]
    assert (inference.fields["rule"], inference.origin.rank) == ("late-entry", 2)
    longer = fact("[HCCL_ENV] HCCL_CONNECT_TIMEOUT set by environment to [600]s")
    assert placement.late_entry(replace(BASE, facts=[longer, *facts])) == []  # type: ignore[list-item]


def test_a_list_of_users_of_the_same_gpu() -> None:
    """The process that the out-of-memory message of rank 0 lists is that of rank 1."""
    text = (
        "CUDA out of memory. GPU 0 has a total capacity of 79 GiB. Process 41 has 30 GiB memory in use. "
        "Process {} has 40 GiB memory in use."
    )
    context = replace(BASE, facts=[fact(text.format(42), 0)], pids={41: {0}, 42: {1}})
    inferences = placement.memory_shared(context)
    assert [(one.fields["rule"], one.origin.rank) for one in inferences] == [("shared-device", 0), ("shared-device", 1)]
    assert placement.memory_shared(replace(context, facts=[fact(text.format(99), 0)])) == []


def test_a_world_of_one_on_each_host() -> None:
    """Hosts that each hold rank 0 of a world of 1 did not meet; on one host that is an ordinary job."""
    context = replace(BASE, world_size=1, ranks=frozenset({0}), hosts={0: ["a", "b"]})
    files = [fact("x", 0, host="a", source="1"), fact("y", 0, host="b", source="2")]
    assert [one.fields["rule"] for one in placement.single_process(replace(context, facts=files))] == [
        "split-rendezvous"
    ]
    assert placement.single_process(replace(context, facts=files, hosts={0: ["a"]})) == []
    assert placement.single_process(replace(context, facts=[fact("x", 0, host="a"), fact("y", 0, host="b")])) == []


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
