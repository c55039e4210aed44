"""Tests for triage.diagnose.rules.npu_waits and triage.diagnose.npu_tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.diagnose.factories import fact
from triage.diagnose.context import RuleContext
from triage.diagnose.npu_tasks import read_npu_reports
from triage.diagnose.rules import npu_waits
from triage.diagnose.rules.waits import open_calls, same_call
from triage.model.evidence import Evidence

TASK = "[TaskExecStage][Timeout][HOST]Task run failed, "


def task(
    rank: int,
    *,
    peer: int | str | None = None,
    index: int = 21,
    tag: str = "AllReduce_g",
    count: int = 8,
    at: float = 0.0,
    data_type: str = "float32",
    group: str = "g",
    member: int | None = None,
) -> list[Evidence]:
    """Return the lines of a failed task in a group, of four if it is `g`, else of two."""
    parts = [f"base information is streamID:[2], taskID[21], tag[{tag}]"]
    parts += (
        [f"para information is notify id:[0x1], stage:[ffffffff], remote rank:[{peer}]"] if peer is not None else []
    )
    parts += [
        f"groupRank information is group:[{group}], user define information[], rankSize[{4 if group == 'g' else 2}], "
        f"rankId[{rank if member is None else member}].",
        f"opData information is deviceId[{rank}], index[{index}], count[{count}], dataType[{data_type}].",
    ]
    return [
        fact(TASK + part, rank, source=f"plog-{rank}.log", offset=100 * number, time=at or None)
        for number, part in enumerate(parts)
    ]


def context(facts: Iterable[Evidence], size: int = 4, failed: Iterable[int] = ()) -> RuleContext:
    """Return a job of so many ranks with these facts."""
    return RuleContext(tuple(facts), {}, frozenset(range(size)), size, frozenset(failed))


def waiting(peers: Mapping[int, int | str]) -> list[Evidence]:
    """Return the tasks of ranks that wait for others."""
    return [one for rank, peer in peers.items() for one in task(rank, peer=peer)]


def named(inferences: Iterable[Evidence]) -> tuple[str, set[int | None]]:
    """Return the rule of inferences, and the ranks that they name."""
    made = list(inferences)
    return (made[0].fields["rule"] if made else "", {one.origin.rank for one in made})


@pytest.mark.parametrize(
    ("peers", "rule", "ranks"),
    [
        ({0: 1, 1: 2, 2: 3}, "never-joined", {3}),
        ({0: 3, 1: 3, 2: 0}, "never-joined", {3}),
        ({0: 1, 1: 0, 2: 0, 3: 2}, "wait-ring", {0, 1}),
        ({0: 1, 1: 2, 2: 3, 3: 0}, "wait-ring", {None}),
        ({0: 1}, "open-waits", {1}),
        ({0: 1, 1: 2, 2: "local"}, "open-waits", {2}),  # it waits for a signal of its own device
        ({0: 1, 1: 2, 2: 3, 3: "local"}, "open-waits", {3}),
        ({0: "local", 1: "local"}, "", set()),
    ],
)
def test_waits_lead_to_a_rank_or_into_a_ring(peers: dict[int, int | str], rule: str, ranks: set[int | None]) -> None:
    """The end of the chain did not come, or waits for itself; a ring of two is suspected, a ring of all is not."""
    assert named(npu_waits.wait_chain(context(waiting(peers)))) == (rule, ranks)


def test_the_end_that_failed_is_left_to_its_own_error() -> None:
    """Where a line says what became of the rank, the chain says nothing."""
    assert npu_waits.wait_chain(context(waiting({0: 1, 1: 2, 2: 3}), failed={3})) == []


def test_the_sentence_names_who_waits_for_whom() -> None:
    """A reader can check the waits."""
    made = npu_waits.wait_chain(context(waiting({0: 3, 1: 0})))
    assert made[0].text == "Rank 0 waits for rank 3, rank 1 for ranks that wait themselves; rank 3 reports no timeout"


def test_the_sentence_tells_a_silent_end_from_one_that_waits_for_itself() -> None:
    """A reader sees which of two ends came."""
    made = npu_waits.wait_chain(context(waiting({0: 3, 1: 2, 2: "local"})))
    assert made[0].text == (
        "Ranks 0-1 wait for ranks 2-3; rank 3 reports no timeout; rank 2 waits for a signal of its own device"
    )


def test_the_shown_line_is_of_a_rank_that_waits_for_the_end() -> None:
    """Of a chain of waits, the last one names the rank that did not come."""
    (made,) = npu_waits.wait_chain(context(waiting({0: 1, 1: 2, 2: 3})))
    assert (made.origin.rank, made.source) == (3, "plog-2.log")


def test_members_of_an_unknown_group_are_no_ranks() -> None:
    """The number of a member counts only where the group is known, or most ranks report it."""
    facts = [fact("EI0002: remote rank [3]. tag[AllReduce_x]", rank) for rank in (0, 1)]
    assert read_npu_reports(context(facts)).waits == ()
    facts += [fact("EI0002: remote rank [3]. tag[AllReduce_x]", 2)]
    assert {wait.awaited for wait in read_npu_reports(context(facts)).waits} == {3}


def test_members_of_a_smaller_group_are_mapped() -> None:
    """Member 1 of the group is the rank that entered it as member 1."""
    entry = "Entry-HcclCommInitRootInfoInner:ranks[2], rank[1], rootinfo: host ip[10.0.0.1] identifier[tp]"
    facts = [fact(entry, 3), fact("EI0002: remote rank [1]. tag[AllReduce_tp]", 2)]
    assert [(wait.rank, wait.awaited) for wait in read_npu_reports(context(facts)).waits] == [(2, 3)]


@pytest.mark.parametrize(("tag", "waits"), [("AllReduce_tp", [(2, 3)]), ("AllReduce_dp", [])])
def test_the_other_end_of_a_link_is_a_member_of_the_group_of_its_tag(tag: str, waits: list[tuple[int, int]]) -> None:
    """Member 1 of group tp is rank 3; of a group without entries the members are not known."""
    entry = "Entry-HcclCommInitRootInfoInner:ranks[2], rank[1], rootinfo: host ip[10.0.0.1] identifier[tp]"
    link = (
        "createLink para:rank[0]-localUserrank[0]-localIpAddr[10.0.0.1/2], remoteRank[1]-remoteUserrank[1]-"
        f"remoteIpAddr[10.0.0.1/3], tag[{tag}]"
    )
    reports = read_npu_reports(context([fact(entry, 3), fact(link, 2)]))
    assert [(wait.rank, wait.awaited) for wait in reports.waits] == waits


@pytest.mark.parametrize(
    "row",
    [
        "   |  192.168.1.{0}({0})   |  16666  |   192.168.1.{1}({1})   |  0  |  client  | time out |",
        "   |  192.168.1.{0}({0})   |   192.168.1.{1}({1})   |  server  | no connect |   ",  # no ports
    ],
)
def test_rows_of_the_box_count_where_numbers_are_ranks(row: str) -> None:
    """One writer whose own number is not its rank shows that the box is of another group."""
    assert [wait.awaited for wait in read_npu_reports(context([fact(row.format(3, 0), 0)])).waits] == [3]
    assert read_npu_reports(context([fact(row.format(3, 0), 0), fact(row.format(3, 1), 2)])).waits == ()


def test_memory_that_was_not_opened_is_that_of_a_device_of_the_own_host() -> None:
    """The physical id is resolved on the server of the writer; where that is not known there is no wait."""
    text = "[Wait][P2PConnected]connected p2p timeout, timeout:130 s. local logicDevid:2, remote physic id:1."
    known = {("10.0.0.1", 1): frozenset((1,)), ("10.0.0.2", 0): frozenset((8,)), ("10.0.0.2", 1): frozenset((9,))}
    for writer, waits in ((8, [(8, 9)]), (5, [])):
        job = RuleContext((fact(text, writer),), {}, frozenset(range(16)), 16, frozenset(), local=known)
        assert [(one.rank, one.awaited) for one in read_npu_reports(job).waits] == waits


def test_the_probe_names_devices() -> None:
    """What HCCL's probe found is between the ranks on these devices; a device without a known rank gives no wait."""
    text = (
        "This node (server 10.0.0.1, device ID 1) detects that srcRank (server 10.0.0.1, device ID 1) fails to connect "
        "to dstRank (server 10.0.0.2, device ID 0,1)."
    )
    local = {("10.0.0.1", 1): {1}, ("10.0.0.2", 0): {2}, ("10.0.0.2", 1): {3}}
    for unknown, waits in (
        (None, [(1, 2), (1, 3)]),
        (("10.0.0.2", 0), [(1, 3)]),
        (("10.0.0.1", 1), []),
    ):
        known = {place: ranks for place, ranks in local.items() if place != unknown}
        job = RuleContext((fact(text, 0),), {}, frozenset(range(4)), 4, frozenset(), local=known)
        assert [(wait.rank, wait.awaited) for wait in read_npu_reports(job).waits] == waits


@pytest.mark.parametrize(
    ("odd", "rule", "ranks"),
    [
        ({"index": 20}, "lagging-rank", {2}),
        ({"index": 22}, "extra-collective", {2}),
        ({"tag": "AllGather_g"}, "divergent-call", {2}),
        ({"count": 9}, "shape-mismatch", {2}),
        ({"data_type": "int8"}, "dtype-mismatch", {2}),
        ({"data_type": ""}, "", set()),  # its line does not state it
        ({}, "", set()),
    ],
)
def test_the_odd_call(odd: dict[str, Any], rule: str, ranks: set[int]) -> None:
    """The one that is behind or ahead, or differs from most, is named."""
    facts = [one for rank in range(4) for one in task(rank, **(odd if rank == 2 else {}))]
    assert named(open_calls(context(facts))) == (rule, ranks)


def test_a_rank_that_is_ahead_is_not_sure_to_be_odd() -> None:
    """Its part of the transfer may have ended before that of the others."""
    made = open_calls(context([one for rank in range(4) for one in task(rank, index=21 + rank // 3)]))
    assert "the transfer may have ended on some ranks only" in made[0].detail.uncertainty


def test_two_values_without_a_majority_name_all() -> None:
    """Of two ranks nothing shows which one is right."""
    made = open_calls(context([*task(0), *task(1, tag="AllGather_g")]))
    assert named(made) == ("divergent-call", {0, 1})


@pytest.mark.parametrize("name", ["AlltoAllV", "ALLTOALLV", "ReduceScatterV", "worldBatchSendRecv"])
def test_counts_of_uneven_calls_may_differ(name: str) -> None:
    """Ranks may give different numbers of elements to calls of vectors, and to transfers."""
    facts = [one for rank in range(4) for one in task(rank, tag=f"{name}_g", count=8 + rank // 3)]
    assert open_calls(context(facts)) == []


def test_parts_of_fused_tasks_are_joined() -> None:
    """The context of a fused task belongs to the task that the line before names."""
    parts = (
        "op information is streamID:[2], taskID[3], tag[AllReduce_g]", "context base information is taskType[Notify]",
        "context para information is notify id:[0x1], remote rank:[3], tag[AllReduce_g].",
        "groupRank information is group:[g], rankSize[4], rankId[0]", "opData information is index[7], count[8]",
    )  # fmt: skip
    head = "[TaskExceptionHandler][Callback]FFTS+ run failed, "
    facts = [fact(head + part, 0, source="plog-0.log", offset=100 * place) for place, part in enumerate(parts)]
    (read,) = read_npu_reports(context(facts)).tasks.values()
    assert (read.peer, read.group, read.member, read.index) == (3, "g", 0, 7)


@pytest.mark.parametrize(("member", "peer"), [(0, 1), (1, 0)])
def test_the_tag_of_a_transfer_names_both_ends(member: int, peer: int) -> None:
    """A rank waits for the other end."""
    facts = task(member, tag="worldCommSendRecv_0_1_g")
    facts += task(2, tag="AllReduce_g")
    assert [(one.rank, one.awaited) for one in read_npu_reports(context(facts)).waits] == [(member, peer)]


def test_a_ring_of_calls_names_the_few_in_the_call_of_all() -> None:
    """Rank 0 waits for all, and the others for it, in calls of pairs whose members the entries state."""
    groups = {"g": (0, 1, 2, 3), "p": (0, 1), "q": (2, 3), "r": (0, 2)}
    entry = "Entry-HcclCommInitRootInfoInner:ranks[{}], rank[{}], rootinfo: host ip[10.0.0.1] identifier[{}]"
    facts = [
        fact(entry.format(len(ranks), number, name), rank)
        for name, ranks in groups.items()
        for number, rank in enumerate(ranks)
    ]
    for rank, group in {0: "g", 1: "p", 2: "r", 3: "q"}.items():
        facts += task(rank, tag=f"AllReduce_{group}", group=group, member=groups[group].index(rank))
    assert named(open_calls(context(facts))) == ("group-order", {0})


@pytest.mark.parametrize(("delay", "ranks"), [(301.0, {3}), (299.0, set())])
@pytest.mark.parametrize("size", [2, 4])
def test_a_rank_that_timed_out_later_than_the_others_wait_came_late(size: int, delay: float, ranks: set[int]) -> None:
    """More than the timeout between the reports means that the last came so much later."""
    facts = [one for rank in range(4 - size, 4) for one in task(rank, at=1000.0 + delay * (rank == 3))]
    facts.append(fact("[HCCL_ENV] HCCL_EXEC_TIMEOUT set by environment to [300]s", 0))
    assert named(npu_waits.late_timeout(context(facts)))[1] == ranks


def test_half_of_the_ranks_are_not_late() -> None:
    """Of two pairs nothing shows which one is wrong."""
    facts = [one for rank in range(4) for one in task(rank, at=1000.0 + 301 * (rank > 1))]
    facts.append(fact("[HCCL_ENV] HCCL_EXEC_TIMEOUT set by environment to [300]s", 0))
    assert npu_waits.late_timeout(context(facts)) == []


def test_the_same_wait_of_all_names_nobody() -> None:
    """Who waited is said, and that nothing shows who did not come; a silent rank is left to other rules."""
    facts = [one for rank in range(4) for one in task(rank)]
    assert [(one.origin.rank, one.text) for one in same_call(context(facts))] == [
        (None, "Ranks 0-3 timed out in AllReduce #21 of group g; no line says which rank did not come")
    ]
    assert same_call(context(facts, size=5)) == []


def unnamed(ranks: Iterable[int], size: int | None = None) -> RuleContext:
    """Return a job in which messages of these ranks wait for member 2 of a communicator that nothing describes."""
    ranks = frozenset(ranks)
    facts = [
        fact("EI0002: not received from remote rank [2]. tag[AllReduce_group_name_0]", rank, source=f"plog-{rank}.log")
        for rank in sorted(ranks)
    ]
    return RuleContext(tuple(facts), {}, ranks, size, frozenset())


def test_a_rank_without_files_is_awaited_where_it_alone_is_missing() -> None:
    """Without a known size, member 2 is rank 2 if the ranks are 0 to the last one with it, not if others lack too."""
    assert {wait.awaited for wait in read_npu_reports(unnamed((0, 1, 3))).waits} == {2}
    assert {wait.awaited for wait in read_npu_reports(unnamed((0, 1))).waits} == {2}
    assert read_npu_reports(unnamed((0, 1, 4))).waits == ()
    assert read_npu_reports(unnamed((8, 9, 11))).waits == ()
    assert read_npu_reports(unnamed((0, 1), size=2)).waits == ()
