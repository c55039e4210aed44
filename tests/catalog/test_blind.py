"""Texts that differ only in digits are tested once, and the answer is the same as if each were tested."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.catalog import blind
from triage.catalog.facts import distinct
from triage.catalog.match import Matcher, positive_leaves
from triage.catalog.model import Catalog, Leaf
from triage.model.evidence import Evidence, Origin


@pytest.mark.parametrize(
    "pattern", [r"rank (?P<r1>\d+) left", r"work: (-?\d{1,3})", r"\[[0-9a-f]+\]", r"[^\s]+ failed", r"at [\w.]+:\d+"]
)
def test_patterns_that_spell_no_digit_are_blind(pattern: str) -> None:
    """Classes of all digits, counts and names of groups spell none."""
    assert blind.is_blind(Leaf(text=pattern))


@pytest.mark.parametrize("pattern", [r"status=12\b", r"[1-9]\d* oom", r"\x31", r"Xid (4[5-7])", r"[!-~]x", r"[^1]"])
def test_patterns_that_spell_digits_are_not(pattern: str) -> None:
    """A digit, a part of them, or a range that may hold some."""
    assert not blind.is_blind(Leaf(text=pattern))


def test_conditions_on_fields_are_tested_each_time() -> None:
    """Fields are no part of the shape."""
    assert not blind.is_blind(Leaf(text="lost", fields={"op": "x"}))
    assert not blind.is_blind(Leaf(kind="exit"))


NUMBERS = st.lists(st.integers(0, 10**6), min_size=4, max_size=4)
TEXTS = st.builds(
    lambda shape, n: shape.format(*n),
    st.sampled_from(
        [
            "[PG ID 0 PG GUID 0(default_pg) Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType=ALLREDUCE, "
            "NumelIn={}, NumelOut=1, Timeout(ms)=600000) ran for {} milliseconds before timing out.",
            "NCCL WARN NET/IB : Got completion from peer 10.0.0.{}<{}> with error {}, opcode {}, len 0, vendor err 129",
            "srun: error: node{}: task {}: Exited with exit code {} {}",
            "NVRM: Xid (PCI:0000:9b:00): {}, pid={}, name=python3, Ch {} {}",
        ]
    ),
    NUMBERS,
)


@pytest.fixture(scope="module")
def matcher(catalog: Catalog) -> Matcher:
    return Matcher(catalog)


@settings(max_examples=10)
@given(st.lists(TEXTS, max_size=4))
def test_the_answer_is_that_of_testing_each(catalog: Catalog, matcher: Matcher, texts: list[str]) -> None:
    """Signatures, their evidence and their captures are those that plain tests of every leaf give."""
    evidence = [Evidence("message", "app", text, Origin(rank=n), "x", n) for n, text in enumerate(texts)]
    found = matcher.evaluate(evidence)
    plain = {
        signature.id: {
            fact.number
            for fact in distinct(evidence)
            for leaf in positive_leaves(signature.match)
            if fact.test(leaf) is not None
        }
        for signature in catalog.signatures
    }
    for name, match in found.items():
        assert plain[name]
        for value in match.values.values():
            assert all(any(one in text for text in texts) for one in value)
    simple = [s for s in catalog.signatures if isinstance(s.match, Leaf) and s.status != "deprecated"]
    assert {s.id for s in simple if plain[s.id]} == {s.id for s in simple if s.id in found}
    assert matcher.evaluate(evidence) == found


@settings(max_examples=20)
@given(st.lists(TEXTS, max_size=6), st.integers(0, 6))
def test_evidence_in_parts_gives_the_same(matcher: Matcher, texts: list[str], cut: int) -> None:
    """A session that gets the rest later ends where one evaluation of all of it ends."""
    evidence = [Evidence("message", "app", text, Origin(rank=n), "x", n) for n, text in enumerate(texts)]
    session = matcher.begin()
    session.add(evidence[:cut])
    assert session.add(evidence[cut:]) == matcher.evaluate(evidence)
