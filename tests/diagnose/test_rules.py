"""Rules across ranks: when each fires, which ranks it names, and when it must not fire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from triage.diagnose.context import RuleContext
from triage.diagnose.rules import CONCLUDING, Infer, InferenceResult, infer
from triage.diagnose.rules.absence import left_early, left_first, never_joined, rank_absent
from triage.diagnose.rules.calls import divergent_call
from triage.model import EndingDetail, Evidence

from .factories import GLOO, TIMEOUT, exited, fact, raised

WAIT = "waiting"
LOST = "peer-lost"


def context(
    facts: Sequence[Evidence],
    matched: Mapping[str, Sequence[int]],
    *,
    size: int | None = 4,
    present: Sequence[int] = (0, 1, 2, 3),
    failed: Sequence[int] = (),
    finished: Sequence[int] = (),
    one_host: bool = False,
) -> RuleContext:
    return RuleContext(facts, matched, frozenset(present), size, frozenset(failed), frozenset(finished), one_host)


def waiting(*ranks: int) -> tuple[list[Evidence], dict[str, list[int]]]:
    facts = [raised(TIMEOUT, rank, op="all_reduce", file="/w/train.py", line="20") for rank in ranks]
    return facts, {WAIT: list(range(len(facts)))}


def losing(*ranks: int) -> tuple[list[Evidence], dict[str, list[int]]]:
    facts = [raised(GLOO, rank) for rank in ranks]
    return facts, {LOST: list(range(len(facts)))}


def ranks_named_by(rule: Infer, context: RuleContext) -> list[int | None]:
    """Return the ranks that a rule names; each inference must have its rule and its ranks."""
    inferences = rule(context)
    for one in inferences:
        assert one.kind == "inference"
        assert one.component == "triage"
        assert one.fields["ranks"] == ",".join(
            str(other.origin.rank) for other in inferences if other.origin.rank is not None
        )
        assert one.text
    return [one.origin.rank for one in inferences]


def test_never_joined_names_the_silent_rank() -> None:
    """Three of four timed out: the fourth did not come."""
    assert ranks_named_by(never_joined, context(*waiting(0, 1, 3))) == [2]


def test_never_joined_counts_ranks_that_left_no_trace() -> None:
    """A rank of which no line is seen is as silent as one with lines."""
    assert ranks_named_by(never_joined, context(*waiting(0, 1, 3), present=(0, 1, 3))) == [2]


@pytest.mark.parametrize(
    "quiet",
    [
        pytest.param(context(*waiting(0, 1, 2, 3)), id="all wait"),
        pytest.param(context(*waiting(0)), id="one of four says too little"),
        pytest.param(context(*waiting(1), size=2, present=(1,)), id="only the log of one rank is there"),
        pytest.param(context(*waiting(0, 1, 3), failed=(2,)), id="the silent one failed by itself"),
        pytest.param(context([], {}), id="nobody waits"),
        pytest.param(context(*losing(0, 1, 3)), id="nobody waits, some lost a peer"),
    ],
)
def test_never_joined_is_silent(quiet: RuleContext) -> None:
    """Without a majority that waits, or with a better explanation, nobody is blamed."""
    assert ranks_named_by(never_joined, quiet) == []


def test_left_first_names_the_rank_that_lost_no_peer() -> None:
    """Everybody lost a peer except one: it went first."""
    assert ranks_named_by(left_first, context(*losing(0, 1, 3))) == [2]


def test_rules_about_silence_do_not_run_beside_a_measured_cause() -> None:
    """Where a dump or a stack shows the cause, it is not compared with who wrote nothing."""
    facts, matched = losing(0, 1, 3)
    assert infer(context(facts, matched)).fired_rules == {"left-first"}
    assert infer(context(facts, matched), is_measured=True) == InferenceResult()


def test_left_first_is_silent_beside_a_timeout() -> None:
    """Peers that close after a timeout went second."""
    facts, matched = waiting(0)
    more, _ = losing(1, 3)
    assert ranks_named_by(left_first, context([*facts, *more], {**matched, LOST: [1, 2]})) == []


@pytest.mark.parametrize(
    "quiet",
    [
        context(*losing(0, 1, 2, 3)),
        context(*losing(0)),
        context(*losing(0, 1, 3), failed=(2,)),
        context(*losing(1), size=2, present=(1,)),
        context([], {}),
    ],
)
def test_left_first_is_silent(quiet: RuleContext) -> None:
    """All complain, few complain, the one that does not has failed by itself, or only one rank's log is there."""
    assert ranks_named_by(left_first, quiet) == []


def test_divergent_call_names_the_minority() -> None:
    """All wait, one of them elsewhere in the program."""
    facts, _ = waiting(0, 1, 2)
    facts.append(raised(TIMEOUT, 3, op="all_gather", file="/w/train.py", line="33"))
    (inference,) = divergent_call(context(facts, {WAIT: [0, 1, 2, 3]}))
    assert inference.origin.rank == 3
    assert "all_gather at train.py:33" in inference.text
    assert "all_reduce at train.py:20" in inference.text


def test_divergent_call_needs_a_majority_and_everybody() -> None:
    """Half here and half there names nobody, and neither does a job of which some ranks are not seen waiting."""
    facts, _ = waiting(0, 1)
    facts += [raised(TIMEOUT, rank, op="broadcast", file="/w/train.py", line="33") for rank in (2, 3)]
    assert ranks_named_by(divergent_call, context(facts, {WAIT: [0, 1, 2, 3]})) == []
    assert ranks_named_by(divergent_call, context(facts[:3], {WAIT: [0, 1, 2]})) == []
    assert ranks_named_by(divergent_call, context(*waiting(0, 1, 2, 3))) == []


def test_left_early_names_a_rank_that_finished() -> None:
    """A rank that finished while others waited for it."""
    assert ranks_named_by(left_early, context(*waiting(0, 1, 3), finished=(2,))) == [2]


def test_left_early_names_a_rank_that_the_launcher_does_not_list() -> None:
    """On one host the launcher lists who failed: who waits for nobody and is not listed has ended well."""
    facts, matched = losing(0, 1, 3)
    facts += [exited(rank, 1) for rank in (0, 1, 3)]
    assert ranks_named_by(left_early, context(facts, matched, one_host=True)) == [2]
    assert ranks_named_by(left_early, context(facts, matched, one_host=False)) == []


@pytest.mark.parametrize(("op", "named"), [("all_reduce", [2]), ("broadcast", [])])
def test_left_early_gives_way_to_calls_that_cannot_match(op: str, named: list[int]) -> None:
    """Where those that wait called different operations at one number, it does not matter who left."""
    ops = {0: "all_reduce", 1: "all_reduce", 3: op}
    facts = [fact(f"waits in {op} 8 float32 of default_pg, call #3", rank) for rank, op in ops.items()]
    assert ranks_named_by(left_early, context(facts, {WAIT: [0, 1, 2]}, finished=(2,))) == named


@pytest.mark.parametrize(("form", "named"), [("ended with a status", [2]), ("error level", [])])
def test_a_rank_whose_last_lines_state_a_failure_did_not_end_normally(form: str, named: list[int]) -> None:
    """`budget is spent, stopping` is why it left; an exit status alone is not."""
    facts, matched = waiting(0, 1, 3)
    last = replace(
        fact("ERROR: budget is spent, stopping", 2), kind="ending", detail=EndingDetail(form, "any", "weak", 0)
    )
    job = replace(context([*facts, last], matched), doing={2: "leaving"})
    assert ranks_named_by(left_early, job) == named


@pytest.mark.parametrize(
    "quiet",
    [
        context([], {}, finished=(2,)),
        context(*waiting(0, 1, 2, 3), finished=(2,)),
        context(*waiting(0, 1, 3), finished=(2,), failed=(2,)),
    ],
)
def test_left_early_is_silent(quiet: RuleContext) -> None:
    """Nobody waits, or the one that was done waits as well or failed."""
    assert ranks_named_by(left_early, quiet) == []


@pytest.mark.parametrize(
    ("rank", "pid", "named"),
    [(2, 12, []), (None, 12, []), (None, 11, [2]), (1, 11, [2])],
)
def test_left_early_does_not_name_a_rank_that_the_launcher_stopped(
    rank: int | None, pid: int, named: list[int]
) -> None:
    """Rank 2, or a process that is none of the listed ranks, ran until the launcher stopped it."""
    facts, matched = waiting(0, 1, 3)
    facts += [exited(failed, 1, pid=10 + failed) for failed in (0, 1, 3)]
    facts.append(exited(rank, -15, signal="SIGTERM", by_agent=True, pid=pid))
    stopped = facts[-1]
    facts[-1] = replace(stopped, detail=replace(stopped.detail, exit_code=None))  # type: ignore[type-var]
    assert ranks_named_by(left_early, context(facts, matched, one_host=True)) == named


@pytest.mark.parametrize(("doing", "named"), [("leaving", [2]), ("saving", []), ("", [])])
def test_left_early_reads_last_lines(doing: str, named: list[int]) -> None:
    """A rank whose last line says that it leaves did so, whoever started it."""
    facts, matched = losing(0, 1, 3)
    assert ranks_named_by(left_early, replace(context(facts, matched), doing={2: doing})) == named


def test_rank_absent_reads_the_store_s_count() -> None:
    """The store counts three of four and three left files: the fourth never started."""
    counted = fact(
        "torch.distributed.DistStoreError: Timed out after 31 seconds waiting for clients. 3/4 clients joined."
    )
    assert ranks_named_by(rank_absent, context([counted], {}, present=(0, 1, 2))) == [3]


def test_rank_absent_names_nobody_it_cannot_tell() -> None:
    """Two files and three clients: who the absent one is cannot be known, only that there is one."""
    counted = fact("Timed out after 31 seconds waiting for clients. 3/4 clients joined.")
    assert ranks_named_by(rank_absent, context([counted], {}, present=(0, 1))) == [None]
    assert ranks_named_by(rank_absent, context([fact("Timed out. 4/4 clients joined.")], {})) == []


def test_rank_absent_reads_the_count_of_a_store_based_barrier() -> None:
    """Older versions count in a barrier; its text names the rank that waits, where no prefix does."""
    text = "Timed out initializing process group in store based barrier on rank: {}, for key: store_based_barrier_key:"
    count = "(world_size=4, num_workers_joined=3, timeout=0:10:00)"
    waits = [fact(f"{text.format(rank)}1 {count}") for rank in (0, 1, 3)]
    assert ranks_named_by(rank_absent, context(waits, {}, present=())) == [2]
    assert ranks_named_by(rank_absent, context(waits, {}, present=(0, 1, 2, 3))) == [2]
    of_group = [fact(f"{text.format(rank)}2 {count}") for rank in (0, 1, 3)]
    assert ranks_named_by(rank_absent, context(of_group, {}, present=())) == []
    complete = [fact(f"{text.format(rank)}1 {count.replace('=3,', '=4,')}") for rank in (0, 1, 3)]
    assert ranks_named_by(rank_absent, context(complete, {}, present=())) == []


def test_rank_absent_reads_the_key_that_is_waited_for() -> None:
    """All ask for the address of one rank: it is absent if it left no trace, else elsewhere if all others wait."""
    waits = [fact("wait timeout after 30000ms, keys: /default_pg/0//cpu//0/3", rank) for rank in (0, 1, 2)]
    assert ranks_named_by(rank_absent, context(waits, {}, present=(0, 1, 2))) == [3]
    elsewhere = rank_absent(context(waits, {}, present=(0, 1, 2, 3)))
    assert [(one.origin.rank, one.fields["rule"]) for one in elsewhere] == [(3, "never-joined")]
    assert ranks_named_by(rank_absent, context(waits, {}, present=range(5))) == []


def test_the_first_rule_that_fires_counts() -> None:
    """A rank that never started explains the wait better than one that is silent."""
    facts, matched = waiting(0, 1, 2)
    facts.append(fact("Timed out after 31 seconds waiting for clients. 3/4 clients joined."))
    inferences = infer(context(facts, matched, present=(0, 1, 2))).inferences
    assert {one.fields["rule"] for one in inferences} == {"rank-absent"}


RANKS = st.integers(0, 7)
FACTS = st.lists(
    st.builds(
        lambda rank, text, line: raised(text, rank, file="/w/t.py", line=line),
        st.none() | RANKS,
        st.sampled_from([TIMEOUT, GLOO]),
        st.sampled_from("12"),
    )
    | st.builds(exited, RANKS, st.sampled_from([0, 1, -9])),
    max_size=12,
)


@given(FACTS, st.sets(RANKS), st.sets(RANKS), st.sets(RANKS), st.none() | st.integers(1, 8), st.booleans())
def test_no_rule_blames_a_rank_that_is_out_of_the_world_or_failed(
    facts: list[Evidence], present: set[int], failed: set[int], finished: set[int], size: int | None, one_host: bool
) -> None:
    """Whatever the facts, a rule names ranks of this job only, and none that has an error of its own to show."""
    matched = {
        WAIT: [n for n, one in enumerate(facts) if one.text == TIMEOUT],
        LOST: [n for n, one in enumerate(facts) if one.text == GLOO],
    }
    everybody = present | finished | set(range(size or 0)) | {one.origin.rank for one in facts}
    for rule in CONCLUDING:
        for one in rule.infer(
            context(
                facts,
                matched,
                size=size,
                present=sorted(present),
                failed=sorted(failed),
                finished=sorted(finished),
                one_host=one_host,
            )
        ):
            assert one.origin.rank is None or one.origin.rank in everybody
            assert one.origin.rank not in failed
