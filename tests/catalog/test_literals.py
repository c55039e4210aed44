from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings, strategies as st

from triage.catalog.literals import MAX_BYTES, MIN_BYTES, choose_literals, required_literals

PIECES = ["abc", "Got completion", "x", " ", "é", "status=", "rank", "0"]
CLASSES = [
    ("[abc]", "abc"),
    (r"\d", "0123456789"),
    ("[a-f]", "abcdef"),
    ("[^x]", "yz- "),
    (r"[\w]", "ab_9"),
    (".", "q7é"),
    ("[xX]", "xX"),
]


def _piece(text: str) -> tuple[str, str]:
    return re.escape(text), text


def _grow(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    """Combine (pattern, matching string) pairs into larger ones."""
    pairs = st.lists(inner, min_size=1, max_size=4)
    counts = st.sampled_from(
        [("?", 0), ("?", 1), ("*", 0), ("*", 3), ("+", 1), ("+", 2), ("{2}", 2), ("{1,3}", 2), ("{2,}", 3), ("*?", 1)]
    )
    return st.one_of(
        pairs.map(lambda parts: ("".join(p for p, _ in parts), "".join(s for _, s in parts))),
        st.tuples(pairs, st.integers(0, 3)).map(
            lambda pick: ("(?:" + "|".join(p for p, _ in pick[0]) + ")", pick[0][pick[1] % len(pick[0])][1])
        ),
        st.tuples(inner, counts).map(lambda pick: (f"(?:{pick[0][0]}){pick[1][0]}", pick[0][1] * pick[1][1])),
        inner.map(lambda pick: (f"({pick[0]})", pick[1])),
        inner.map(lambda pick: (f"(?i:{pick[0]})", pick[1].swapcase() if pick[1].isascii() else pick[1])),
    )


atoms = st.one_of(
    st.sampled_from(PIECES).map(_piece),
    st.sampled_from(CLASSES).flatmap(lambda pick: st.sampled_from(pick[1]).map(lambda literals: (pick[0], literals))),
)
patterns = st.recursive(atoms, _grow, max_leaves=12)


@settings(max_examples=600, deadline=None)
@given(patterns)
def test_every_match_contains_a_string_of_every_set(case: tuple[str, str]) -> None:
    """A string that a pattern matches contains at least one literal of each candidate set."""
    pattern, text = case
    if re.fullmatch(pattern, text) is None:  # swapcase of a part inside a plain part
        return
    for literals in required_literals(pattern):
        assert any(literal in text for literal in literals), (pattern, text, literals)


@settings(max_examples=300, deadline=None)
@given(patterns, patterns)
def test_a_search_hit_contains_the_chosen_literal(first: tuple[str, str], second: tuple[str, str]) -> None:
    """What re.search finds in a longer text contains the chosen set too, and so does RE2's find."""
    re2 = pytest.importorskip("re2")
    pattern, text = f"{first[0]}.*{second[0]}", f"noise {first[1]} -- {second[1]} noise"
    chosen = choose_literals(required_literals(pattern), lambda literal: 0)
    for engine in (re, re2):
        match = engine.search(pattern, text)
        if chosen is not None and match is not None:
            assert any(literal in match.group() for literal in chosen)


@settings(max_examples=300, deadline=None)
@given(patterns)
def test_literals_have_their_bounds(case: tuple[str, str]) -> None:
    """No set is empty, no literal is empty, longer than 64 bytes or broken over lines; chosen ones have four bytes."""
    candidates = required_literals(case[0])
    for literals in candidates:
        assert literals
        assert all(0 < len(literal.encode()) <= MAX_BYTES and "\n" not in literal for literal in literals)
    chosen = choose_literals(candidates, lambda literal: random.Random(literal).randrange(3))
    assert chosen is None or all(len(literal.encode()) >= MIN_BYTES for literal in chosen)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"Got completion from peer (?P<peer>\S+) with status=(?P<status>12)\b", {"Got completion from peer "}),
        (r"(?:Missing|Unexpected) key\(s\) in state_dict", {" key(s) in state_dict"}),
        (r"connection reset|broken pipe", {"connection reset", "broken pipe"}),
        (r"first line\nsecond longer line", {"second longer line"}),
        (r"(?i)Xid", None),
        (r"(?i)ab12", {"ab12", "aB12", "Ab12", "AB12"}),
        (r"a+ error (\d+)?", {"a error "}),
        (r"[Cc]hild process", {"hild process"}),
        (r"(Open|Clos)ing", {"Opening", "Closing"}),
        (r"\d+ \w+", None),
        (r"(realloc|calloc)\(\): (invalid|corrupted)", {"(): invalid", "(): corrupted"}),
        ("längs der Wand", {"längs der Wand"}),
        ("x" * 100, {"x" * 64}),
        (r"lost (?:connection|contact)", {"lost con"}),
        (r"err(?:or \d+|no \d+) in", {"errno ", "error "}),
        (r"(?:a|b|c)bcd", {"abcd", "bbcd", "cbcd"}),
        (r"(?P<kind>read|write) error", {"read error", "write error"}),
        (r"[\x41-\x43]bcd\t\[x\]", {"Abcd\t[x]", "Bbcd\t[x]", "Cbcd\t[x]"}),
        (r"(?:abc){2}d", {"abcabcd"}),
    ],
)
def test_known_patterns(pattern: str, expected: set[str] | None) -> None:
    """The chosen literals are those that a person would choose (None: there are none)."""
    assert choose_literals(required_literals(pattern), lambda literal: 0) == (expected and frozenset(expected))


def test_rare_literals_are_preferred_to_long_ones() -> None:
    """A literal that healthy logs contain is avoided."""
    counts = {"consumed samples, ": 50, "desync": 0}
    pattern = r"consumed samples, \d+ desync"
    literals = choose_literals(required_literals(pattern), lambda literal: counts.get(literal, 0))
    assert literals == frozenset({" desync"})
    literals = choose_literals(required_literals(pattern), lambda literal: int("desync" in literal))
    assert literals == frozenset({"consumed samples, "})


def test_reuse_is_preferred() -> None:
    """A literal that another pattern needs anyway is used again, also when it is only a part."""
    candidates = required_literals(r"foo bar baz \d+ Connection closed by peer")
    assert choose_literals(candidates, lambda literal: 0, {"foo bar baz "}) == frozenset({"foo bar baz "})
    longer = required_literals(r"socket: Connection closed by peer")
    assert choose_literals(longer, lambda literal: 0, {"Connection closed"}) == frozenset({"Connection closed"})


def test_large_alternations_stay_whole() -> None:
    """Twenty branches give twenty literals, a thousand give none."""
    some, many = ([f"code-{number:04d}.*x" for number in range(count)] for count in (20, 1000))
    assert any(len(literals) >= 1 for literals in required_literals("|".join(some)))
    assert all(len(literals) <= 64 for literals in required_literals("|".join(many)))


def test_lookaround_and_backreferences_take_part_in_no_literal() -> None:
    """Only what a pattern of the engine regex consumes by itself stands in every match."""
    assert required_literals(r"abcd(?!ef)gh") == [frozenset({"abcdgh"})]
    assert required_literals(r"(?<=xyz)abcd(?=efgh)") == [frozenset({"abcd"})]
    assert required_literals(r"(abcd)-\1") == [frozenset({"abcd-"})]


def test_unparsable_patterns_have_no_literals() -> None:
    """Broken and hostile patterns give no literals and no exception."""
    for pattern in ("(", "a)", "(" * 5000, "(" * 1000 + "a" + ")" * 1000, "abcd(?#e)", "[a"):
        assert required_literals(pattern) == []
