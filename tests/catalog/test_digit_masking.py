"""Texts that differ only in digits are tested once, and the answer is the same as if each were tested."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from triage.catalog import digit_masking
from triage.catalog.distinct_evidence import group_evidence
from triage.catalog.match import Matcher, positive_leaves
from triage.catalog.model import Catalog, Leaf
from triage.model.evidence import Evidence, Origin


@pytest.mark.parametrize(
    "pattern", [r"rank (?P<r1>\d+) left", r"work: (-?\d{1,3})", r"\[[0-9a-f]+\]", r"[^\s]+ failed", r"at [\w.]+:\d+"]
)
def test_patterns_without_literal_digits_ignore_digits(pattern: str) -> None:
    """Classes of all digits, counts and names of groups have no literal digit."""
    assert digit_masking.ignores_digits(Leaf(text=pattern))


@pytest.mark.parametrize("pattern", [r"status=12\b", r"[1-9]\d* oom", r"\x31", r"Xid (4[5-7])", r"[!-~]x", r"[^1]"])
def test_patterns_with_literal_digits_do_not(pattern: str) -> None:
    """A digit, some of them, or a range that may contain some."""
    assert not digit_masking.ignores_digits(Leaf(text=pattern))


def test_conditions_on_fields_are_tested_each_time() -> None:
    """A leaf with fields, or without a text, is not masked."""
    assert not digit_masking.ignores_digits(Leaf(text="lost", fields={"op": "x"}))
    assert not digit_masking.ignores_digits(Leaf(kind="exit"))


NUMBERS = st.lists(st.integers(0, 10**6), min_size=4, max_size=4)
TEXTS = st.builds(
    lambda shape, n: shape.format(*n),
    st.sampled_from(
        [
            "[PG ID 0 PG GUID 0(default_pg) Rank {}] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum={}, OpType=ALLREDUCE, NumelIn={}, NumelOut=1, Timeout(ms)=600000) "
            "ran for {} milliseconds before timing out.",
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
def test_masking_changes_no_match(catalog: Catalog, matcher: Matcher, texts: list[str]) -> None:
    """Signatures, evidence and captures are the same as those of plain tests of every leaf."""
    evidence = [Evidence("message", "app", text, Origin(rank=n), "x", n) for n, text in enumerate(texts)]
    result = matcher.evaluate(evidence)
    plain = {
        signature.id: {
            fact.number
            for fact in group_evidence(evidence)
            for leaf in positive_leaves(signature.match)
            if fact.test(leaf) is not None
        }
        for signature in catalog.signatures
    }
    for name, match in result.items():
        assert plain[name]
        for value in match.values.values():
            assert all(any(one in text for text in texts) for one in value)
    active = (s for s in catalog.signatures if s.status != "deprecated" and not s.yields_to)
    simple = [s for s in active if isinstance(s.match, Leaf)]
    assert {s.id for s in simple if plain[s.id]} == {s.id for s in simple if s.id in result}
    assert matcher.evaluate(evidence) == result


@settings(max_examples=20)
@given(st.lists(TEXTS, max_size=6), st.integers(0, 6))
def test_evidence_in_parts_gives_the_same_matches(matcher: Matcher, texts: list[str], cut: int) -> None:
    """A session that gets the evidence in two parts ends with the matches of one evaluation."""
    evidence = [Evidence("message", "app", text, Origin(rank=n), "x", n) for n, text in enumerate(texts)]
    session = matcher.start_session()
    session.add(evidence[:cut])
    assert session.add(evidence[cut:]) == matcher.evaluate(evidence)
