"""Leaves asked together give what each of them gives alone."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from triage.catalog import leaf_group
from triage.catalog.distinct_evidence import group_evidence
from triage.catalog.leaf_group import LeafGroup
from triage.catalog.model import Leaf
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
def test_a_group_gives_the_matches_of_its_leaves(
    cases: list[tuple[str, dict[str, str]]],
) -> None:
    """The result is that of each leaf, before and after the automaton is built."""
    facts = group_evidence(
        [Evidence("message", "x", text, Origin(), "f", n, 0, fields) for n, (text, fields) in enumerate(cases)]
    )
    group = LeafGroup(list(enumerate(LEAVES)))
    for _ in range(leaf_group.TEXTS_BEFORE_AUTOMATON // len(facts) + 2):
        for fact in facts:
            plain = [
                (number, leaf, result) for number, leaf in enumerate(LEAVES) if (result := fact.test(leaf)) is not None
            ]
            assert sorted(group.find_matches(fact), key=lambda held: held[0]) == plain
