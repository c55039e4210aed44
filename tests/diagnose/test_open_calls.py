"""Who is in each call, who passed it, and who is missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diagnose.factories import fact
from diagnose.watchdog_lines import dump_signal, failed_at, timed_out
from triage.diagnose.open_calls import Call, find_calls, find_members
from triage.diagnose.progress import Group, GroupProgress, OpenCall, Progress, read_progress
from triage.model.evidence import Evidence


def calls_of(facts: Sequence[Evidence], size: int = 4) -> list[Call]:
    """Return the calls of a job of this size."""
    return list(find_calls(read_progress(facts), frozenset(range(size))).values())


def tp(rank: int, seq: int = 20, op: str = "ALLREDUCE") -> Evidence:
    """Return a timeout in the tensor parallel group of a rank: 0 and 1, 2 and 3 …"""
    return timed_out(rank, seq=seq, op=op, group=f"PG ID 1 PG GUID {10 + rank // 2}(tp)", local=rank % 2)


def dp(rank: int, seq: int = 7) -> Evidence:
    """Return a timeout in the data parallel group of a rank: 0, 2 …, and 1, 3 …"""
    return timed_out(rank, seq=seq, group=f"PG ID 2 PG GUID {20 + rank % 2}(dp)", local=rank // 2)


def test_members_of_the_default_group_that_are_not_in_its_call() -> None:
    """One waits elsewhere, one enqueued less, one wrote nothing, one has passed."""
    facts = [timed_out(0), timed_out(1, seq=8), dump_signal(2, 6, 6), tp(3)]
    call = calls_of(facts, 5)[0]
    assert (call.seq, set(call.waiting), call.passed, call.behind, call.silent) == (7, {0}, {1}, {2: 6}, {4})
    assert set(call.elsewhere or ()) == {3}


def test_a_member_that_enqueued_the_call_is_not_behind() -> None:
    """It is in the call, though its watchdog printed no timeout, or past it."""
    call = calls_of([timed_out(0), failed_at(1, 8, 9, 7)], 2)[0]
    assert (call.passed, call.behind) == ({1}, {})


@pytest.mark.parametrize(("completed", "passed", "behind"), [(6, set(), {1: 6}), (7, {1}, {}), (8, {1}, {})])
def test_a_member_that_completed_the_call_is_past_it(completed: int, passed: set[int], behind: dict[int, int]) -> None:
    """Rank 0 waits in call 7."""
    call = calls_of([timed_out(0), dump_signal(1, completed, completed)], 2)[0]
    assert (set(call.passed), call.behind) == (passed, behind)


@pytest.mark.parametrize(("first", "second", "passed"), [(0, 1, {1}), (1, 0, set()), (None, 1, set())])
def test_a_member_that_waits_in_a_later_call_is_past_it(
    first: int | None, second: int | None, passed: set[int]
) -> None:
    """HCCL numbers the calls of a group from 0; calls without numbers have no order."""
    group = Group("g", "g")
    entries = [
        GroupProgress(rank, group, fact("x", rank), rank, call=OpenCall(number, "AllReduce"))
        for rank, number in enumerate((first, second))
    ]
    progress = Progress(entries, by_rank={entry.rank: (entry,) for entry in entries})
    assert next(iter(find_calls(progress, frozenset((0, 1))).values())).passed == passed


def test_two_groups_of_one_name_are_not_pooled() -> None:
    """Each tensor parallel group has its own call, whatever its number."""
    assert len(calls_of([tp(0), tp(1), tp(2, 25), tp(3, 25)])) == 2


def test_members_of_a_regular_mesh() -> None:
    """Groups of one name are equally large, and their members equally far apart."""
    facts = [tp(0), tp(1), tp(2), dp(3), dp(5)]
    members = find_members(read_progress(facts), frozenset(range(6)))
    assert {group.key: (set(ranks), whole) for group, (ranks, whole) in members.items()} == {
        "10(tp)": ({0, 1}, True),
        "11(tp)": ({2, 3}, True),
        "21(dp)": ({3, 5}, False),
    }


def test_a_rank_with_its_own_number_in_a_group_shows_the_members_before_it() -> None:
    """Rank 3 is the fourth member, so ranks 0 to 2 are the others; rank 5 as third member shows only itself."""
    for local, expected in ((3, ({0, 1, 2, 3}, True)), (2, ({3}, False))):
        facts = [timed_out(3, group="PG ID 1 PG GUID 7", local=local)]
        assert list(find_members(read_progress(facts), frozenset(range(4))).values()) == [expected]


def test_members_that_would_be_outside_of_the_job_are_not_inferred() -> None:
    """The world has no rank 5."""
    members = find_members(read_progress([tp(0), tp(1), tp(4)]), frozenset(range(5)))
    assert {group.key: whole for group, (_, whole) in members.items()} == {"10(tp)": True, "12(tp)": False}


def test_a_member_without_a_number_in_the_group_shows_only_itself() -> None:
    """Lines of HCCL may name the group and no member: that rank does not show where the others are."""
    entries = [
        GroupProgress(rank, Group(key, "tp"), fact("x", rank), local)
        for rank, key, local in ((0, "a", 0), (1, "a", 1), (2, "b", 0), (3, "b", None))
    ]
    members = find_members(Progress(entries), frozenset(range(8)))
    assert {group.key: (set(ranks), whole) for group, (ranks, whole) in members.items()} == {
        "a": ({0, 1}, True),
        "b": ({2, 3}, True),
    }


def test_transfers_are_calls_of_their_own() -> None:
    """Their numbers are counted by each rank; in a group of two the partner is known."""
    send, receive = timed_out(0, op="SEND"), timed_out(1, op="RECV")
    assert [call.is_transfer for call in calls_of([send, receive, timed_out(2)], 3)] == [True, True, False]
    assert [set(call.elsewhere or ()) for call in calls_of([send, receive], 2)] == [{1}, {0}]


def test_coalesced_calls_with_one_number_are_collectives() -> None:
    """With different numbers they may be batches of transfers."""
    coalesced = [timed_out(rank, op="COALESCED", seq=5) for rank in range(3)]
    assert [call.is_transfer for call in calls_of(coalesced, 3)] == [False]
    coalesced[1] = timed_out(1, op="COALESCED", seq=9)
    assert [call.is_transfer for call in calls_of(coalesced, 3)] == [True] * 3


def test_the_calls_of_many_groups_are_found_in_time() -> None:
    """Ten thousand ranks in 1,250 groups of eight, one of which waits for a rank."""
    facts = [timed_out(rank, group=f"PG ID 1 PG GUID {rank // 8}(tp)", local=rank % 8) for rank in range(9_999)]
    calls = calls_of(facts, 10_000)
    assert len(calls) == 1_250
    assert calls[-1].silent == {9_999}
