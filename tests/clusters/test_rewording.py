"""When two headlines are one cause in other words, and when they are two causes in similar words."""

from __future__ import annotations

import pytest

from triage.clusters import Clusters, fingerprint
from triage.model.evidence import Evidence, Origin


def raised(text: str, function: str = "check", file: str = "/job/plan.py") -> Evidence:
    """Return an exception whose innermost frame of the job is `function`."""
    name = text.partition(":")[0].rpartition(".")[2]
    fields = {"type": name, "function": function, "file": file, "message": text.partition(": ")[2]}
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
    """Four of eight words join, three of seven do not."""
    first = "plan.Refused: gamma delta alpha beta kilo lima"
    assert ways(raised(first), raised("plan.Refused: mike beta alpha delta gamma november"))[1] == "reworded"
    assert ways(raised(first), raised("plan.Refused: mike beta alpha delta november"))[1] == "new"


def test_in_another_function_of_the_file_three_quarters_must_agree() -> None:
    """A function that a release renames keeps the cluster if most words stay."""
    first = raised("plan.Refused: tokenizer of data is alpha beta gamma delta golf")
    assert ways(first, raised("plan.Refused: data alpha delta beta gamma tokenizer kilo", "verify"))[1] == "reworded"
    assert ways(first, raised("plan.Refused: data alpha beta gamma tokenizer kilo", "verify"))[1] == "new"
    assert (
        ways(first, raised("plan.Refused: data alpha delta beta gamma tokenizer kilo", "verify", "/job/x.py"))[1]
        == "new"
    )


def test_a_word_that_turns_the_meaning_separates() -> None:
    """`above` and `below`, and a `not` that only one has, are other causes."""
    first = raised("plan.Refused: share of rows above limit is alpha")
    assert ways(first, raised("plan.Refused: alpha limit: rows share is below it"))[1] == "new"
    locked = raised("plan.Refused: directory was found, another job has locked it")
    assert ways(locked, raised("plan.Refused: directory was not found, another job has locked it"))[1] == "new"


def test_each_with_a_name_of_its_own_is_another_cause() -> None:
    """Identifiers that only one of the two has separate; one that both have in another spelling does not."""
    first = raised("plan.Refused: entry router.bias of state is alpha beta gamma")
    assert ways(first, raised("plan.Refused: state alpha beta gamma has entry router.scale"))[1] == "new"
    assert ways(first, raised("plan.Refused: state alpha beta gamma has entry router_bias"))[1] == "reworded"


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
