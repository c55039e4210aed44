"""Rules about what somebody did not write, beyond those of test_rules.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diagnose.factories import GLOO, TIMEOUT, fact, raised
from triage.catalog.model import Leaf, Signature
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph, root_tier
from triage.diagnose.rules import absence, infer
from triage.evidence.inference import BLOCKED, HUNG, make_inferences
from triage.model import Evidence

WAITS = [raised(TIMEOUT, rank) for rank in (0, 1, 3)]
WAITING = RuleContext(WAITS, {"waiting": [0, 1, 2]}, frozenset(range(4)), 4, frozenset())
LOSING = RuleContext(
    [raised(GLOO, rank) for rank in (0, 1)], {"peer-lost": [0, 1]}, frozenset(range(4)), 4, frozenset()
)


def infer_rules(context: RuleContext) -> tuple[set[str], set[int | None]]:
    """Return the rules that fire and the ranks that they name."""
    inferences = infer(context).inferences
    return {one.fields["rule"] for one in inferences}, {one.origin.rank for one in inferences}


@pytest.mark.parametrize(
    ("doing", "rule"),
    [("compiling", "compile-skew"), ("epoch-over", "uneven-steps"), ("saving", "never-joined"), ("", "never-joined")],
)
def test_the_last_line_of_the_silent_rank_shows_why_it_did_not_come(doing: str, rule: str) -> None:
    """Its last line is about compiling, or the end of its epoch: that is the inference."""
    assert infer_rules(replace(WAITING, doing={2: doing})) == ({rule}, {2})


def test_rank_zero_has_more_to_do_than_others() -> None:
    """When only rank 0 evaluates at the end of an epoch, batches are not uneven."""
    waits = RuleContext(
        [raised(TIMEOUT, rank) for rank in (1, 2, 3)], {"waiting": [0, 1, 2]}, frozenset(range(4)), 4, frozenset()
    )
    assert infer_rules(replace(waits, doing={0: "epoch-over"})) == ({"never-joined"}, {0})


def test_when_all_end_their_epoch_batches_are_even() -> None:
    """Who waits is at the end of the epoch as well."""
    assert infer_rules(replace(WAITING, doing={2: "epoch-over", 0: "epoch-over"})) == ({"never-joined"}, {2})


def test_a_rank_that_caught_an_error_and_did_not_come_diverged() -> None:
    """The error that it caught is named."""
    caught = raised("ValueError: loss is nan", 2)
    (inference,) = infer(replace(WAITING, handled=[caught])).inferences
    assert (inference.fields["rule"], inference.origin.rank) == ("one-rank-diverged", 2)
    assert "loss is nan" in inference.text
    assert infer_rules(replace(WAITING, handled=[raised("ValueError: x", 0)])) == ({"never-joined"}, {2})


def test_the_last_step_of_the_silent_rank_is_shown_where_it_is_behind() -> None:
    """Rank 2 stopped at step 40, the others at 45."""
    (inference,) = infer(replace(WAITING, last_step={0: 45, 1: 45, 2: 40, 3: 46})).inferences
    assert "its last step is 40, that of the others 45-46" in inference.text
    (inference,) = infer(replace(WAITING, last_step={0: 45, 1: 45, 2: 45, 3: 46})).inferences
    assert "last step" not in inference.text


def stopped_logs(context: RuleContext) -> list[int | None]:
    """Return the ranks whose logs stop before those of the others."""
    return [one.origin.rank for one in absence.left_first(context) if one.fields["rule"] == "log-stopped"]


def test_the_log_that_stops_first_is_suspect() -> None:
    """Of two ranks that do not complain, the one that stopped at an earlier step."""
    steps = {0: 45, 1: 45, 2: 40, 3: 45}
    assert stopped_logs(replace(LOSING, last_step=steps)) == [2]
    assert stopped_logs(replace(LOSING, last_step={**steps, 2: 45})) == []
    assert stopped_logs(replace(LOSING, last_step=steps, finished=frozenset({2}))) == []


def test_a_log_that_goes_on_as_long_has_not_stopped() -> None:
    """It wrote as late as the others by its clock; on clocks that cannot be compared, the steps decide."""
    steps = {0: 45, 1: 45, 2: 40, 3: 45}
    times = {0: ("", 100.0), 1: ("", 100.0), 2: ("", 99.0)}
    assert stopped_logs(replace(LOSING, last_step=steps, last_time=times)) == []
    assert stopped_logs(replace(LOSING, last_step=steps, last_time={**times, 2: ("host b", 99.0)}))
    assert stopped_logs(replace(LOSING, last_step=steps, last_time={**times, 2: ("", 10.0)}))


def test_ranks_that_did_not_report_the_barrier_are_named() -> None:
    """Rank 0 waits in a monitored barrier for the rank that does not report it; where most report nothing, nothing is
    inferred.
    """
    text = "Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0."
    context = RuleContext(
        [raised(text.format(rank), rank) for rank in (1, 2, 4)], {}, frozenset(range(5)), 5, frozenset()
    )
    assert [(one.fields["rule"], one.origin.rank) for one in absence.missed_barrier(context)] == [("missed-barrier", 3)]
    assert absence.missed_barrier(replace(context, world_size=9)) == []
    assert absence.missed_barrier(replace(context, finished=frozenset({3}))) == []


@pytest.mark.parametrize(("in_own_call", "named"), [((), [3, 4]), ((3,), [4]), ((0, 3, 4), [])])
def test_ranks_that_gave_up_in_a_call_of_their_own_did_not_miss_the_barrier(
    in_own_call: tuple[int, ...], named: list[int]
) -> None:
    """Only a rank that says nothing is absent from a monitored barrier: the others wait somewhere themselves."""
    text = "Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0."
    facts = [*(raised(text.format(rank), rank) for rank in (1, 2, 5)), *(raised(TIMEOUT, rank) for rank in in_own_call)]
    matched = {"waiting": list(range(len(facts)))}
    context = RuleContext(facts, matched, frozenset(range(6)), 6, frozenset())
    assert [one.origin.rank for one in absence.missed_barrier(context)] == named


@pytest.mark.parametrize(("waiting", "suspects"), [((), (1, 2)), ((2,), (1,)), ((1, 2), ())])
def test_a_missing_rank_that_waits_itself_is_not_at_fault(waiting: tuple[int, ...], suspects: tuple[int, ...]) -> None:
    """A rank that a barrier misses may stand in a call of another group, for which it waits in vain too."""
    signature = Signature("x.y", 1, "x", "stable", "either", "error", Leaf(text="x"), indicates="awaited")
    one = Candidate(signature, None, [raised("Ranks 1, 2 failed", 0)], suspects=(1, 2))
    facts = [*one.facts, *(raised(TIMEOUT, rank) for rank in waiting)]
    matched = {"waiting": list(range(1, len(facts)))}
    absence.most_awaited(CausalGraph([one], RuleContext(facts, matched, frozenset(range(4)), 4, frozenset())))
    assert one.suspects == suspects


@pytest.mark.parametrize(("waiting", "is_symptom"), [((1, 2, 3), True), ((1, 2), False), ((1, 3), False)])
def test_a_barrier_that_misses_only_ranks_that_wait_is_a_symptom(waiting: tuple[int, ...], *, is_symptom: bool) -> None:
    """Where every rank of the job waits somewhere, none is absent; a rank that says nothing may be."""
    signature = Signature("x.y", 1, "x", "stable", "either", "error", Leaf(text="x"), indicates="awaited")
    one = Candidate(signature, None, [raised("Ranks 1, 2 failed", 0)], suspects=(1, 2))
    facts = [*one.facts, *(raised(TIMEOUT, rank) for rank in waiting)]
    matched = {"awaited": [0], "waiting": list(range(1, len(facts)))}
    absence.most_awaited(CausalGraph([one], RuleContext(facts, matched, frozenset(range(4)), 4, frozenset())))
    assert (one.is_symptom, root_tier(one) is None) == (is_symptom, is_symptom)


@pytest.mark.parametrize(("ranks", "joined", "count"), [((2,), 3, 0), ((1, 2), 3, 1), ((2,), 1, 1)])
def test_the_output_of_one_rank_does_not_show_who_is_absent(ranks: tuple[int, ...], joined: int, count: int) -> None:
    """Where other ranks joined too, their files are not here, and what happened in them is not known."""
    facts = [raised(f"RuntimeError: {joined}/4 clients joined.", rank) for rank in ranks]
    context = RuleContext(facts, {}, frozenset(ranks), 4, frozenset())
    assert len({one.text for one in absence.rank_absent(context)}) == count


@pytest.mark.parametrize(
    ("asking", "world", "named"), [((0, 1, 2), 4, [3]), ((0, 1), 4, []), ((0, 1, 2, 3), 4, []), ((0, 1, 2), 5, [])]
)
def test_all_others_create_a_group(asking: tuple[int, ...], world: int, named: list[int]) -> None:
    """The rank for whose address all others ask did not come; where not all others ask, the group may be smaller."""
    text = "torch.distributed.DistStoreError: wait timeout after 5000ms, keys: /default_pg/0//1//cpu//0/3"
    facts = [raised(text, rank) for rank in asking]
    context = RuleContext(facts, {}, frozenset(range(world)), world, frozenset())
    assert [one.origin.rank for one in absence.rank_absent(context)] == named


@pytest.mark.parametrize(("present", "rule"), [((0, 1, 3), "never-joined"), ((0, 1, 2), "rank-absent")])
def test_a_client_that_is_missing(present: tuple[int, ...], rule: str) -> None:
    """The last rank may never have been meant to be; one between others was, and did not come."""
    context = RuleContext(
        [raised("RuntimeError: 3/4 clients joined.", rank) for rank in present], {}, frozenset(present), 4, frozenset()
    )
    (inference,) = absence.rank_absent(context)
    assert (inference.fields["rule"], inference.origin.rank) == (rule, 6 - sum(present))


@pytest.mark.parametrize(
    ("unplaced", "doing", "rule"),
    [
        ({"compiling": 3}, {}, "compile-skew"),
        ({"epoch-over": 1}, {}, "uneven-steps"),
        ({"epoch-over": 2}, {}, "never-joined"),  # one of a rank that waits: all may have ended their epoch
        ({"compiling": 3}, {2: "saving"}, "never-joined"),
        ({}, {}, "never-joined"),
    ],
)
def test_last_lines_without_a_rank_are_of_the_rank_that_did_not_come(
    unplaced: dict[str, int], doing: dict[int, str], rule: str
) -> None:
    """Where its own lines do not show what it did, and as many lines show it as ranks are absent."""
    assert infer_rules(replace(WAITING, unplaced=unplaced, doing=doing)) == ({rule}, {2})


def test_a_compilation_of_all_ranks_at_the_start_explains_no_later_wait() -> None:
    """All compiled, and rank 2 made steps afterwards; without a step it may still be compiling."""
    all_compiled = replace(WAITING, doing={0: "compiling", 2: "compiling"})
    assert infer_rules(replace(all_compiled, last_step={2: 9})) == ({"never-joined"}, {2})
    assert infer_rules(all_compiled) == ({"compile-skew"}, {2})


@pytest.mark.parametrize(
    ("missing", "size", "suspects"), [("1, 2", 4, (1, 2)), ("1, 2, 3", 4, ()), ("1", 2, (1,)), ("1, 2", None, ())]
)
def test_most_ranks_missing_is_no_fault_of_theirs(missing: str, size: int | None, suspects: tuple[int, ...]) -> None:
    """A barrier that misses more than half of the ranks blames none: the few that came may be wrong."""
    text = f"[Rank 0]: Ranks {missing} failed to pass monitoredBarrier in 5000 ms"
    signature = Signature("x.y", 1, "x", "stable", "either", "error", Leaf(text="x"), indicates="awaited")
    one = Candidate(signature, None, [raised(text, 0)], suspects=tuple(map(int, missing.split(", "))))
    context = RuleContext(one.facts, {}, frozenset({0}), size, frozenset())
    absence.most_awaited(CausalGraph([one], context))
    assert one.suspects == suspects


@pytest.mark.parametrize(("suspects", "remaining"), [((3,), (3,)), ((2, 3), ())])
def test_who_names_the_missing_ranks_came_too(suspects: tuple[int, ...], remaining: tuple[int, ...]) -> None:
    """Where nothing says the rank of the writer, it counts as one that came: one missing of two, two of three."""
    signature = Signature("x.y", 1, "x", "stable", "either", "error", Leaf(text="x"), indicates="awaited")
    one = Candidate(signature, None, [raised("The tasks are unhealthy", None)], suspects=suspects)
    absence.most_awaited(CausalGraph([one], RuleContext(one.facts, {}, frozenset(), None, frozenset())))
    assert one.suspects == remaining


def stacks(*waiting: int, rule: str = BLOCKED) -> list[Evidence]:
    """Return what the stacks of these ranks show; a single one cannot be compared."""
    dump = fact("in all_reduce", kind="stack")
    return make_inferences(rule, () if rule == HUNG else waiting, "in all_reduce", dump, waiting=waiting)


@pytest.mark.parametrize(
    ("rule", "waiting", "finished", "answer"),
    [
        (BLOCKED, (0, 1, 2), {3}, ({"left-early"}, {3})),
        (BLOCKED, (0, 1), {2, 3}, ({"left-early"}, {2, 3})),  # as many: who waits is not odd
        (BLOCKED, (1,), {0, 2, 3}, ({"extra-collective"}, {1})),
        (BLOCKED, (1,), {2, 3}, ({"left-early"}, {2, 3})),  # nothing is known of rank 0
        (HUNG, (0,), {1, 2, 3}, ({"rank-conditional"}, {0})),
        ("never-joined", (0, 1, 2), {3}, (set(), set())),  # a stack outside of the collective says more
        (BLOCKED, (0, 1, 2), set(), (set(), set())),
        (HUNG, (), {3}, (set(), set())),
    ],
)
def test_ranks_that_finished_while_the_stacks_of_others_wait(
    rule: str, waiting: tuple[int, ...], finished: set[int], answer: tuple[set[str], set[int]]
) -> None:
    """Few that finished left too early; few that wait made a call which the others never make."""
    context = RuleContext(stacks(*waiting, rule=rule), {}, frozenset(range(4)), 4, frozenset())
    made = absence.done_while_others_wait(replace(context, finished=frozenset(finished)))
    assert ({one.fields["rule"] for one in made}, {one.origin.rank for one in made}) == answer


@pytest.mark.parametrize(("size", "has_gaps", "absent"), [(1024, True, {2}), (1025, True, set()), (1025, False, {2})])
def test_ranks_whose_lines_were_not_read_are_not_absent(size: int, *, has_gaps: bool, absent: set[int]) -> None:
    """In a storm of more than 1,024 ranks, one without an error may have printed it among lines that were left out."""
    others = [rank for rank in range(size) if rank != 2]
    for text, name, find in ((TIMEOUT, "waiting", absence.never_joined), (GLOO, "peer-lost", absence.left_first)):
        facts = [raised(text, rank) for rank in others]
        context = RuleContext(
            facts, {name: range(len(facts))}, frozenset(range(size)), size, frozenset(), has_gaps=has_gaps
        )
        assert {one.origin.rank for one in find(context)} == absent


@pytest.mark.parametrize(
    ("calls", "absent"),
    [
        (["recv 8 float32 of pp, with rank 0", "recv 8 float32 of pp, with rank 1"], {0}),
        (["recv 8 float32 of pp, with rank 0", "all_reduce 8 float32 of pp, call #3"], {0, 3}),
    ],
)
def test_a_transfer_waits_for_its_partner_alone(calls: list[str], absent: set[int]) -> None:
    """Of the ranks that wait in nothing, only the partner of a transfer is missed; a collective misses all members."""
    facts = [fact(f"waits in {text}", rank) for rank, text in enumerate(calls, start=1)]
    context = RuleContext(facts, {"waiting": range(2)}, frozenset(range(4)), 4, frozenset())
    assert absence.find_awaited(context)[1] == absent
