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


def test_another_operation_at_the_same_number() -> None:
    """Three reduce, one broadcasts: the one took another way."""
    facts = [timed_out(rank, op="BROADCAST" if rank == 2 else "ALLREDUCE") for rank in range(4)]
    inferences = calls.odd_operation(context(facts))
    assert summary(inferences) == ("divergent-call", [2], "measured")
    assert "At collective 7 of default_pg, rank 2 waits in BROADCAST, the others in ALLREDUCE" in inferences[0].text


def test_another_size_of_the_same_operation() -> None:
    """Three reduce 64 elements, one 32; where sizes may differ nobody is blamed."""
    facts = [timed_out(rank, numel=32 if rank == 1 else 64) for rank in range(4)]
    assert summary(calls.odd_operation(context(facts))) == ("shape-mismatch", [1], "measured")
    facts = [timed_out(rank, op="ALLTOALL_BASE", numel=32 if rank == 1 else 64) for rank in range(4)]
    assert calls.odd_operation(context(facts)) == []


def test_a_tie_names_nobody() -> None:
    """Two against two."""
    assert (
        calls.odd_operation(
            context([timed_out(rank, op="BROADCAST" if rank < 2 else "ALLREDUCE") for rank in range(4)])
        )
        == []
    )


def test_of_two_ranks_both_are_named() -> None:
    """The only two ranks wait in different operations or sizes: nobody knows which is wrong."""
    sizes = [timed_out(rank, numel=32 + rank) for rank in range(2)]
    assert summary(calls.odd_operation(context(sizes, 2))) == ("shape-mismatch", [0, 1], "measured")
    operations = [timed_out(rank, op=("BROADCAST", "ALLREDUCE")[rank]) for rank in range(2)]
    assert summary(calls.odd_operation(context(operations, 2))) == ("divergent-call", [0, 1], "measured")
    assert calls.odd_operation(context(sizes, 3)) == []  # the third rank may have another one
    assert calls.odd_operation(context([timed_out(rank) for rank in range(2)], 2)) == []


def test_the_wrong_group() -> None:
    """Rank 3 waits in a group in which nobody else is seen."""
    facts = [timed_out(rank, group="3 PG GUID 9(tp0)" if rank == 3 else "0 PG GUID 0(default_pg)") for rank in range(4)]
    inferences = calls.odd_group(context(facts))
    assert summary(inferences) == ("wrong-group", [3], "measured")
    assert "Rank 3 waits in group tp0 while ranks 0-2 wait in group default_pg" in inferences[0].text


def test_two_groups_in_different_order() -> None:
    """All belong to both groups, as their lines of progress say: each waits for the other."""
    facts = [timed_out(rank, group="2 PG GUID 9(gb)" if rank == 2 else "1 PG GUID 8(ga)") for rank in range(4)]
    members = [
        fact(f"[PG ID 1 PG GUID {guid} Rank {rank}] last enqueued work: 3", rank)
        for rank in range(4)
        for guid in ("8(ga)", "9(gb)")
    ]
    both = RuleContext([*facts, *members], {"waiting": [0, 1, 2, 3]}, frozenset(range(4)), 4, frozenset())
    assert summary(calls.odd_group(both)) == ("group-order", [2], "measured")


def test_the_first_line_of_a_watchdog_that_names_no_group_is_no_second_wait() -> None:
    """Each rank reports its timeout twice: without and with the process group."""
    facts = [timed_out(rank, group="2 PG GUID 9(gb)" if rank == 2 else "1 PG GUID 8(ga)") for rank in range(4)]
    twice = [fact(one.text[one.text.index("] ") + 2 :], one.origin.rank, component="c10d") for one in facts]
    assert summary(calls.odd_group(context([*twice, *facts]))) == ("wrong-group", [2], "measured")


def test_of_two_ranks_in_two_groups_both_are_named() -> None:
    """The only two ranks wait in different groups; of four in two and two nobody is odd."""
    two = [timed_out(rank, group=f"{rank} PG GUID {rank}(g{rank})") for rank in range(2)]
    assert summary(calls.odd_group(context(two, 2))) == ("wrong-group", [0, 1], "measured")
    four = [timed_out(rank, group=f"{rank % 2} PG GUID {rank % 2}(g)") for rank in range(4)]
    assert calls.odd_group(context(four)) == []


def test_of_two_ranks_the_one_that_had_ended_its_epoch_is_odd() -> None:
    """Its last words tell which of the two left the training loop; where both say so, both are named."""
    sizes = context([timed_out(rank, numel=32 + rank) for rank in range(2)], 2)
    assert summary(calls.odd_operation(replace(sizes, doing={1: "epoch-over"})))[1] == [1]
    assert summary(calls.odd_operation(replace(sizes, doing={0: "epoch-over", 1: "epoch-over"})))[1] == [0, 1]


def old_wait(rank: int, seq: int) -> Evidence:
    """Return what torch before 2.3 prints: it names no process group and no last work."""
    text = f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, "
    return fact(f"{text}NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600010 milliseconds", rank)


@pytest.mark.parametrize(
    ("numbers", "rule", "ranks"),
    [
        ((110, 121, 121, 121), "lagging-rank", [0]),
        ((121, 121, 122, 121), "extra-collective", [2]),
        ((41, 121, 121, 121), "lagging-rank", [0]),
        ((40, 121, 121, 121), "divergent-call", [0]),  # so far apart are the numbers of two groups
        ((40, 40, 40, 121), "divergent-call", [3]),
        ((110, 121), "lagging-rank", [0, 1]),
        ((10, 121), "divergent-call", [0, 1]),
    ],
)
def test_numbers_of_waits_without_a_group(numbers: Sequence[int], rule: str, ranks: list[int]) -> None:
    """Older versions print only the number in which each rank waits: that shows who is behind."""
    facts = [old_wait(rank, seq) for rank, seq in enumerate(numbers)]
    assert summary(calls.numbers(context(facts, len(numbers)))) == (rule, ranks, "measured")


@pytest.mark.parametrize(("numbers", "size"), [((110, 110, 121, 121), 4), ((121, 121, 121), 3), ((110, 121, 121), 4)])
def test_numbers_of_waits_that_name_nobody(numbers: Sequence[int], size: int) -> None:
    """No majority, no difference, or a rank that does not wait, for which the others do."""
    assert calls.numbers(context([old_wait(rank, seq) for rank, seq in enumerate(numbers)], size)) == []


def test_groups_are_compared_only_when_all_wait() -> None:
    """A rank that does not wait is a better suspect."""
    facts = [timed_out(rank, group="3 PG GUID 9(tp0)" if rank == 2 else "0 PG GUID 0(default_pg)") for rank in range(3)]
    assert calls.odd_group(context(facts)) == []


def test_a_watchdog_that_did_not_run() -> None:
    """It saw after 823 s what should have ended after 600 s; a few milliseconds more are usual."""
    facts = [timed_out(rank, ran=823_590 if rank == 1 else 600_044) for rank in range(4)]
    assert summary(calls.watchdog_starved(context(facts))) == ("watchdog-starved", [1], "measured")
    assert calls.watchdog_starved(context([timed_out(0)])) == []


def test_rank_zero_alone_elsewhere_is_a_condition_on_the_rank() -> None:
    """Rank 0 in a barrier, the others in an all-reduce; another rank there is no such condition."""
    facts = [raised(TIMEOUT, rank, op="all_reduce", file="/w/train.py", line="20") for rank in (1, 2, 3)]
    alone = raised(TIMEOUT, 0, op="barrier", file="/w/train.py", line="33")
    assert summary(calls.divergent_call(context([alone, *facts]))) == ("rank-conditional", [0], "absence")
    facts = [raised(TIMEOUT, rank, op="all_reduce", file="/w/train.py", line="20") for rank in (0, 1, 2)]
    other = raised(TIMEOUT, 3, op="barrier", file="/w/train.py", line="33")
    assert summary(calls.divergent_call(context([*facts, other]))) == ("divergent-call", [3], "absence")
