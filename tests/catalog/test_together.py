"""Leaves asked together give what each of them gives alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from triage.catalog import together
from triage.catalog.facts import distinct
from triage.catalog.model import Leaf
from triage.catalog.together import Together
from triage.model.evidence import Evidence, Origin

LEAVES = [
    Leaf(text=r"Timeout=(?P<t>600)\) ran for (?P<ran>7\d\d)"),
    Leaf(text=r"Timeout=(?P<t>300)\) ran for (?P<ran>[45]\d\d)"),
    Leaf(text=r"Xid (?P<xid>\d+)", values={"xid": ("79", "48")}),
    Leaf(text=r"Xid (?P<xid>\d+)", values={"xid": ("31",)}),
    Leaf(text=r"work: 1\b", not_text=r"done 1"),
    Leaf(text=r"ran", fields={"op": "sum|max"}),
    Leaf(fields={"code": "-9|137"}),
    Leaf(fields={"code": r"(?P<code>-\d+)", "op": "sum"}),
    Leaf(not_text="1"),
]
TEXTS = st.one_of(
    st.builds("Timeout={}) ran for {}".format, st.sampled_from([300, 600]), st.integers(400, 799)),
    st.builds("Xid {} then Xid {}".format, st.sampled_from([31, 48, 79, 43]), st.sampled_from([31, 48, 79, 43])),
    st.builds("work: {} done {}".format, st.integers(0, 2), st.integers(0, 2)),
)
FIELDS = st.dictionaries(st.sampled_from(["op", "code"]), st.sampled_from(["sum", "max", "-9", "-6", "137"]))


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXTS, FIELDS), min_size=1, max_size=12))
def test_before_and_after_the_automaton_the_answer_is_that_of_each_leaf(
    given_: list[tuple[str, dict[str, str]]],
) -> None:
    """The first texts are tested one by one, later ones through the automaton and from memory."""
    facts = distinct(
        [Evidence("message", "x", text, Origin(), "f", n, 0, fields) for n, (text, fields) in enumerate(given_)]
    )
    asked = Together(list(enumerate(LEAVES)))
    for _ in range(together.WORTH // len(facts) + 2):
        for fact in facts:
            plain = [
                (number, leaf, found) for number, leaf in enumerate(LEAVES) if (found := fact.test(leaf)) is not None
            ]
            assert sorted(asked.holding(fact), key=lambda held: held[0]) == plain
