"""No contributed file can hang an ingest: whatever the loader accepts reads a hostile line of a megabyte in under a
second.
"""

from __future__ import annotations

import json
import time

from hypothesis import HealthCheck, given, settings, strategies as st

from tests.catalog.factories import evidence, parse_signature
from triage.catalog import literal_selection
from triage.catalog.match import Matcher
from triage.catalog.model import Catalog

MEGABYTE = 1 << 20
PIECES = (
    "a",
    "ab",
    "[ab]",
    "(a|b)",
    "a*",
    "a+",
    "(a+)+",
    "(a*)*",
    ".*",
    "(.*)*",
    "a{1,50}",
    "(ab?){2,20}",
    r"\w+",
    r"\d",
    "^",
    "$",
    "x?",
)
SEEDS = ("a", "ab", "aab", "a b ", "x" * 99 + "!", "1", "error aaa", "\u00e9a", "((((", "aaaaaaaab")
patterns = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)
leaves = st.fixed_dictionaries(
    {"text": patterns}, optional={"not_text": patterns, "fields": st.fixed_dictionaries({"f": patterns})}
)
conditions = st.one_of(
    leaves,
    st.fixed_dictionaries(
        {"any": st.lists(leaves, min_size=1, max_size=4)}, optional={"none": st.lists(leaves, max_size=2)}
    ),
    st.fixed_dictionaries({"all": st.lists(leaves, min_size=1, max_size=4)}),
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(conditions, st.sampled_from(SEEDS))
def test_a_hostile_line_is_read_in_time(condition: object, seed: str) -> None:
    """Nested repeats, alternations and gaps: RE2 reads the line once for each pattern."""
    head = "id: a.b\nrevision: 1\ntitle: t\nstatus: stable\nrole: cause\nseverity: error\n"
    signature, problems = parse_signature(f"{head}match: {json.dumps(condition)}\n", "a/b.yaml")
    if signature is None:
        assert problems  # refused is an answer too, with its reason
        return
    line = (seed * (MEGABYTE // len(seed) + 1))[:MEGABYTE]
    equipped, _, _ = literal_selection.assign_literals([signature], "")
    matcher = Matcher(Catalog("1", tuple(equipped)))
    used = time.thread_time()
    matcher.evaluate([evidence(line, f=line)])
    assert time.thread_time() - used < 1.0


def test_shipped_patterns_are_fast_on_hostile_lines(catalog: Catalog) -> None:
    """All shipped patterns take under a second on long lines made of their own literals."""
    texts = [literal for literal in catalog.literals if literal.isascii()][::160]
    for text in texts:
        line = (f"{text} " * (MEGABYTE // (len(text) + 1) + 1))[:MEGABYTE]
        used = time.thread_time()
        Matcher(catalog).evaluate([evidence(line)])
        assert time.thread_time() - used < 1.0, text
