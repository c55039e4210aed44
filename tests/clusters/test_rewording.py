"""When two headlines are one cause in other words, and when they are two causes in similar words."""

from __future__ import annotations

import dataclasses

import pytest

from triage.clusters import Clusters, fingerprint
from triage.model.evidence import Evidence, Origin


def raised(text: str, function: str = "check", file: str = "/job/plan.py", code: str = "raise Refused(") -> Evidence:
    """Return an exception whose innermost frame of the job is `function`."""
    name = text.partition(":")[0].rpartition(".")[2]
    fields = {"type": name, "function": function, "file": file, "message": text.partition(": ")[2], "code": code}
    return Evidence("exception", "Python", text, Origin(), "x.log", 0, fields=fields)


def printed(text: str, fields: dict[str, str] | None = None) -> Evidence:
    return Evidence("terminate", "Go", text, Origin(), "x.log", 0, fields=fields or {})


def ways(*facts: Evidence) -> list[str]:
    """Return how each failure joins, in this order; in the other one as many clusters must come out."""
    clusters, others = Clusters(), Clusters()
    assigned = [clusters.assign(fingerprint(fact)) for fact in facts]
    again = [others.assign(fingerprint(fact)) for fact in reversed(facts)]
    assert len({clusters.resolve(one.cluster) for one in assigned}) == len(
        {others.resolve(one.cluster) for one in again}
    )
    return [one.how for one in assigned]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("plan.Refused: stage was drained of tokens by rows", "plan.Refused: rows drain tokens: the stage stops"),
        ("plan.Refused: block size 8 is not supported", "plan.Refused: unsupported block_size 8"),
    ],
)
def test_another_order_of_the_same_words_at_one_place_is_the_same(first: str, second: str) -> None:
    """A sentence that a release words anew joins the cluster of the old one, and the reason names the place."""
    assert ways(raised(first), raised(second)) == ["new", "reworded"]
    clusters = Clusters()
    clusters.assign(fingerprint(raised(first)))
    assert "in other words for the same of plan.py:check" in clusters.assign(fingerprint(raised(second))).why[0]


@pytest.mark.parametrize(
    ("second", "function"),
    [
        ("plan.Refused: the layers cannot be divided by pipeline ranks", "check"),  # words in each other's place
        ("plan.Refused: tensor ranks must be a divisor of heads", "other"),  # another function
        ("plan.Spent: tensor ranks cannot divide the heads", "check"),  # another class
    ],
)
def test_another_noun_function_or_class_is_another_cause(second: str, function: str) -> None:
    """Two conditions that are written alike stay two clusters."""
    assert (
        ways(raised("plan.Refused: the heads cannot be divided by tensor ranks"), raised(second, function))[1] == "new"
    )


def test_half_of_the_words_is_enough_and_less_is_not() -> None:
    """Two of four words join, two of five do not. Words that only report, as `want`, do not count."""
    first = "plan.Refused: want alpha beta"
    assert ways(raised(first), raised("plan.Refused: alpha beta gamma delta expected"))[1] == "reworded"
    assert ways(raised(first), raised("plan.Refused: alpha beta gamma delta golf expected"))[1] == "new"


def test_in_another_function_of_the_file_three_quarters_must_agree() -> None:
    """A function that a release renames keeps the cluster if most words stay."""
    first, joined = "plan.Refused: want alpha beta gamma", "plan.Refused: alpha beta gamma delta expected"
    assert ways(raised(first), raised(joined, "verify"))[1] == "reworded"
    assert ways(raised(first), raised(joined, "verify", "/job/x.py"))[1] == "new"
    assert ways(raised(first), raised("plan.Refused: alpha beta gamma delta golf expected", "verify"))[1] == "new"


def test_each_with_a_word_of_its_own_is_another_cause() -> None:
    """Two sentences about the same things differ in what they say; another form of a word is no other word."""
    first = "plan.Refused: alpha beta gamma delta kilo was frozen"
    assert ways(raised(first), raised("plan.Refused: frozen beta alpha delta gamma lima"))[1] == "new"
    assert ways(raised(first), raised("plan.Refused: they froze alpha beta gamma delta kilo"))[1] == "reworded"


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        ("request 9 has 7 output tokens, alpha is 4", "alpha of 4 for input tokens of request 9, it has 7", "new"),
        (
            "request 9 has 7 output tokens, alpha is 4",
            "alpha of 4 for output tokens of request 9, it has 7",
            "nested",
        ),
        ("shard 3 is larger than the segment", "segment is too small for shard 3", "reworded"),
        ("shard 3 is larger than the segment", "shard 3 is smaller than the segment", "new"),
    ],
)
def test_the_opposite_of_a_word_separates_unless_both_sides_are_exchanged(first: str, second: str, how: str) -> None:
    """`output` and `input` are two causes; that `a` exceeds `b` and that `b` is below `a` is one."""
    assert ways(raised(f"plan.Refused: {first}"), raised(f"plan.Refused: {second}"))[1] == how


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        ("layer 3 saw no activations in batch 4", "in batch 4 layer 3 saw activations that are not finite", "new"),
        ("part 4 of upload 9 is missing on the server", "server has another part 4 of upload 9", "new"),
        ("option eps of alpha must be positive", "in alpha, eps is not positive as option", "reworded"),
        ("value of alpha must be given", "alpha cannot be given a value", "new"),
        ("gang of 3 alphas does not fit into pool 4", "a gang of 3 alphas cannot be fitted to pool 4", "reworded"),
    ],
)
def test_what_is_denied_must_be_the_same(first: str, second: str, how: str) -> None:
    """A sentence that denies something is the same as one that denies it too, or that says how it should be."""
    assert ways(raised(f"plan.Refused: {first}"), raised(f"plan.Refused: {second}"))[1] == how


@pytest.mark.parametrize(
    ("second", "way"),
    [
        ("ValueError: reward of sample 8 is nan", "new"),
        ("ValueError: number of rewards (7) differs from number of samples (8)", "reworded"),
    ],
)
def test_fewer_values_with_a_word_of_its_own_are_another_cause(second: str, way: str) -> None:
    """Words that only report (`expected one`) do not make up for what the other sentence says."""
    assert ways(raised("ValueError: expected one reward per sample, got 3 for 7"), raised(second))[1] == way


def test_what_a_function_could_not_do_is_no_word_of_its_own() -> None:
    """`cannot renew` says which function failed."""
    assert (
        ways(raised("a.Lost: lease 7 expired 3 s ago"), raised("a.Lost: cannot renew lease 7: it has expired"))[1]
        != "new"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "stage 3 sent grads of microbatch 7, stage 4 expected alphas",
            "stage 4 expected alphas of 8, 3 sent microbatch 7",
        ),
        ("tensor kilo of shard 3 lists alpha", "the index does not list tensor kilo of shard 3, no alpha in its lima"),
    ],
)
def test_more_words_with_fewer_values_or_a_denial_are_another_cause(first: str, second: str) -> None:
    """What a release adds keeps the values and denies nothing that was said."""
    assert ways(raised(f"plan.Refused: {first}"), raised(f"plan.Refused: {second}"))[1] == "new"


def test_where_the_place_is_a_word_of_only_one_more_must_agree() -> None:
    """For a short message of a library the place is one more word, and who called the longer one may be chance."""
    first, call = "plan.Refused: want alpha beta", "self.plan.fit()"
    assert (
        ways(raised(first, code=call), raised("plan.Refused: alpha beta gamma just expected", code=call))[1]
        == "reworded"
    )
    assert (
        ways(raised(first, code=call), raised("plan.Refused: alpha beta gamma delta expected", code=call))[1] == "new"
    )


def test_errors_of_a_component_and_sentences_without_a_class_need_more() -> None:
    """Where NCCL reports an error is chance; and two shared words are too few where no class is shared."""
    first, second = "RuntimeError: want alpha beta", "RuntimeError: alpha beta gamma expected"
    assert ways(raised(first), raised(second))[1] == "new"
    facts = raised(f"{first} gamma"), raised(f"{second} delta")
    assert ways(*facts)[1] == "reworded"
    assert ways(*(dataclasses.replace(fact, component="NCCL", kind="line") for fact in facts))[1] == "new"


def test_a_word_that_turns_the_meaning_separates() -> None:
    """`above` and `below`, and a `not` that only one has, are other causes."""
    first = raised("plan.Refused: share of rows above limit is alpha")
    assert ways(first, raised("plan.Refused: alpha limit: rows share is below it"))[1] == "new"
    locked = raised("plan.Refused: directory was found, another job has locked it")
    assert ways(locked, raised("plan.Refused: directory was not found, another job has locked it"))[1] == "new"


def test_a_failure_that_another_one_quotes_is_the_same() -> None:
    """What a caller adds in front with a colon changes nothing; two words alone are not enough."""
    inner, outer = "panic: segment of ledger is sealed", "panic: cannot append the batch: segment of ledger is sealed"
    assert ways(printed(inner), printed(outer))[1] == "reworded"
    assert ways(printed("panic: ledger sealed"), printed("panic: cannot append the batch: ledger sealed"))[1] == "new"


@pytest.mark.parametrize(
    ("second", "how"), [("head_ != tail_ ring is over-full", "reworded"), ("head_ != tail_ && open_", "new")]
)
def test_a_condition_with_a_message_is_the_condition(second: str, how: str) -> None:
    """A message behind a failed check joins; a condition that goes on is another one."""
    crash = {"crash_point": "p-1", "crash_kind": "check"}
    one, other = (printed("F check", {**crash, "message": text}) for text in ("head_ != tail_", second))
    assert ways(one, other)[1] == how


def test_all_places_of_a_sentence_count() -> None:
    """A release moves a sentence to another file, and words it anew there: one cluster, in any order."""
    old, moved = raised("plan.Refused: want alpha beta"), raised("plan.Refused: want alpha beta", file="/job/x.py")
    new = raised("plan.Refused: alpha beta gamma delta expected", file="/job/x.py")
    assert ways(old, moved, new) == ["new", "exact", "reworded"]
    assert ways(old, new, moved) == ["new", "new", "exact"]
    clusters = Clusters()
    first, second, third = (clusters.assign(fingerprint(one)) for one in (old, new, moved))
    assert third.joins == (second.cluster,)
    assert clusters.resolve(second.cluster) == first.cluster


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        ("flag alpha of beta is not set", "flag alpha of beta is set", "new"),
        ("flag alpha of beta was not given", "flag alpha of beta must be given", "reworded"),
        ("alpha beta is not known", "unknown alpha beta", "nested"),
        ("alpha beta is unknown", "alpha beta is required", "new"),
        ("alpha 7 of beta is missing", "alpha 7 of beta has no gamma", "new"),
        ("alpha of beta exited before it was ready", "alpha of beta was not ready when it exited", "reworded"),
        ("alpha of beta was freed before use", "alpha of beta was not freed", "new"),
        ("no alphas are left in the beta gamma", "the alphas of beta gamma are used up", "reworded"),
        ("alpha of beta gamma is over delta", "alpha of beta gamma is under delta", "new"),
    ],
)
def test_what_is_wrong_with_a_thing_must_be_the_same(first: str, second: str, how: str) -> None:
    """Common words say it in several forms; what is missing, unknown and required are three causes."""
    assert ways(raised(f"plan.Refused: {first}"), raised(f"plan.Refused: {second}"))[1] == how


def test_lines_of_one_part_of_a_program_may_be_worded_anew() -> None:
    """A program that names itself is the place of its lines; another part of it says another thing."""

    def line(text: str) -> Evidence:
        return Evidence("ending", "any", text, Origin(), "x.log", 0)

    first = line("[agent/drain] rank=0 ERROR: alpha beta gamma delta lima")
    assert ways(first, line("[agent-ng/drain] rank=3 ERROR: delta wants alpha, gamma beta"))[1] == "reworded"
    assert ways(first, line("[agent/boot] rank=3 ERROR: delta wants alpha, gamma beta"))[1] == "new"


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        (
            "store: lease: archived volume of shard seven is attached to the spare node",
            "pump: archived volume of shard seven is attached to the spare node",
            "reworded",
        ),
        ("store: lease: volume of shard is gone today", "pump: volume of shard is gone today", "new"),
    ],
)
def test_a_long_reason_behind_other_callers_is_the_same(first: str, second: str, how: str) -> None:
    """Two headlines with one reason of six telling words at the end are one, whatever stands before it."""
    assert ways(printed(f"panic: {first}"), printed(f"panic: {second}"))[1] == how


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        ("branch on the value of a tensor", "cannot branch on a tensor's value", "reworded"),
        ("branch on a value must be given a tensor", "cannot branch on a given tensor value", "new"),
    ],
)
def test_a_refusal_may_name_only_what_is_refused(first: str, second: str, how: str) -> None:
    """`cannot` in front of the same words changes nothing, unless the other sentence says what should be."""
    assert ways(raised(f"plan.Refused: {first}"), raised(f"plan.Refused: {second}"))[1] == how
