"""Who is at fault where ranks wait in collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from diagnose.factories import fact
from diagnose.watchdog_lines import DEFAULT, context_of, dump_signal, failed_at, timed_out
from triage.diagnose.context import RuleContext
from triage.diagnose.rules.waits import launched_counts, open_calls, same_call
from triage.model.details import InferenceDetail, LaunchesDetail
from triage.model.evidence import Evidence, Origin

GA, GB = "PG ID 1 PG GUID 8(ga)", "PG ID 2 PG GUID 9(gb)"


def summary(inferences: Sequence[Evidence]) -> tuple[str, list[int | None], bool] | None:
    """Return rule, ranks, and whether the numbers allow no other story."""
    if not inferences:
        return None
    detail = inferences[0].detail
    assert isinstance(detail, InferenceDetail)
    return detail.rule, [one.origin.rank for one in inferences], not detail.uncertainty


def conclude(facts: Sequence[Evidence], size: int = 4) -> tuple[str, list[int | None], bool] | None:
    """Return what follows from the calls, else from all ranks in one call."""
    context = context_of(facts, size)
    return summary(open_calls(context) or same_call(context))


def test_another_operation_at_the_same_number() -> None:
    """Three reduce, one broadcasts: the one took another way."""
    facts = [timed_out(rank, op="BROADCAST" if rank == 2 else "ALLREDUCE") for rank in range(4)]
    assert conclude(facts) == ("divergent-call", [2], True)
    (inference,) = open_calls(context_of(facts))
    assert inference.text == "At #7 of group default_pg, rank 2 waits in BROADCAST, ranks 0-1, 3 in ALLREDUCE"


@pytest.mark.parametrize(
    ("op", "sizes", "expected"),
    [
        ("ALLREDUCE", {"numel": 32}, ("shape-mismatch", [1], True)),
        ("_ALLGATHER_BASE", {"numel_out": 32}, ("shape-mismatch", [1], True)),
        ("ALLGATHER", {"numel": 32}, ("shape-mismatch", [1], True)),
        ("ALLTOALL_BASE", {"numel": 32}, None),
        ("GATHER", {"numel_out": 32}, None),
        ("COALESCED", {"numel": 32}, None),
    ],
)
def test_another_size_of_the_same_operation(op: str, sizes: Mapping[str, int], expected: object) -> None:
    """Three give 64 elements, one other sizes; where these may differ nobody is blamed."""
    facts = [timed_out(rank, op=op, **(sizes if rank == 1 else {})) for rank in range(4)]
    assert conclude(facts) == expected


def test_a_tie_names_all_and_is_not_certain() -> None:
    """Two against two, or one against one: nothing shows who is wrong."""
    facts = [timed_out(rank, op="BROADCAST" if rank < 2 else "ALLREDUCE") for rank in range(4)]
    assert conclude(facts) == ("divergent-call", [0, 1, 2, 3], False)
    text = "At #7 of group default_pg, ranks 0-1 wait in BROADCAST, ranks 2-3 in ALLREDUCE"
    assert {one.text for one in open_calls(context_of(facts))} == {text}
    assert conclude([timed_out(rank, numel=32 + rank) for rank in range(2)], 2) == ("shape-mismatch", [0, 1], False)


@pytest.mark.parametrize(
    ("odd", "size", "is_certain"), [((2,), 5, True), ((2,), 6, True), ((2, 3), 5, True), ((2, 3), 6, False)]
)
def test_several_odd_ranks_are_certain_only_if_all_show_their_call(
    odd: tuple[int, ...], size: int, *, is_certain: bool
) -> None:
    """Of five ranks with a line most reduce; a sixth without one may be of either kind."""
    facts = [timed_out(rank, op="BROADCAST" if rank in odd else "ALLREDUCE") for rank in range(5)]
    assert conclude(facts, size) == ("divergent-call", [*odd], is_certain)


def test_of_two_ranks_the_one_that_had_ended_its_epoch_is_odd() -> None:
    """Its last lines show which of the two left the training loop; where both say so, both are named."""
    context = context_of([timed_out(rank, numel=32 + rank) for rank in range(2)], 2)
    assert summary(open_calls(replace(context, doing={1: "epoch-over"}))) == ("shape-mismatch", [1], True)
    both = replace(context, doing={0: "epoch-over", 1: "epoch-over"})
    assert summary(open_calls(both)) == ("shape-mismatch", [0, 1], False)


def test_operations_without_a_number_are_compared_and_not_certain() -> None:
    """Torch up to 1.11 prints none: the ranks may wait in different calls of different groups."""
    facts = [
        replace(one, text=one.text.replace("SeqNum=7, ", ""))
        for one in (timed_out(rank, op="BROADCAST" if rank == 2 else "ALLREDUCE", group="") for rank in range(4))
    ]
    assert conclude(facts) == ("divergent-call", [2], False)


def test_the_same_number_of_two_groups_is_not_compared() -> None:
    """Each of two groups of one name has its own calls: these ranks wait for nobody who waits here."""
    facts = [
        timed_out(rank, numel=64 * (1 + rank // 2), group=f"PG ID 1 PG GUID {rank // 2 + 3}(tp)", local=rank % 2)
        for rank in range(4)
    ]
    assert conclude(facts) is None


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((110, 121, 121, 121), ("lagging-rank", [0], False)),
        ((121, 121, 122, 121), ("extra-collective", [2], False)),
        ((41, 121, 121, 121), ("lagging-rank", [0], False)),
        ((40, 121, 121, 121), ("divergent-call", [0], False)),  # so far apart are the numbers of two groups
        ((40, 40, 40, 121), ("divergent-call", [3], False)),
        ((110, 121), ("lagging-rank", [0, 1], False)),
        ((10, 121), ("divergent-call", [0, 1], False)),
        ((110, 110, 121, 121), ("lagging-rank", [0, 1, 2, 3], False)),
        ((121, 121, 121), None),
    ],
)
def test_numbers_of_calls_without_a_group(numbers: Sequence[int], expected: object) -> None:
    """Older versions print only the number in which each rank waits: that shows who is behind."""
    facts = [timed_out(rank, seq=seq, group="") for rank, seq in enumerate(numbers)]
    assert conclude(facts, len(numbers)) == expected


def test_numbers_of_a_named_group_are_of_one_group_however_far_apart() -> None:
    """The same GUID."""
    facts = [timed_out(rank, seq=40 if rank == 0 else 121) for rank in range(4)]
    assert conclude(facts) == ("lagging-rank", [0], True)


def test_other_operations_at_other_numbers() -> None:
    """Of three ranks, one waits in a call that the others have passed; of two, either may be wrong."""
    facts = [timed_out(0, seq=5), *(timed_out(rank, seq=6, op="BROADCAST") for rank in (1, 2))]
    assert conclude(facts, 3) == ("divergent-call", [0], False)
    assert conclude(facts[:2], 2) == ("divergent-call", [0, 1], False)


def test_a_call_that_ends_on_one_rank_alone_does_not_show_another_path() -> None:
    """The root of a broadcast goes on while rank 3, of which no line is left, keeps the others; an all-reduce mostly
    ends on all, so that rank 0 is a suspect.
    """
    facts = [timed_out(0, seq=8), timed_out(1, op="BROADCAST"), timed_out(2, op="BROADCAST")]
    assert conclude(facts) is None
    facts[1:] = [timed_out(rank) for rank in (1, 2)]
    assert conclude(facts) == ("extra-collective", [0], False)


def test_a_rank_that_enqueued_less_and_waits_in_nothing_did_not_come() -> None:
    """Its own line says how far it came; of two ranks, the call of the other may be one too many."""
    facts = [*(timed_out(rank) for rank in range(3)), dump_signal(3, 6, 6)]
    assert conclude(facts) == ("lagging-rank", [3], True)
    assert conclude([timed_out(0), dump_signal(1, 6, 6)], 2) == ("lagging-rank", [1], False)
    assert conclude([*(timed_out(rank) for rank in range(3)), dump_signal(3, 7, 6)]) is None


def test_where_most_enqueued_less_the_call_may_be_one_too_many() -> None:
    """Only rank 0 waits, the others enqueued one less and wait in nothing."""
    facts = [timed_out(0), *(dump_signal(rank, 6, 6) for rank in (1, 2, 3))]
    assert conclude(facts) == ("extra-collective", [0], False)


def test_a_member_without_a_line_makes_the_suspect_less_certain() -> None:
    """Rank 3 enqueued less, and no line shows what rank 4 did."""
    facts = [*(timed_out(rank) for rank in range(3)), dump_signal(3, 6, 6)]
    assert conclude(facts, 5) == ("lagging-rank", [3], False)


def test_the_wrong_group() -> None:
    """Rank 3 waits in a group in which nobody else is seen."""
    facts = [timed_out(rank, group="PG ID 3 PG GUID 9(tp0)" if rank == 3 else GA) for rank in range(4)]
    everywhere = [dump_signal(rank, 6, 6, group=GA) for rank in range(4)]
    assert conclude([*facts, *everywhere]) == ("wrong-group", [3], False)


def test_two_groups_in_different_order() -> None:
    """All belong to both groups, as their lines of progress say: each waits for the other."""
    facts = [timed_out(rank, group=GB if rank == 2 else GA) for rank in range(4)]
    own = [failed_at(rank, 7, 7, 6, group=GB if rank == 2 else GA) for rank in range(4)]
    others = [dump_signal(rank, 6, 6, group=GA if rank == 2 else GB) for rank in range(4)]
    assert conclude([*facts, *own, *others]) == ("group-order", [2], True)
    assert [one.source for one in open_calls(context_of([*facts, *own, *others]))] == ["rank_2.log"]
    behind = [dump_signal(rank, 7, 6, group=GA if rank == 2 else GB) for rank in range(4)]
    assert conclude([*facts, *own, *behind]) == ("group-order", [2], False)


def test_two_calls_in_which_nobody_is_missing() -> None:
    """All wait in both: each group has its own watchdog, so that the order of the lines shows nothing."""
    facts = [timed_out(rank, group=group, offset=at) for rank in range(4) for at, group in enumerate((GA, GB))]
    assert conclude(facts) == ("group-order", [0, 1, 2, 3], False)


def test_of_two_ranks_in_two_groups_both_are_named() -> None:
    """In a job of two, both belong to every group with a call that waits, and either may have the wrong one."""
    assert conclude([timed_out(0, group=GA), timed_out(1, group=GB)], 2) == ("wrong-group", [0, 1], False)


def test_a_chain_over_groups_ends_at_the_call_that_differs() -> None:
    """Ranks 0 and 1 wait for 2 and 3, whose own group made two different calls."""
    tp = "PG ID 1 PG GUID 11(tp)"
    facts = [timed_out(0), timed_out(1), timed_out(2, group=tp, local=0), timed_out(3, op="REDUCE", group=tp, local=1)]
    assert conclude(facts) == ("divergent-call", [2, 3], False)


def test_a_chain_over_groups_with_a_rank_that_waits_in_nothing_is_left_to_other_rules() -> None:
    """Rank 2 waits in a group of which not all members are known, and rank 3 in nothing."""
    facts = [timed_out(0), timed_out(1), timed_out(2, group="PG ID 1 PG GUID 11(tp)", local=0)]
    assert conclude(facts) is None
    assert conclude([*facts, dump_signal(3, 7, 7)]) is None


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        (("RECV", "ALLREDUCE", "ALLREDUCE"), ("p2p-mismatch", [0], False)),
        (("RECV", "RECV", "ALLREDUCE"), ("p2p-mismatch", [0, 1], False)),
        (("SEND", "RECV", "ALLREDUCE"), ("p2p-mismatch", [0, 1], False)),
        (("SEND", "RECV", "SEND"), None),
    ],
)
def test_transfers_without_their_other_half(operations: Sequence[str], expected: object) -> None:
    """The lines do not name the partner: nothing about transfers is certain, and their numbers are not compared."""
    facts = [timed_out(rank, op=op, seq=3 if op != "ALLREDUCE" else 8) for rank, op in enumerate(operations)]
    assert conclude(facts, 3) == expected


@pytest.mark.parametrize(
    ("operations", "partners", "expected"),
    [
        (("recv", "recv"), (1, 0), ("p2p-mismatch", [0, 1], True)),
        (("recv", "send"), (1, 0), None),
        (("SendRecv", "SendRecv"), (1, 0), None),
        (("recv", "recv"), (1, 2), None),
    ],
)
def test_two_ranks_that_both_receive_from_each_other(
    operations: tuple[str, str], partners: tuple[int, int], expected: object
) -> None:
    """Where the lines name the partners, equal halves of one transfer are certain, whoever else waits in nothing."""
    facts = [
        fact(f"waits in {op} 64 float32 of default_pg, with rank {partner}", rank)
        for rank, (op, partner) in enumerate(zip(operations, partners, strict=True))
    ]
    assert conclude(facts) == expected


@pytest.mark.parametrize(("kind", "is_inferred"), [("flight", False), ("stack", True)])
def test_a_dump_knows_who_waits_for_whom(kind: str, is_inferred: bool) -> None:
    """Where a flight dump says who is at fault, transfers without partners and rings of lines add nobody."""
    known = fact(
        "rank 1 waits for rank 3, which waits for rank 1",
        1,
        kind="inference",
        detail=InferenceDetail("p2p-mismatch", "measured", kind),
    )
    facts = [timed_out(0, op="RECV", seq=3), timed_out(1, op="ALLREDUCE", seq=8), known]
    assert bool(open_calls(context_of(facts, 2))) is is_inferred


def test_a_transfer_of_two_sizes() -> None:
    """The only sender and the only receiver."""
    facts = [timed_out(0, op="SEND"), timed_out(1, op="RECV", numel=32)]
    assert conclude(facts, 2) == ("shape-mismatch", [0, 1], False)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({0: (100, 99), 1: (100, 99), 2: (98, 97), 3: (100, 99)}, ("lagging-rank", [2], True)),
        ({0: (101, 99), 1: (100, 99), 2: (100, 99), 3: (100, 99)}, ("extra-collective", [0], False)),
        ({0: (100, 99), 1: (100, 99), 2: (98, 98), 3: (100, 99)}, ("lagging-rank", [2], True)),
        ({0: (512, 512), 1: (512, 512), 2: (510, 510), 3: (512, 512)}, ("lagging-rank", [2], False)),
        (dict.fromkeys(range(4), (100, 99)), ("stuck-in-collective", [0, 1, 2, 3], False)),
        (dict.fromkeys(range(4), (512, 512)), ("outside-collectives", [0, 1, 2, 3], False)),
        (dict.fromkeys(range(4), (-1, -1)), ("outside-collectives", [0, 1, 2, 3], False)),
        (dict.fromkeys(range(3), (100, 99)), None),
        ({0: (512, 512), 1: (512, 512), 2: (510, 510)}, None),
        ({0: (100, 99)}, None),
        ({0: (100, 76_280_750_235_782_912), 1: (100, 99)}, None),
    ],
)
def test_numbers_of_enqueued_and_completed_work(counts: Mapping[int, tuple[int, int]], expected: object) -> None:
    """A pending call is the one after the last completed: who is behind or ahead, or nobody."""
    assert conclude([dump_signal(rank, *count) for rank, count in counts.items()]) == expected


@pytest.mark.parametrize("counts", [(100, 99), (512, 512), (-1, -1)])
def test_one_rank_shows_nothing_of_all(counts: tuple[int, int]) -> None:
    """A rank waits for others, so where the files show one rank, others exist; two may be all that there are."""
    assert conclude([dump_signal(0, *counts)], 1) is None
    both = conclude([dump_signal(0, *counts), dump_signal(1, *counts)], 2)
    assert both is not None
    assert both[1] == [0, 1]


@pytest.mark.parametrize(
    ("ranks", "first", "group", "is_whole"),
    [
        ((0, 1, 2, 3), 0, DEFAULT, True),
        ((0, 1, 3, 4), 0, DEFAULT, False),
        ((1, 2, 3, 4), 0, DEFAULT, False),
        ((4, 5, 6, 7), 4, GA, True),
        ((4, 5, 7, 8), 4, GA, False),
        ((4, 5, 6, 7), 3, GA, False),
        ((4, 5), 4, GA, True),
        ((4,), 4, GA, False),
    ],
)
def test_a_gap_in_the_numbers_of_ranks_is_a_rank_that_may_be_missing(
    ranks: tuple[int, ...], first: int, group: str, *, is_whole: bool
) -> None:
    """Nobody is missing only where each number waits, of the job and of the group, which has several ranks."""
    facts = [dump_signal(rank, 100, 99, group=group, local=rank - first) for rank in ranks]
    context = replace(context_of(facts), ranks=frozenset(ranks), world_size=None)
    assert (summary(same_call(context)) is not None) == is_whole


def test_all_in_one_call_needs_the_numbers_of_all() -> None:
    """A timeout alone does not say what a rank completed before."""
    facts = [timed_out(rank) for rank in range(4)]
    assert conclude(facts) is None
    assert conclude([*facts, *(failed_at(rank, 7, 7, 6) for rank in range(4))]) is not None


def test_torch_s_own_comparison_names_ranks_that_had_not_started_the_call() -> None:
    """All ranks time out in it; where it names most of them, it says little."""
    text = "ranks [{}] are the lagging ranks that caused this timeout. They never joined any collectives"
    facts = [timed_out(rank) for rank in range(4)]
    report = fact(text.format("3"), 0, source="rank_0.log", offset=700)
    assert conclude([*facts, report]) == ("lagging-rank", [3], False)
    assert conclude([*facts, replace(report, text=text.format("2, 3"))]) is None


def test_ranks_that_wait_in_two_calls_are_not_in_the_same_call() -> None:
    """What torch compares in the call of most ranks does not show why another one waits elsewhere."""
    text = "ranks [3] are the lagging ranks that caused this timeout. They never joined any collectives"
    facts = [*(timed_out(rank) for rank in range(4)), fact(text, 0, source="rank_0.log", offset=700)]
    assert summary(same_call(context_of(facts))) == ("lagging-rank", [3], False)
    assert same_call(context_of([*facts, timed_out(4, group=GB)], 5)) == []


def test_an_unused_group_does_not_hide_a_pending_collective() -> None:
    """A group that never worked shows -1 on all ranks; the default group waits in a collective."""
    idle = [dump_signal(rank, -1, -1, group=GA) for rank in range(4)]
    pending = [dump_signal(rank, 512, 511) for rank in range(4)]
    assert conclude([*idle, *pending]) == ("stuck-in-collective", [0, 1, 2, 3], False)
    assert conclude(idle) == ("outside-collectives", [0, 1, 2, 3], False)


def test_a_rank_that_failed_and_waits_in_nothing_is_not_blamed_for_its_numbers() -> None:
    """What it failed with says more; one that waits aborts because of its timeout."""
    facts = [*(timed_out(rank) for rank in range(3)), dump_signal(3, 6, 6)]
    assert open_calls(replace(context_of(facts), failed=frozenset({3}))) == []
    facts[3] = timed_out(3, op="BROADCAST")
    assert summary(open_calls(replace(context_of(facts), failed=frozenset({3})))) == ("divergent-call", [3], True)


def test_calls_of_some_ranks_in_a_group_without_a_name_are_not_certain() -> None:
    """The first ranks may be those of a smaller group, in which they have the same numbers."""
    facts = [timed_out(rank, op="BROADCAST" if rank == 2 else "ALLREDUCE", group="") for rank in range(3)]
    assert conclude(facts, 3) == ("divergent-call", [2], True)
    assert conclude(facts, 8) == ("divergent-call", [2], False)
    facts = [timed_out(rank, seq=8 if rank == 2 else 7, group="") for rank in range(3)]
    assert conclude(facts, 8) == ("extra-collective", [2], False)


LINES = st.builds(
    lambda rank, seq, op, group, kind: (
        timed_out(rank, seq=seq, op=op, group=group) if kind else dump_signal(rank, seq, seq, group=group)
    ),
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from(["ALLREDUCE", "BROADCAST", "SEND", "RECV", "COALESCED"]),
    st.sampled_from(["PG ID 0 PG GUID 0(default_pg)", GA, GB]),
    st.booleans(),
)


@given(st.lists(LINES, max_size=10), st.integers(2, 8), st.randoms())
def test_any_lines_give_one_conclusion_about_ranks_of_the_job(lines: list[Evidence], size: int, random: object) -> None:
    """Whatever the lines: no error, the same answer in any order, and only ranks of the job are named."""
    placed = [replace(line, offset=100 * number) for number, line in enumerate(lines)]
    shuffled = list(placed)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    size = max([size, *(1 + (line.origin.rank or 0) for line in lines)])
    first, second = (open_calls(context_of(facts, size)) for facts in (placed, shuffled))
    assert [one.text for one in first] == [one.text for one in second]
    assert {one.origin.rank for one in first} <= set(range(size))


def test_a_context_without_lines_gives_nothing() -> None:
    """No watchdog wrote anything."""
    empty = RuleContext((), {}, frozenset(range(4)), 4, frozenset())
    assert open_calls(empty) == same_call(empty) == []


def test_counts_of_nccl_give_way_to_watchdogs_that_are_certain() -> None:
    """Rank 1 enqueued less, and rank 2 called something else: only the watchdogs' numbers show the first difference."""
    launched = [
        Evidence(
            "launches", "NCCL", "x", Origin(rank=rank), f"{rank}.log", 0, detail=LaunchesDetail("0x1", 4, rank, total)
        )
        for rank, total in enumerate((6, 5, 6, 6))
    ]
    same = [timed_out(rank) for rank in range(4)]
    assert summary(launched_counts(context_of([*launched, *same], 4))) == ("lagging-rank", [1], False)
    other = [timed_out(rank, op="BROADCAST" if rank == 2 else "ALLREDUCE") for rank in range(4)]
    assert launched_counts(context_of([*launched, *other], 4)) == []
