"""How far each rank came, by the lines of its watchdogs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from diagnose.factories import fact
from diagnose.watchdog_lines import dump_signal, failed_at, timed_out
from triage.diagnose.progress import Group, GroupProgress, OpenCall, group_of, read_progress
from triage.model.evidence import Evidence


def first_groups(*facts: Evidence) -> set[str]:
    """Return the names of the groups of the first open calls of rank 0."""
    return {entry.group.name for entry in read_progress(facts).first_open[0]}


def read_one(*facts: Evidence) -> GroupProgress:
    """Return the only progress in these lines."""
    (entry,) = read_progress(facts).entries
    return entry


@pytest.mark.parametrize(
    ("work", "call"),
    [
        ("WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000)", OpenCall(None, "ALLREDUCE", (), 1_800_000, 5)),
        (
            "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, TensorShape=[2, 3], Timeout(ms)=1800000)",
            OpenCall(9, "ALLREDUCE", ("2, 3",), 1_800_000, 5),
        ),
        (
            "WorkNCCL(SeqNum=9, OpType=_ALLGATHER_BASE, NumelIn=2, NumelOut=8, Timeout(ms)=600000)",
            OpenCall(9, "_ALLGATHER_BASE", ("2", "8"), 600_000, 5),
        ),
        ("WorkHCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=1836000)", OpenCall(9, "ALLREDUCE", (), 1_836_000, 5)),
    ],
)
def test_the_call_of_every_version_is_read(work: str, call: OpenCall) -> None:
    """Torch up to 1.11 without a number, up to 2.0 with shapes, later with sizes; torch_npu with neither."""
    text = f"[Rank 3] Watchdog caught collective operation timeout: {work} ran for 5 milliseconds before timing out."
    entry = read_one(fact(text, 3))
    assert (entry.call, entry.group, entry.local_rank) == (call, Group(is_default=True), 3)


@pytest.mark.parametrize(
    ("end", "seq", "partner"),
    [("all_reduce 8 float32 of tp0 (1), call #3", 3, None), ("send 8 float32 of tp0 (1), with rank 2", None, 2)],
)
def test_the_call_of_a_replay_is_read(end: str, seq: int | None, partner: int | None) -> None:
    """A script of `triage repro` says in which call of which group each rank waits, or with which rank."""
    entry = read_one(fact(f"waits in {end}", 1))
    call = OpenCall(seq, end.split(" ")[0], ("8",), has_timed_out=False, data_type="float32")
    assert (entry.call, entry.group.name, entry.partner) == (call, "tp0 (1)", partner)


@pytest.mark.parametrize(
    "text",
    [
        "[PG 0 Rank 2] Timeout at NCCL work: 88, last enqueued NCCL work: 90, last completed NCCL work: 87.",
        "[PG 0 (default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 88, "
        "last enqueued NCCL work: 90, last completed NCCL work: 87.",
        "[PG ID 0 PG GUID 0(default_pg) Rank 2]  failure detected by watchdog at work sequence id: 88 PG status: "
        "last enqueued work: 90, last completed work: 87",
        "[PG ID 0 PG GUID 0(default_pg) Rank 2] Timeout at HCCL work: 88, last enqueued HCCL work: 90, last completed "
        "HCCL work: 87.",
    ],
)
def test_the_state_of_every_version_is_read(text: str) -> None:
    """The number at which the watchdog failed is that of the open call."""
    entry = read_one(fact(text, 2))
    assert (entry.call, entry.enqueued, entry.completed) == (OpenCall(88), 90, 87)
    assert entry.group.is_default


@pytest.mark.parametrize(("enqueued", "call"), [(512, None), (514, OpenCall(513, has_timed_out=False))])
def test_a_state_without_a_failure_shows_the_pending_call(enqueued: int, call: OpenCall | None) -> None:
    """It is the one after the last that completed, where more was enqueued."""
    assert read_one(dump_signal(2, enqueued, 512)).call == call


@pytest.mark.parametrize("at", [9, 13])
def test_a_number_outside_of_what_is_pending_is_that_of_no_call(at: int) -> None:
    """The group completed 9 and enqueued 12."""
    assert read_one(failed_at(1, at, 12, 9)).call != OpenCall(at)
    assert read_one(failed_at(1, 12, 12, 9)).call == OpenCall(12)


def test_a_call_takes_the_group_of_the_state_with_its_number() -> None:
    """The line of the timeout names no group; its rank is that in the group, and the writer is the rank."""
    entry = read_one(timed_out(5, group="", local=1), failed_at(5, 7, 9, 6, group="PG ID 1 PG GUID 3(tp)", local=1))
    assert (entry.rank, entry.group, entry.local_rank, entry.enqueued) == (5, Group("3(tp)", "tp"), 1, 9)
    assert entry.call is not None
    assert entry.call.op == "ALLREDUCE"


def test_a_call_takes_the_group_whose_pending_numbers_hold_it() -> None:
    """Of two groups, one had completed the number."""
    states = [
        failed_at(5, 9, 9, 8, group="PG ID 1 PG GUID 3(tp)"),
        dump_signal(5, 8, 6, group="PG ID 2 PG GUID 4(dp)"),
    ]
    entries = read_progress([timed_out(5, group=""), *states]).entries
    assert {entry.group.name: entry.call and entry.call.seq for entry in entries} == {"tp": 9, "dp": 7}


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("[PG 1 (undefined) Rank 0] x", "[PG 2 (undefined) Rank 1] x", False),
        ("[PG 1 (dp) Rank 0] x", "[PG 2 (dp) Rank 1] x", False),
        ("[PG 1 (dp) Rank 0] x", "[PG 1 (dp) Rank 1] x", True),
        ("[PG ID 1 PG GUID 5(dp) Rank 0] x", "[PG ID 3 PG GUID 5(dp) Rank 1] x", True),
        ("[PG ID 1 PG GUID 5(dp) Rank 0] x", "[PG ID 1 PG GUID 6(dp) Rank 1] x", False),
        ("[PG 1 Rank 0] x", "[PG 2 Rank 0] x", False),
    ],
)
def test_the_key_of_a_group_has_what_is_equal_on_all_ranks(first: str, second: str, *, is_same: bool) -> None:
    """The GUID and the description; where there is no GUID, the number, which a group without description needs."""
    assert (group_of(first) == group_of(second)) == is_same


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("[PG 0 Rank 2] x", "the default group"),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 2] x", "group default_pg"),
        ("[PG 1 Rank 2] x", "group 1"),
        ("[PG ID 1 PG GUID 5(dp) Rank 2] x", "group dp"),
        ("[Rank 2] x", "the process group"),
    ],
)
def test_a_group_is_called_by_its_description_or_number(text: str, label: str) -> None:
    """Group 0 is the default group, which a reader does not know by its number."""
    assert group_of(text).label == label


def test_one_number_of_two_groups_is_not_one_group() -> None:
    """Torch 2.3 numbers groups in each process: where two writers have the same rank in it, it is not one group."""
    facts = [timed_out(rank, group="PG 1", local=rank % 2) for rank in range(4)]
    assert len(read_progress(facts).by_group) == 4
    assert len(read_progress(facts[:2]).by_group) == 1


def test_calls_of_a_group_without_a_name_are_of_all_ranks_where_each_has_its_own_rank_in_it() -> None:
    """A writer with another rank in the group shows that the group is a smaller one."""
    assert len(read_progress([timed_out(rank, group="") for rank in range(4)]).by_group) == 1
    facts = [timed_out(rank, group="", local=rank % 2) for rank in range(4)]
    assert len(read_progress(facts).by_group) == 4
    assert {group.label for group in read_progress(facts).by_group} == {"a group that the lines do not name"}


@pytest.mark.parametrize(
    ("second", "is_one"), [({"numel": 1}, False), ({"op": "BROADCAST"}, False), ({"seq": 8}, True)]
)
def test_two_calls_of_one_number_are_of_two_groups(second: dict[str, Any], *, is_one: bool) -> None:
    """Then nothing shows which calls of other ranks belong to which; later calls are of the same group."""
    facts = [timed_out(0, group=""), timed_out(0, group="", offset=100, **second), timed_out(1, group="")]
    assert (len(read_progress(facts).by_group) == 1) is is_one


def test_a_call_without_a_name_is_of_the_named_group_of_all_ranks() -> None:
    """The lines of one rank may be cut before the name of the group: it still waits with the others."""
    facts = [timed_out(0, group="PG ID 0 PG GUID 0(default_pg)"), timed_out(1, group="")]
    assert len(read_progress(facts).by_group) == 1


@pytest.mark.parametrize(
    ("cut", "is_one"),
    [
        ({}, True),
        ({"numel": 1}, False),
        ({"op": "BROADCAST"}, False),
        ({"seq": 8}, False),
        ({"local": 0}, False),
    ],
)
def test_a_call_without_a_name_is_of_the_named_group_in_which_others_wait_in_it(
    cut: dict[str, Any], *, is_one: bool
) -> None:
    """Not another call, and not a call of a rank that the group has already."""
    named = timed_out(0, group="PG ID 3 PG GUID 7(tp)")
    assert (len(read_progress([named, timed_out(1, group="", **cut)]).by_group) == 1) is is_one


def test_a_call_without_a_name_is_of_no_group_if_ranks_wait_in_it_in_two() -> None:
    """Nor does a transfer of two other ranks show the group of one."""
    groups = [timed_out(0, group="PG 1"), timed_out(1, group="PG 2"), timed_out(2, group="")]
    assert len(read_progress(groups).by_group) == 3
    transfers = [timed_out(0, group="PG 1", op="SEND"), timed_out(2, group="", op="SEND")]
    assert len(read_progress(transfers).by_group) == 2


def test_uninitialised_numbers_are_not_known() -> None:
    """What torch 2.3 prints before anything completed is no number."""
    assert read_progress([dump_signal(1, 100, 76_280_750_235_782_912)]).entries == []
    assert read_one(dump_signal(1, 100, 1 << 40)).enqueued == 100
    assert read_progress([dump_signal(1, 100, (1 << 40) + 1)]).entries == []


@pytest.mark.parametrize(
    ("seq", "op", "enqueued", "completed", "known"),
    [
        (7, "ALLREDUCE", 9, 6, True),
        (7, "ALLREDUCE", 7, 6, True),
        (7, "ALLREDUCE", 6, 5, False),
        (7, "ALLREDUCE", 9, 7, False),
        (7, "SEND", 9, 6, False),
    ],
)
def test_the_numbers_of_a_group_that_counts_transfers_too_are_dropped(
    seq: int, op: str, enqueued: int, completed: int, *, known: bool
) -> None:
    """Torch counts transfers apart and prints the last of either: an open call must lie between the two numbers."""
    facts = [timed_out(0, seq=seq, op=op), failed_at(0, seq, enqueued, completed), failed_at(1, 7, 9, 6)]
    for entry in read_progress(facts).entries:
        assert (entry.enqueued is not None) == known


def test_the_first_open_call_began_first() -> None:
    """By the time of the line and how long the call ran; within two seconds, or without times, either may be."""
    tp, dp = "PG ID 1 PG GUID 3(tp)", "PG ID 2 PG GUID 4(dp)"
    late = timed_out(0, group=tp, ran=600_000, time=1000.0)
    early = timed_out(0, group=dp, ran=700_000, time=1000.0, offset=300)
    assert first_groups(late, early) == {"dp"}
    assert first_groups(late, timed_out(0, group=dp, ran=601_900, time=1000.0, offset=300)) == {"tp", "dp"}
    assert first_groups(late, timed_out(0, group=dp, ran=602_000, time=1000.0, offset=300)) == {"dp"}
    assert first_groups(late, timed_out(0, group=dp, ran=700_000, offset=300)) == {"tp", "dp"}


def test_a_call_that_only_counts_show_began_after_those_that_timed_out() -> None:
    """More was enqueued in the second group than completed, and its timeout was not over."""
    pending = dump_signal(0, 9, 6, group="PG ID 2 PG GUID 4(dp)")
    assert first_groups(timed_out(0, group="PG ID 1 PG GUID 3(tp)"), pending) == {"tp"}
    assert first_groups(pending) == {"dp"}


def test_the_end_of_a_process_counts_only_without_other_lines() -> None:
    """In merged files it names no rank, and may be that of another one."""
    end = replace(timed_out(0, group="PG ID 1 PG GUID 3(tp)", offset=9), kind="terminate")
    assert first_groups(timed_out(0), end) == {"default_pg"}
    assert first_groups(end) == {"tp"}


def test_what_torch_finds_when_it_compares_ranks_fills_gaps() -> None:
    """Of ranks with lines of their own these count; the report of a smaller group counts its own ranks."""
    texts = ("ranks [2] are the lagging ranks that caused this", "[1, 3] finished collective #41, but didn't join")
    report = [fact(text, 0, offset=700 + number, source="rank_0.log") for number, text in enumerate(texts)]
    entries = read_progress([timed_out(0, seq=42), dump_signal(1, 42, 41), *report]).entries
    assert [(entry.rank, entry.enqueued) for entry in entries] == [(0, None), (1, 42), (2, -1), (3, 41)]
    small = timed_out(0, group="PG ID 1 PG GUID 3(tp)")
    assert [entry.rank for entry in read_progress([small, *report]).entries] == [0]


def test_the_call_is_read_from_the_report_that_compares_ranks() -> None:
    """It names rank and number where no other line of the call is left."""
    entry = read_one(fact("\t - [0] Timeout at collective: ALLREDUCE, #77", 0))
    assert entry.call == OpenCall(77, "ALLREDUCE")


LINES = st.builds(
    lambda rank, seq, group, local, kind: (
        timed_out(rank, seq=seq, group=group, local=local)
        if kind == 0
        else failed_at(rank, seq, seq + 1, seq - 1, group=group or "PG 0", local=local)
        if kind == 1
        else dump_signal(rank, seq, seq, group=group or "PG 0", local=local)
    ),
    st.integers(0, 3),
    st.integers(1, 4),
    st.sampled_from(["", "PG ID 0 PG GUID 0(default_pg)", "PG ID 1 PG GUID 3(tp)"]),
    st.integers(0, 3),
    st.integers(0, 2),
)


@given(st.lists(LINES, max_size=10, unique_by=lambda line: (line.source, line.offset)), st.randoms())
def test_the_order_of_the_facts_does_not_matter(facts: list[Evidence], random: object) -> None:
    """Facts of the same places in any order give the same progress."""
    shuffled = list(facts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert read_progress(facts) == read_progress(shuffled)
