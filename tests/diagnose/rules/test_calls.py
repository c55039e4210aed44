"""Which collective each rank was in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diagnose.factories import TIMEOUT, fact, raised
from triage.diagnose.context import RuleContext
from triage.diagnose.rules import calls
from triage.model.details import InferenceDetail
from triage.model.evidence import Evidence


def timed_out(
    rank: int,
    *,
    seq: int = 7,
    op: str = "ALLREDUCE",
    numel: int = 64,
    group: str = "0 PG GUID 0(default_pg)",
    ran: int = 600_010,
) -> Evidence:
    """Return what torch ≥ 2.5 prints."""
    return fact(
        f"[PG ID {group} Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, "
        f"OpType={op}, NumelIn={numel}, "
        f"NumelOut={numel}, Timeout(ms)=600000) ran for {ran} milliseconds before timing out.",
        rank,
        component="c10d",
    )


def context(facts: Sequence[Evidence], size: int = 4) -> RuleContext:
    """Return a context in which all facts are waits."""
    return RuleContext(facts, {"waiting": list(range(len(facts)))}, frozenset(range(size)), size, frozenset())


def summary(inferences: Sequence[Evidence]) -> tuple[str, list[int | None], str]:
    """Return rule, ranks and basis of a conclusion."""
    detail = inferences[0].detail
    assert isinstance(detail, InferenceDetail)
    return detail.rule, [one.origin.rank for one in inferences], detail.basis


def test_a_watchdog_that_did_not_run() -> None:
    """It saw after 823 s what should have ended after 600 s, and the others did not; a few seconds more are usual."""
    facts = [timed_out(rank, ran=823_590 if rank == 1 else 600_044) for rank in range(4)]
    assert summary(calls.watchdog_starved(context(facts))) == ("watchdog-starved", [1], "measured")
    facts = [timed_out(rank, ran=720_000 if rank == 1 else 600_044) for rank in range(4)]
    assert calls.watchdog_starved(context(facts)) == []


def test_where_all_watchdogs_are_late_none_is_starved() -> None:
    """A suspended job, or a timeout that the line misprints; a single late line has none to compare with."""
    assert calls.watchdog_starved(context([timed_out(rank, ran=823_590) for rank in range(4)])) == []
    assert calls.watchdog_starved(context([timed_out(0, ran=823_590)])) == []


def test_a_rank_that_waits_at_another_number_is_not_starved() -> None:
    """Rank 7 is far behind rank 0, and its watchdog saw its timeout in time."""
    facts = [timed_out(rank, seq=8 if rank == 7 else 4120) for rank in range(8)]
    assert calls.watchdog_starved(context(facts, 8)) == []


def test_rank_zero_alone_elsewhere_is_a_condition_on_the_rank() -> None:
    """Rank 0 in a barrier, the others in an all-reduce; another rank there is no such condition."""
    facts = [raised(TIMEOUT, rank, op="all_reduce", file="/w/train.py", line="20") for rank in (1, 2, 3)]
    alone = raised(TIMEOUT, 0, op="barrier", file="/w/train.py", line="33")
    assert summary(calls.divergent_call(context([alone, *facts]))) == ("rank-conditional", [0], "absence")
    facts = [raised(TIMEOUT, rank, op="all_reduce", file="/w/train.py", line="20") for rank in (0, 1, 2)]
    other = raised(TIMEOUT, 3, op="barrier", file="/w/train.py", line="33")
    assert summary(calls.divergent_call(context([*facts, other]))) == ("divergent-call", [3], "absence")


@pytest.mark.parametrize(("op", "rank", "is_sure"), [("broadcast", None, False), ("all_gather", 3, True)])
def test_a_call_that_others_may_have_passed_names_no_rank(op: str, rank: int | None, *, is_sure: bool) -> None:
    """The one rank in a broadcast may wait for a rank that left it out; the others ended it before."""
    places = [("all_reduce", "20")] * 3 + [(op, "33")]
    facts = [raised(TIMEOUT, rank, op=name, file="/w/train.py", line=line) for rank, (name, line) in enumerate(places)]
    (one,) = calls.divergent_call(context(facts))
    assert isinstance(one.detail, InferenceDetail)
    assert (one.origin.rank, one.detail.uncertainty == "") == (rank, is_sure)


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (["all_reduce", "barrier"], [None]),
        (["all_reduce", "barrier"] * 2, [None]),
        (["all_reduce", "broadcast"] * 2, []),  # one of the others may have left out the broadcast
        (["all_reduce", "barrier", "all_gather", "all_gather"], []),
    ],
)
def test_two_halves_in_different_calls_name_nobody(ops: list[str], expected: list[None]) -> None:
    """Either half may be wrong: the conclusion says that the calls differ, and names no rank."""
    facts = [raised(TIMEOUT, rank, op=op, file="/w/train.py", line=str(len(op))) for rank, op in enumerate(ops)]
    inferences = calls.divergent_call(context(facts, len(ops)))
    assert [one.origin.rank for one in inferences] == expected
    assert all("ranks 1, 3" in one.text or "rank 1" in one.text for one in inferences)


@pytest.mark.parametrize(
    ("ops", "named"),
    [
        (["all_reduce", "send"], [1]),
        (["recv", "all_reduce", "all_reduce"], [0]),
        (["send", "recv", "all_reduce", "all_reduce"], []),  # they may be a pair
        (["send", "send", "all_reduce"], []),  # more in transfers than elsewhere
        (["send", "barrier", "all_reduce", "all_reduce"], []),
    ],
)
def test_half_of_a_transfer_is_named_where_all_others_are_in_one_call(ops: list[str], named: list[int]) -> None:
    """Nobody is in the other half then; the lines do not say which end left it out."""
    facts = [raised(TIMEOUT, rank, op=op, file="/w/train.py", line=str(len(op))) for rank, op in enumerate(ops)]
    inferences = calls.divergent_call(context(facts, len(ops)))
    assert [one.origin.rank for one in inferences] == named
    assert all(isinstance(one.detail, InferenceDetail) and "peer" in one.detail.uncertainty for one in inferences)


def in_helper(rank: int, line: int, function: str = "train") -> Evidence:
    """Return a timeout in a helper that this line of the program called."""
    frames = f'  File "/w/train.py", line {line}, in {function}\n  File "/w/helper.py", line 9, in average\n'
    timeout = raised(TIMEOUT, rank, op="all_reduce", file="/w/helper.py", line="9")
    return replace(timeout, excerpt=f"Traceback (most recent call last):\n{frames}{TIMEOUT}")


def test_callers_of_one_line_tell_two_calls_apart() -> None:
    """One rank came to the helper by another line of the same function; by another function says nothing."""
    inferences = calls.divergent_call(context([in_helper(rank, 31 if rank == 2 else 30) for rank in range(4)]))
    assert summary(inferences) == ("divergent-call", [2], "absence")
    assert "rank 2 in all_reduce at helper.py:9 from train.py:31" in inferences[0].text
    facts = [in_helper(rank, 31, "work") if rank == 2 else in_helper(rank, 30) for rank in range(4)]
    assert calls.divergent_call(context(facts)) == []


REACHED = (
    "Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0.\n{}"
)
LATE = "Timed out waiting 5000ms for send operation to complete"


@pytest.mark.parametrize(
    ("missed", "number", "error", "named"),
    [
        ("1", 1, LATE, [1]),
        ("2", 1, LATE, []),  # rank 2 says nothing: it is absent
        ("1", 0, LATE, []),  # the numbers are those of a smaller group
        ("1", 1, "Connection closed by peer", []),  # it may only have come late
        ("1, 2, 3", 1, LATE, [1]),
    ],
)
def test_a_missed_rank_that_waits_in_a_barrier_itself_is_in_another_group(
    missed: str, number: int, error: str, named: list[int]
) -> None:
    """Rank 0 misses it, and it timed out in a monitored barrier: that is one of another group."""
    facts = [raised(f"[Rank 0]: Ranks {missed} failed to pass monitoredBarrier in 5000 ms", 0)]
    facts.append(raised(REACHED.format(number, error), 1))
    assert [one.origin.rank for one in calls.in_another_group(context(facts))] == named


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("ALLGATHER [41, 8] Float/ALLGATHER [40, 8] Float", ("shape-mismatch", [0, 1], "measured")),
        ("ALLGATHER [8] Float/ALLGATHER [8] Float/BROADCAST [9] Half", ("divergent-call", [2], "measured")),
        ("ALLGATHER [8] Float/ALLGATHER [8] Half/ALLGATHER [8] Float", ("dtype-mismatch", [1], "measured")),
        ("ALLGATHER [8] Float/ALLGATHER [8] Float", None),
        ("ALLGATHER [8] Float", None),
    ],
)
def test_fingerprints_of_the_ranks_show_what_differs(parts: str, expected: object) -> None:
    """The kind comes before the shape and the shape before the dtype; equal calls and a call alone show nothing."""
    form = (
        "Rank {} is running inconsistent collective: CollectiveFingerPrint(OpType={}, TensorShape={}, TensorDtypes={},"
    )
    facts = []
    for rank, part in enumerate(parts.split("/")):
        op, shape, dtype = part.partition(" ")[0], part[part.index("[") : part.index("]") + 1], part.rpartition(" ")[2]
        facts.append(fact(form.format(rank, op, shape, dtype), rank))
    inferences = calls.differing_fingerprints(context(facts, len(facts)))
    assert (summary(inferences) if inferences else None) == expected
